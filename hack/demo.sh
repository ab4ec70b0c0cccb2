#!/usr/bin/env bash
# The main job on a real cluster: build, start, install, run the PIR study, print its verdicts. Exits 0 only if the run
# reached a verdict. Safe to run again at any time; `make demo-down` removes everything.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh

study=${STUDY:-workflows/studies/pir-batch-scan/run.yaml}
name=$(sed -n '/^metadata:/,/^spec:/s/^  name: *//p' "$study")

install_assay

step "Running $study"
# A run never changes once created, so a second demo replaces the first one's. Its ledger stays.
kubectl delete benchmarkrun "$name" --ignore-not-found --timeout=120s
kubectl apply -f "$study"
status=0
bin/assay watch "$name" || status=$?
mkdir -p out
# make readme-demo copies this into README.
bin/assay results "$name" | tee out/demo.txt || true
cat <<END

Look further:
  export KUBECONFIG=$KUBECONFIG
  kubectl get benchmarkruns
  bin/assay results $name -o report
  kubectl -n assay-system port-forward svc/assay-argo-server 2746     # the DAG, at https://127.0.0.1:2746, with a token
  make demo-down                                                      # remove everything
END
step "Done"
exit "$status"
