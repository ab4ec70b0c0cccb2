#!/usr/bin/env bash
# Brings the embedded cluster up with Assay, lets a schedule measure a program that becomes slower with one commit, until the commit is
# named; then takes everything down. E2E_KEEP=1 keeps the cluster to poke at.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh
export CLUSTER=embedded ASSAY_HISTORY_E2E=1

trap take_down EXIT

install_assay

step "A change, from the first slow commit to its name"
(cd test/e2e && go test -count=1 -timeout 70m -v -run TestSchedule_NamesTheCommitOfARegression ./...)

step "Done"
