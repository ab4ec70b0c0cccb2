#!/usr/bin/env bash
# Prints the figure pod.perturbation: brings up an embedded cluster with the scan image and nothing else, and runs the kernel in
# turns in a pod and on this machine. Needs root, as every embedded cluster does.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh
export ASSAY_CLUSTER_NAME=${ASSAY_CLUSTER_NAME:-perturbation} ASSAY_CLUSTER_PORT=${ASSAY_CLUSTER_PORT:-7690}
{
  bin/cluster build
  mapfile -t archives < <(bin/cluster images --bin bin)
  trap 'bin/cluster down >&2' EXIT
  bin/cluster up --mode embedded
  KUBECONFIG=$(bin/cluster kubeconfig --mode embedded)
  PATH=$(bin/cluster build --print-dir kubectl):$PATH
  export KUBECONFIG PATH
  bin/cluster load --mode embedded "${archives[@]}"
} >&2
bin/calibrate perturbation "$@"
