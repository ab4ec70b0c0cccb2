#!/usr/bin/env bash
# Calibration on a cluster: applies every run of workflows/calibration so many times, each time with another name and seed, waits
# for all of them and prints how many ended with which verdict. Needs kubectl on the PATH, KUBECONFIG, and Assay in the cluster.
#   hack/calibrate.sh [TIMES] [NAMESPACE]
set -euo pipefail
times=${1:-1} namespace=${2:-default}
cd "$(dirname "$0")/.."
stamp=$(date +%s)
for file in workflows/calibration/*.yaml; do
  for ((i = 1; i <= times; i++)); do
    sed -E "s/^(  name: calibration-.*)$/\1-$stamp-$i\n  labels: {assay.dev\/calibration: \"$stamp\"}/; s/seed: [0-9]+/seed: $((stamp % 100000 + i))/" "$file" |
      kubectl apply -n "$namespace" -f - >&2
  done
done
kubectl wait -n "$namespace" benchmarkruns -l "assay.dev/calibration=$stamp" --for=jsonpath='{.status.verdict}' --timeout=6h >&2
kubectl get -n "$namespace" benchmarkruns -l "assay.dev/calibration=$stamp" \
  -o jsonpath='{range .items[*]}{.metadata.name}{" "}{.status.verdict}{"\n"}{end}' |
  sed -E "s/-$stamp-[0-9]+ / /" | sort | uniq -c | awk '{printf "| %s | %s | %d |\n", $2, $3, $1}'
