#!/usr/bin/env bash
# Writes the results of a demo into a page, between its markers <!-- demo --> and <!-- /demo -->: the point at which the study's question is
# asked, the outcome of each candidate, and the verdict. hack/readme-demo.sh RESULTS PAGE, where RESULTS is the output of assay results.
set -euo pipefail
results=$1 page=$2
[ -f "$results" ] || { echo "$results is not there: make demo writes it" >&2; exit 2; }
for marker in '<!-- demo -->' '<!-- /demo -->'; do
  grep -qxF -- "$marker" "$page" || { echo "$page has no line $marker, between the two of which a demo stands" >&2; exit 2; }
done

excerpt=$(awk '
  /^[^ ].*  arm  +throughput/ { print; table = 1; next }
  table && $0 == "" { print "…"; table = 0 }
  table && $1 == 8 && $2 == 0 { print; rows++ }
  /^(Go|NoGo|Inconclusive|Invalid)  / { outcomes = 1 }
  /^(warning|not seen): / { outcomes = 0 }
  / trials used / { outcomes = 0; end = 1 }
  outcomes || end
  /^verdict: / { verdict = 1; exit }
  END { if (!rows || !verdict) exit 1 }' "$results") || {
  echo "$results has no throughput at batchSize=8, deltaEntries=0, or no verdict: it is not what make demo writes in full" >&2
  exit 1
}
model=$(sed -n 's/^model name\t*: *//p' /proc/cpuinfo | head -n 1)
text=$(printf 'On %s CPUs (%s):\n\n```\n%s\n```\n' "$(nproc)" "${model:-model unknown}" "$excerpt")
TEXT=$text awk '
  !inside
  $0 == "<!-- demo -->" { inside = 1; print ENVIRON["TEXT"] }
  inside && $0 == "<!-- /demo -->" { inside = 0; print }' "$page" >"$page.part"
mv "$page.part" "$page"
