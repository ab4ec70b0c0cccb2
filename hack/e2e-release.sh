#!/usr/bin/env bash
# Brings the embedded cluster up without Assay, pushes dist/ to a registry on it, installs from there by digest and reaches a verdict; then
# takes everything down. E2E_KEEP=1 keeps the cluster to poke at.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh
unset KUBECONFIG
[ -f dist/SHA256SUMS ] || { echo "dist/ holds no release: run make release first" >&2; exit 2; }
trap take_down EXIT

step "Building the tools and the images of other projects (cached after the first time)"
PATH=$(bin/cluster build --print-dir kubectl helm registry):$PATH
bin/cluster images >/dev/null

step "Starting the cluster"
bin/cluster up
KUBECONFIG=$(bin/cluster kubeconfig)
export PATH KUBECONFIG

step "Tests of the release in dist/"
(cd test/release && ASSAY_RELEASE_E2E=1 go test -count=1 -timeout 40m -v ./...)
step "Done"
