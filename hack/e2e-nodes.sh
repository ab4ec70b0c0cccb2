#!/usr/bin/env bash
# Brings the embedded cluster up with three nodes and Assay, runs the tests of one run on several nodes, and takes everything down.
# E2E_KEEP=1 keeps the cluster to poke at.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh
export CLUSTER=embedded NODES=3 ASSAY_NODES_E2E=1

trap take_down EXIT

install_assay

step "Lanes, turns, and a node that is switched off"
(cd test/e2e && go test -count=1 -timeout 50m -v -run TestNodes_ ./...)

step "Done"
