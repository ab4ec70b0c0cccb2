#!/usr/bin/env bash
# Runs the PIR study on this machine, without a cluster.
set -euo pipefail
cd "$(dirname "$0")/.."
out=out/quickstart/$(date +%Y%m%d-%H%M%S)
exec bin/assay run --local workflows/studies/pir-batch-scan/run.yaml --out "$out"
