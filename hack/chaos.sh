#!/usr/bin/env bash
# Faults and attacks against a cluster of their own. `hack/chaos.sh chaos` hurts it for an hour and attacks it afterwards, `smoke` for
# a few minutes, `attack` only attacks. CHAOS_ARGS adds to the flags of test/chaos (-seed N repeats a schedule); with
# CHAOS_CLUSTER=running it takes the embedded cluster that is there, with Assay on it, and leaves it there.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh
export CLUSTER=embedded
what=${1:?chaos, smoke or attack}

finish() {
  status=$?
  if [ "${CHAOS_CLUSTER:-}" != running ]; then
    step "Taking the cluster down"
    bin/cluster down || status=1
  fi
  exit "$status"
}
trap finish EXIT

if [ "${CHAOS_CLUSTER:-}" = running ]; then
  KUBECONFIG=$(bin/cluster kubeconfig)
  PATH=$(bin/cluster build --print-dir kubectl helm):$PATH
  export KUBECONFIG PATH
else
  # What goes to standard output is figures.
  install_assay >&2
fi

hurt() {
  step "Faults" >&2
  (cd test/chaos && go build -o ../../bin/chaos .)
  # shellcheck disable=SC2086 # CHAOS_ARGS is a list of arguments.
  ASSAY_CLUSTER_TOOL=$PWD/bin/cluster bin/chaos "$@" ${CHAOS_ARGS:-}
}

attack() {
  step "Attacks" >&2
  local status=0
  mkdir -p out
  (cd test/e2e && go test -count=1 -timeout 30m -v -run '^TestAttacks$' ./... -attack) \
    >out/attack.txt 2>&1 || status=$?
  cat out/attack.txt >&2
  sed -n 's/^.*\({"figure":"security\.[^}]*}\).*$/\1/p' out/attack.txt
  return "$status"
}

case "$what" in
  chaos) hurt -faults 200 -duration 2h -out out/chaos && attack ;;
  smoke) hurt -faults 12 -duration 4m -pause 2s -short ;;
  attack) attack ;;
  *) echo "$0: $what is none of chaos, smoke, attack" >&2; exit 2 ;;
esac
