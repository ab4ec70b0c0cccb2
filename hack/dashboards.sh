#!/usr/bin/env bash
# Renders every dashboard with Grafana's libraries over a Prometheus with invented series, in headless Chromium, light and dark, at the
# widths of a desk and of a phone. PROMETHEUS=http://… takes a running one in its place, such as the demo's through kubectl port-forward.
# Pictures go to out/browser/. Needs Node and npm; the page is built once and kept in the cache.
set -euo pipefail
cd "$(dirname "$0")/.."
. hack/lib.sh
if ! command -v npm >/dev/null; then
  echo "no npm on PATH: install Node 20 or newer with npm, then run this again" >&2
  exit 1
fi
need_chromium
source=test/browser/grafana
version=$(git ls-files -s "$source" | sha256sum | cut -c1-16)
if ! git diff --quiet -- "$source"; then version=$(cat "$source"/*.* "$source"/src/* "$source"/.npmrc | sha256sum | cut -c1-16); fi
page=$ASSAY_CACHE/dashboards-page/$version
if [ ! -f "$page/out/main.js" ]; then
  echo "building the page with Grafana's libraries (the first time about a minute on 2 CPUs)"
  rm -rf "$page"
  mkdir -p "$page"
  cp -r "$source/." "$page"
  # No script of a package runs.
  (cd "$page" && npm ci --ignore-scripts --loglevel=error && node build.mjs out)
  rm -rf "$page/node_modules"
fi
programs=$(bin/cluster build --print-dir prometheus promtool)
cd test/browser
BUNDLE=$page/out PROGRAMS=$programs PICTURES=$PWD/../../out/browser go test -count=1 -v -run '^TestDashboards_' .
