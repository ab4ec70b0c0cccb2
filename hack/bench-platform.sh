#!/usr/bin/env bash
# Figures of the platform itself, one JSON line each on standard output; everything else goes to standard error. Nothing else
# may run. PIR_LEDGER is a full-size ledger of the PIR study; without it the newest one of `make studies` is taken, or the
# study is run here, which takes half an hour. The cluster is the one that CLUSTER names, as for the demo; BENCH_KEEP=1 keeps it.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh
exec 3>&1 1>&2

step "Building benchplatform"
(cd operator && CGO_ENABLED=0 go build -trimpath -gcflags=all=-dwarf=false -ldflags "-s -w" -o ../bin/benchplatform \
  ./calibration/cmd/benchplatform)

step "Planning, and the size of a status"
bin/benchplatform pure >&3

step "The report of the PIR study"
mkdir -p out/studies # A fresh checkout has none, and find would fail.
ledger=${PIR_LEDGER:-$(find out/studies -maxdepth 1 -type d -name 'pir-batch-scan-run-[0-9]*' | sort | tail -n 1)}
if [ -z "$ledger" ]; then
  make --no-print-directory build
  ledger=out/bench-platform-pir
  rm -rf "$ledger"
  # Exit code 3 means no verdict, which a busy machine may cause; only the report is measured here.
  bin/assay run --local workflows/studies/pir-batch-scan/run.yaml --out "$PWD/$ledger" >/dev/null || [ $? = 3 ]
fi
bin/benchplatform report "$ledger" >&3

finish() {
  status=$?
  if [ "${BENCH_KEEP:-}" != 1 ] && [ "$(bin/cluster choose 2>/dev/null)" = embedded ]; then
    step "Taking the cluster down"
    bin/cluster down || status=1
  fi
  exit "$status"
}
trap finish EXIT
# The metrics are read through the API server, which passes no token on.
export HELM_ARGS="--set operator.metrics.secure=false ${HELM_ARGS:-}"
install_assay

step "The operator on the cluster"
bin/benchplatform cluster --runs "${BENCH_RUNS:-6}" >&3
