#!/usr/bin/env bash
# Calibration on a cluster: brings up an embedded one with Assay, runs the runs of `calibrate real` through kubectl, and takes the
# cluster down. Arguments go to calibrate. Needs root, as every embedded cluster does. CALIBRATE_KEEP=1 keeps the cluster.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh
export CLUSTER=embedded
finish() {
  status=$?
  if [ "${CALIBRATE_KEEP:-}" != 1 ]; then
    bin/cluster down >&2 || status=1
  fi
  exit "$status"
}
trap finish EXIT
install_assay >&2
bin/calibrate real --cluster "$@"
