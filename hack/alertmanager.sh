#!/usr/bin/env bash
# Checks the configuration that docs/tasks/alert-with-alertmanager.md shows with Alertmanager's own tool: that it is accepted, and where
# each alert of dashboards/rules goes: hack/alertmanager.sh AMTOOL
set -euo pipefail
amtool=$(realpath "${1:?name the program amtool}")
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
awk '/^```yaml/{p=1;next} /^```/{p=0} p' docs/tasks/alert-with-alertmanager.md >"$folder/alertmanager.yaml"
"$amtool" check-config "$folder/alertmanager.yaml"

# receiver and labels: every alert of the rules, then one that is not of Assay.
awk '
  /- alert: / { alert = $3 }
  /labels: .severity: / { gsub(/[{}]/, ""); split($0, part, "severity: "); print alert, part[2] }' dashboards/rules/alerts.yaml |
  while read -r alert severity; do
    case "$alert/$severity" in
    AssayChangeConfirmed/* | AssaySeriesSilent/*) receiver=program ;;
    */critical) receiver=on-call ;;
    */warning) receiver=platform ;;
    */info) receiver=nobody ;;
    *)
      echo "$alert has severity '$severity': say in docs/tasks/alert-with-alertmanager.md and here who hears of it" >&2
      exit 1
      ;;
    esac
    echo "$receiver alertname=$alert severity=$severity namespace=default"
  done >"$folder/routes"
alerts=$(grep -c -- '- alert: ' dashboards/rules/alerts.yaml)
if [ "$(wc -l <"$folder/routes")" != "$alerts" ]; then
  echo "dashboards/rules/alerts.yaml has $alerts alerts, and $(wc -l <"$folder/routes") of them a severity" >&2
  exit 1
fi
echo "others alertname=Watchdog severity=none" >>"$folder/routes"
while read -r receiver labels; do
  # shellcheck disable=SC2086 # Each label is an argument.
  got=$("$amtool" config routes test --config.file "$folder/alertmanager.yaml" $labels)
  if [ "$got" != "$receiver" ]; then
    echo "$labels goes to $got, and docs/tasks/alert-with-alertmanager.md says $receiver" >&2
    exit 1
  fi
done <"$folder/routes"
echo "$((alerts + 1)) alerts go where docs/tasks/alert-with-alertmanager.md says"
