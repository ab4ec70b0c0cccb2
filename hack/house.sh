#!/usr/bin/env bash
# Compares this checkout with an earlier commit and prints one JSON line for each figure on standard output; everything else goes to
# standard error. HOUSE_BASE names the commit, HOUSE_ROUNDS how often the timed programs run. Nothing else may run while it measures.
set -euo pipefail
cd "$(dirname "$0")/.."
exec 3>&1 1>&2
base=${HOUSE_BASE:-368151db}
old=$PWD/out/house/old
if [ "$(git -C "$old" rev-parse HEAD 2>/dev/null)" != "$(git rev-parse "$base")" ]; then
  rm -rf "$old"
  git clone -q --no-checkout . "$old"
  git -C "$old" checkout -q "$base"
fi
for checkout in "$old" .; do
  make -C "$checkout" --no-print-directory build build-calibration
  (cd "$checkout/operator" && go build -o ../bin/benchplatform "$([ -d calibration ] && echo ./calibration || echo .)/cmd/benchplatform")
done
(cd hack/house && go build -o ../../bin/house .)
(cd hack/count && go build -o ../../bin/count .)
bin/house -old "$old" verdicts >&3
bin/house -old "$old" -rounds "${HOUSE_ROUNDS:-10}" ratios >&3
bin/count -figures . >&3
make --no-print-directory english
bin/assay help --all | bin/english -figure -stdin 'assay help --all' >&3
