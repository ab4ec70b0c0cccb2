#!/usr/bin/env bash
# Injects faults into a dedicated cluster, or attacks it. `hack/chaos.sh chaos` injects 200 faults within an hour, `smoke` six to ten within
# four minutes with a fixed seed, and `attack` runs the attacks. Standard output has figures only. SEED=N repeats a schedule,
# FAULTS=name,... selects kinds of faults, and CHAOS_ARGS adds flags of test/chaos. CHAOS_CLUSTER=running uses the embedded cluster that is
# running, with Assay installed, and leaves it running.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh
export CLUSTER=embedded
what=${1:?chaos, smoke or attack}

finish() {
  status=$?
  if [ "${CHAOS_CLUSTER:-}" != running ]; then
    step "Taking the cluster down" >&2
    bin/cluster down >&2 || status=1
  fi
  exit "$status"
}
trap finish EXIT

if [ "${CHAOS_CLUSTER:-}" = running ]; then
  KUBECONFIG=$(bin/cluster kubeconfig)
  PATH=$(bin/cluster build --print-dir kubectl helm):$PATH
  export KUBECONFIG PATH
else
  # The store can be filled without filling the machine's disk. Standard output is reserved for figures.
  HELM_ARGS="--set objectStore.persistence.medium=Memory,objectStore.persistence.size=256Mi ${HELM_ARGS:-}" install_assay >&2
fi

hurt() {
  step "Faults" >&2
  (cd test/chaos && go build -o ../../bin/chaos .) >&2
  # shellcheck disable=SC2086 # CHAOS_ARGS is a list of arguments.
  ASSAY_CLUSTER_TOOL=$PWD/bin/cluster bin/chaos "$@" ${SEED:+-seed "$SEED"} ${FAULTS:+-kinds "$FAULTS"} ${CHAOS_ARGS:-}
}

attack() {
  step "Attacks" >&2
  local status=0
  mkdir -p out
  (cd test/e2e && go test -count=1 -timeout 30m -v -run '^TestAttacks$' ./... -attack) \
    >out/attack.txt 2>&1 || status=$?
  cat out/attack.txt >&2
  sed -n 's/^.*\({"figure":"security\.[^}]*}\).*$/\1/p' out/attack.txt
  if ! grep -q '"figure":"security\.' out/attack.txt; then
    echo "the attacks ended without a figure: see above" >&2
    status=1
  fi
  return "$status"
}

case "$what" in
  chaos) hurt -faults 200 -duration 2h -out out/chaos ;;
  smoke) SEED=${SEED:-1} && hurt -faults 10 -least 6 -duration 90s -pause 1s -settle 2m -limit 4m -short -out out/chaos-smoke ;;
  attack) attack ;;
  *) echo "$0: invalid argument $what: allowed are chaos, smoke and attack" >&2; exit 2 ;;
esac
