#!/usr/bin/env bash
# Prints the figure bench.scan_s: the time of `assay bench` for a scan of five values in one line, from its start until every value has
# its answer, the first block included. Of SCANS (3) scans it is the median, with the fastest and the slowest as its limits. A scan that
# leaves a value undecided is no figure. Nothing else may run meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=$PWD/bin runs=${SCANS:-3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
seq 10000 > small.txt
seq 20000 > large.txt
seconds=()
for run in $(seq "$runs"); do
  start=$EPOCHREALTIME
  "$bin/assay" bench --bin-dir "$bin" --out "ledger-$run" -L level=1,3,5,7,9 \
    'gzip -{level} -c large.txt' 'gzip -{level} -c small.txt' > answer
  end=$EPOCHREALTIME
  cat answer >&2
  decided=$(grep -c '^level=[0-9]: .* confidence$' answer || true)
  if [ "$decided" -ne 5 ]; then
    echo "scan $run: $decided of 5 values are decided; repeat it on a machine without other work" >&2
    exit 1
  fi
  seconds+=("$(((${end/./} - ${start/./}) / 1000))")
done
mapfile -t sorted < <(printf '%s\n' "${seconds[@]}" | sort -n)
in_seconds() { printf '%d.%03d' "$(($1 / 1000))" "$(($1 % 1000))"; }
printf '{"figure":"bench.scan_s","value":%s,"unit":"s","low":%s,"high":%s,"samples":%d}\n' \
  "$(in_seconds "${sorted[$((runs / 2))]}")" "$(in_seconds "${sorted[0]}")" "$(in_seconds "${sorted[-1]}")" "$runs"
