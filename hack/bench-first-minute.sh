#!/usr/bin/env bash
# Figures of the first minutes with Assay, one JSON line each on standard output; everything else goes to standard error. Nothing else may
# run. It installs the release in dist/ (make release), and runs the demo twice in a fresh clone of the last commit, the first time
# with nothing compiled, which takes a quarter of an hour and more. Downloaded modules and crates are those that this machine has.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh
[ -f dist/SHA256SUMS ] || { echo "dist/ holds no release: run make release first" >&2; exit 2; }
exec 3>&1 1>&2
export CLUSTER=embedded
unset CARGO_TARGET_DIR

(cd operator && CGO_ENABLED=0 go build -trimpath -gcflags=all=-dwarf=false -ldflags "-s -w" -o ../bin/benchplatform \
  ./calibration/cmd/benchplatform)
bin/benchplatform first dist >&3

work=$(mktemp -d)
export ASSAY_CACHE=$work/cache GOCACHE=$work/go
finish() {
  status=$?
  if cd "$work/tree" && [ -x bin/cluster ]; then
    KUBECONFIG=$(bin/cluster kubeconfig)
    export KUBECONFIG
    if [ "$status" != 0 ] && [ -e "$KUBECONFIG" ]; then PATH=$(bin/cluster build --print-dir kubectl):$PATH show_cluster; fi
    bin/cluster down || status=1
  fi
  cd /
  rm -rf "$work"
  exit "$status"
}
trap finish EXIT
git clone --quiet --no-hardlinks . "$work/tree"
# Exit code 3 means no verdict, which a busy machine may cause; only the duration is measured here.
demo() { (cd "$work/tree" && hack/demo.sh) 2>&1 | tee "$work/$1" || [ $? = 3 ]; }
demo cold
"$work/tree/bin/cluster" down
demo warm
bin/benchplatform demo --cold "$work/cold" --warm "$work/warm" >&3
