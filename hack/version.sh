#!/usr/bin/env bash
# Writes the version of the file VERSION into every tracked file that names one of our images with a tag, but for the results of studies,
# which name the measured program. Part of make generate.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(cat VERSION)
ours='assay\.dev/assay-(operator|runner|scan|batch|insert|attack):[0-9][0-9A-Za-z.-]*'
git grep -lIE "$ours" -- ':!workflows/studies/*/results' | while read -r file; do
  sed -E "s#${ours}#assay.dev/assay-\\1:$version#g" "$file" | cmp -s - "$file" ||
    sed -i -E "s#${ours}#assay.dev/assay-\\1:$version#g" "$file"
done
