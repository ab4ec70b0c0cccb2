#!/usr/bin/env bash
# Brings the embedded cluster up, installs Assay, runs test/e2e on it, takes everything down and checks that nothing is left.
# E2E_SHORT=1 runs the short form, which CI uses: the tests of the cluster tool, the long tests of test/e2e, the report in a browser and
# the commands of all pages but one are left to the full form. E2E_KEEP=1 keeps the cluster; E2E_RUN picks tests by name.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh
export CLUSTER=embedded

trap take_down EXIT

install_assay
mkdir -p out

tests_of_the_cluster() {
  step "Tests of the cluster tool (crashes, leaked state, tear-down), and beside them the checks of the replicas' histories"
  (cd workloads/batch/curp-ho/checker && CURP_BINARY=$OLDPWD/bin/batch-curp-ho go test -count=1 ./...) >out/e2e-histories.txt 2>&1 &
  local histories=$! status=0
  (cd cluster && ASSAY_CLUSTER_E2E=1 go test -count=1 -timeout 10m ./test/) || status=$?
  wait "$histories" || status=$?
  cat out/e2e-histories.txt
  return "$status"
}
[ -n "${E2E_SHORT:-}" ] || tests_of_the_cluster

step "The studies without a cluster, smoke size"
# The verdicts that the studies' pages give. A machine that does other work as well widens intervals: it may not turn one over.
declare -A verdicts=(
  [pir-batch-scan]='(Go|Inconclusive)(, best: fused-m4r)?'
  [rms24-batching]='(NoGo|Inconclusive)'
  [curp-batch-delay]='(Go|Inconclusive)(, best: coalesced)?'
  [diskann-insert]='(Go|Inconclusive)(, best: ours)?'
  [mork-serialisation]='Go, best: direct'
)
for smoke in workflows/studies/*/smoke.yaml; do
  study=$(basename "$(dirname "$smoke")")
  rm -rf "out/e2e-$study"
  # Exit code 3 means Inconclusive; every trial must still be used.
  status=0
  bin/assay run --local "$smoke" --out "$PWD/out/e2e-$study" >"out/e2e-$study.txt" 2>"out/e2e-$study.err" || status=$?
  tail -n 12 "out/e2e-$study.txt"
  if [[ "$status" != [03] ]] || ! grep -qE '^([1-9][0-9]*) of \1 trials used' "out/e2e-$study.txt"; then
    tail -n 20 "out/e2e-$study.err"
    echo "study $study: exit code $status, and not every trial was used"
    exit 1
  fi
  if ! grep -qE "^verdict: ${verdicts[$study]:?no verdict is named for it above}\$" "out/e2e-$study.txt"; then
    echo "study $study: the verdict is none of ${verdicts[$study]}"
    exit 1
  fi
  if [ ! -s "out/e2e-$study/analysis/000/tables/document.csv" ]; then
    echo "study $study: there is no table in the form of its document"
    exit 1
  fi
done

if [ -z "${E2E_SHORT:-}" ]; then
  step "The first study's report in a browser"
  hack/browser.sh out/e2e-pir-batch-scan/analysis/000/report.html
fi

step "The commands in the documentation"
(export PATH=$PWD/bin:$PATH && cd test/docs && go run ./cmd/rundocs -root ../.. ${E2E_SHORT:+-only docs/tasks/install.md})

step "Tests on the cluster"
(cd test/e2e && go test -count=1 -vet=off -timeout 70m -v ${E2E_SHORT:+-short} -run "${E2E_RUN:-.}" ./...)

step "Done"
