#!/usr/bin/env bash
# Opens an HTML report in headless Chromium and checks that it reads well: hack/browser.sh REPORT.html
# Pictures go to out/browser/. Installs Chromium on Debian when run by root and none is there.
set -euo pipefail
report=$(realpath "${1:?name the report.html of a ledger}")
cd "$(dirname "$0")/.."
if ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null && ! command -v google-chrome >/dev/null; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "no Chromium on PATH: install the package chromium, then run this again" >&2
    exit 1
  fi
  echo "installing chromium"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
fi
cd test/browser
REPORT=$report PICTURES=$PWD/../../out/browser go test -count=1 ./...
