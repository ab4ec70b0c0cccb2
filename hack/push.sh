#!/usr/bin/env bash
# Pushes layouts that make images or make release made, and signs them if there is a key:
# hack/push.sh REGISTRY KEY [arguments of cluster images push]
set -euo pipefail
cd "$(dirname "$0")/.."
registry=$1 key=$2
pushed=$(bin/cluster images push --registry "$registry" "${@:3}")
echo "$pushed"
if [ -z "$key" ]; then
  echo "not signed: COSIGN_KEY names no key" >&2
  exit
fi
while read -r name; do
  hack/tool.sh cosign sign --yes --recursive --key "$key" --tlog-upload=false --use-signing-config=false "$name"
done <<<"$pushed"
