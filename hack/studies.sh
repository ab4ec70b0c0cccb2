#!/usr/bin/env bash
# Runs studies at full size and stores their results beside them, in results/local/RUN or results/cluster/RUN of the study:
# the report, its own tables, which also go between the markers of the study's README, and the digest of the ledger they were
# judged from. The ledgers themselves are archives in out/studies/archives; one of at most 256 KiB also lies beside its tables.
# Without a file every run*.yaml of every study is run, on a cluster every study's run.yaml.
#   hack/studies.sh [--cluster] [FILE...]
#   hack/studies.sh --pilot [FILE...]       runs a block of each on this machine, keeps nothing, and exits 1 if one lost a trial
#   hack/studies.sh --again LEDGER FILE     judges the ledger of an earlier local run once more, and keeps that
#   hack/studies.sh --store LEDGER FILE     keeps the ledger of a local run as it was judged
# A local run of several builds finds them in out/builds (hack/builds.sh).
# With --cluster a cluster with Assay is brought up as for the demo and left as it is; `make demo-down` removes it. Exits 1 if a
# run could not be made. Inconclusive is an answer here. Nothing else may run meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh

# In a README a local run's tables lie below the run's own heading.
where=local heading='####'
again='' pilot='' stored=''
if [ "${1:-}" = --pilot ]; then
  pilot=1
  shift
elif [ "${1:-}" = --cluster ]; then
  where=cluster heading='###'
  shift
elif [ "${1:-}" = --again ]; then
  [ $# = 3 ] || { echo "$0: --again takes the folder of a ledger and the run's file" >&2; exit 2; }
  again=$2
  shift 2
elif [ "${1:-}" = --store ]; then
  [ $# = 3 ] || { echo "$0: --store takes the folder of a ledger and the run's file" >&2; exit 2; }
  stored=$2
  shift 2
fi
files=("$@")
if [ ${#files[@]} = 0 ]; then
  if [ "$where" = local ]; then files=(workflows/studies/*/run*.yaml); else files=(workflows/studies/*/run.yaml); fi
fi

if [ "$where" = cluster ]; then
  install_assay
elif [ -z "$stored" ]; then
  make --no-print-directory build
fi

# An archive that is larger stays outside of git.
largest_archive=$((256 * 1024))

# is_invalid LEDGER-OR-NAME reports whether the verdict is Invalid. Such a result replaces none.
is_invalid() {
  local report
  report=$(bin/assay report "$1" --format md)
  [[ ${report%%$'\n'*} == *': Invalid' ]]
}

# keep FILE LEDGER-OR-NAME stores the results of a run beside its study, without the kernel's command line, which names the machine's disks.
# The old result is replaced as a whole, once the new one is complete, and the page last.
keep() {
  local final results table
  final=$(dirname "$1")/results/$where/$(basename "$1" .yaml)
  results=$final.part
  rm -rf "$results"
  mkdir -p "$results"
  bin/assay report "$2" --format md | grep -v '^\* kernelCommandLine' >"$results/report.md"
  while read -r table; do
    bin/assay results "$2" --table "$table" -o "$results/$table.csv"
  done < <(tables "$1")
  archive "$1" "$2" "$results"
  rm -rf "$final"
  mv "$results" "$final"
  while read -r table; do
    bin/assay results "$2" --table "$table" | sed "s/^### /$heading /" |
      into "$(dirname "$1")/README.md" "$where/$(basename "$1" .yaml)/$table"
  done < <(tables "$1")
}

# tables FILE lists the names of a run's own tables.
tables() { sed -n '/^  report:/,/^  [a-z]*:/s/^    - name: *//p' "$1"; }

# archive FILE LEDGER-OR-NAME RESULTS archives the attempts behind the tables, so that they can be judged again, and names the archive in
# the report.
archive() {
  local name digest file=out/studies/archives
  mkdir -p "$file"
  name=$(basename "$(dirname "$1")")-$where-$(basename "$1" .yaml).tar.zst
  file=$file/$name
  bin/assay results "$2" -o "$file"
  digest=$(sha256sum "$file" | cut -d' ' -f1)
  if [ "$(stat -c %s "$file")" -le $largest_archive ]; then
    name=ledger.tar.zst
    cp "$file" "$3/$name"
  fi
  echo "$digest  $name" >"$3/ledger.sha256"
  printf '\n## The attempts\n\nThis was judged from the ledger in `%s`, %s bytes, sha256 `%s`.\n' \
    "$name" "$(stat -c %s "$file")" "$digest" >>"$3/report.md"
}

# into README NAME puts standard input between the README's markers <!-- table NAME --> and <!-- /table -->, if it has them.
into() {
  local table
  table=$(cat)
  TABLE=$table awk -v begin="<!-- table $2 -->" '
    !inside { print }
    $0 == begin { inside = 1; print ENVIRON["TABLE"] }
    inside && $0 == "<!-- /table -->" { inside = 0; print }' "$1" >"$1.part"
  mv "$1.part" "$1"
}

# Measurements until then stay in out/studies and are not stored beside the study.
trap 'echo "$0: interrupted; nothing of the run under way was published" >&2; exit 130' INT TERM

mkdir -p out/studies # A fresh checkout has none.
failed=()
for file in "${files[@]}"; do
  name=$(sed -n '/^metadata:/,/^spec:/s/^  name: *//p' "$file")
  step "$file"
  status=0
  if [ -n "$pilot" ]; then
    bin/assay plan "$file" --measure --pilot-blocks 1 --bin-dir bin --bin-dir out/builds || failed+=("$file")
    continue
  elif [ -n "$stored" ]; then
    run=$stored
  elif [ -n "$again" ]; then
    run=$again
    bin/assay analyze --ledger "file://$(realpath "$run")" --write >&2 || status=$?
  elif [ "$where" = local ]; then
    run=out/studies/$(basename "$(dirname "$file")")-$(basename "$file" .yaml)-$(date +%Y%m%d-%H%M%S)
    bin/assay run --local "$file" --bin-dir bin --bin-dir out/builds --out "$run" 2>"$run.log" || status=$?
  else
    # A run never changes once created, so this one replaces an earlier one. Its ledger stays.
    kubectl delete benchmarkrun "$name" --ignore-not-found --timeout=120s
    kubectl apply -f "$file"
    run=$name
    bin/assay watch "$name" || status=$?
  fi
  case $status in
    0 | 3 | 4)
      if is_invalid "$run"; then
        echo "$0: $file is Invalid; a published result remains as it is" >&2
        failed+=("$file")
      else
        keep "$file" "$run"
      fi
      ;;
    *) failed+=("$file") ;;
  esac
done
if [ ${#failed[@]} != 0 ]; then
  echo "these runs failed: ${failed[*]}"
  exit 1
fi
step "Done"
