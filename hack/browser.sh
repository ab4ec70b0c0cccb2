#!/usr/bin/env bash
# Opens an HTML report, or the pages that assay site wrote, in headless Chromium and checks that they read well:
# hack/browser.sh REPORT.html|FOLDER
# Pictures go to out/browser/. Installs Chromium on Debian when run by root and none is there.
set -euo pipefail
shown=$(realpath "${1:?name the report.html of a ledger, or the folder of a site}")
cd "$(dirname "$0")/.."
. hack/lib.sh
need_chromium
cd test/browser
export PICTURES=$PWD/../../out/browser
if [ -d "$shown" ]; then
  SITE=$shown go test -count=1 -run '^TestSite_' ./...
else
  REPORT=$shown go test -count=1 -run '^TestReport_' ./...
fi
