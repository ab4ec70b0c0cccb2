#!/usr/bin/env bash
# Runs the test suite of package ledger against real object stores, each started on this machine with an empty folder, and prints the
# results of each does as rows of a Markdown table. With --write the rows go into docs/reference/object-stores.md.
#
#   stores.sh [--write] [STORE...]     minio, versitygw, gofakes3, seaweedfs (the program that WEED names); by default all that are there
#
# Failures of other stores than the bundled one are rows of the table, and no failure of this script.
set -euo pipefail
cd "$(dirname "$0")/.."
page=docs/reference/object-stores.md
write=
if [ "${1:-}" = --write ]; then
  write=1
  shift
fi
stores=("$@")
if [ $# -eq 0 ]; then
  stores=(minio versitygw gofakes3 ${WEED:+seaweedfs})
fi

export AWS_ACCESS_KEY_ID=root-of-test AWS_SECRET_ACCESS_KEY=not-a-real-secret
work=$(mktemp -d)
server=
stop() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || :
    wait "$server" 2>/dev/null || :
    server=
  fi
}
trap 'stop; rm -rf "$work"' EXIT

# free_port prints a free port of this machine whose number plus 10000 is free too: SeaweedFS takes both.
free_port() {
  local port
  for port in $(shuf -i 20000-29999 -n 50); do
    if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && ! (exec 3<>"/dev/tcp/127.0.0.1/$((port + 10000))") 2>/dev/null; then
      echo "$port"
      return
    fi
  done
  echo "no free port between 20000 and 29999" >&2
  return 1
}

# start STORE PORT FOLDER runs a store in the background.
start() {
  case $1 in
    minio)
      MINIO_ROOT_USER=$AWS_ACCESS_KEY_ID MINIO_ROOT_PASSWORD=$AWS_SECRET_ACCESS_KEY MINIO_UPDATE=off MINIO_BROWSER=off HOME=$3 \
        "$bins/minio" server "$3/data" --address "127.0.0.1:$2" --console-address 127.0.0.1:0 &
      ;;
    versitygw)
      mkdir -p "$3/data" "$3/about"
      ROOT_ACCESS_KEY=$AWS_ACCESS_KEY_ID ROOT_SECRET_KEY=$AWS_SECRET_ACCESS_KEY \
        "$bins/versitygw" --port "127.0.0.1:$2" --quiet posix --sidecar "$3/about" "$3/data" &
      ;;
    gofakes3) "$bins/gofakes3" -backend memory -host "127.0.0.1:$2" & ;;
    seaweedfs)
      printf '{"identities": [{"name": "root", "credentials": [{"accessKey": "%s", "secretKey": "%s"}], "actions": ["Admin"]}]}\n' \
        "$AWS_ACCESS_KEY_ID" "$AWS_SECRET_ACCESS_KEY" >"$3/s3.json"
      "$WEED" server -dir="$3" -ip=127.0.0.1 -ip.bind=127.0.0.1 -master.volumeSizeLimitMB=64 -master.port="$(free_port)" \
        -volume.port="$(free_port)" -filer.port="$(free_port)" -s3 -s3.port="$2" -s3.config="$3/s3.json" &
      ;;
    *)
      echo "unknown store \"$1\": choose from minio, versitygw, gofakes3, seaweedfs" >&2
      return 1
      ;;
  esac
  server=$!
}

# version STORE prints the version in the name of the program's folder, NAME-VERSION-KEY, or the version that the program prints.
version() {
  case $1 in
    seaweedfs) "$WEED" version | awk '{print $3; exit}' ;;
    *) readlink -f "$bins/$1" | sed -nE "s#.*/$1-(v.*)-[^/-]*/$1\$#\1#p" ;;
  esac
}

built=()
for store in "${stores[@]}"; do
  if [ "$store" != seaweedfs ]; then built+=("$store"); fi
done
if [ "${built[*]}" = minio ] && [ -x "${KUBEBUILDER_ASSETS:-}/minio" ]; then
  bins=$KUBEBUILDER_ASSETS
elif [ "${#built[@]}" -gt 0 ]; then
  bins=$(bin/cluster build --print-dir "${built[@]}")
fi

rows=$work/rows
{
  echo '| store | version | conditional create | conditional update | listing after write | signed links | checksum headers | suite |'
  echo '|---|---|---|---|---|---|---|---|'
} >"$rows"
failed=
for store in "${stores[@]}"; do
  echo "== $store" >&2
  folder=$work/$store port=$(free_port)
  mkdir -p "$folder"
  start "$store" "$port" "$folder" >"$folder/log" 2>&1
  ledger="s3://assay-test?endpoint=http://127.0.0.1:$port&region=us-east-1"
  # It also waits until the store answers; its last message is the reason for rejecting the store.
  for _ in $(seq 120); do
    if bin/assay ledger create-bucket --ledger "$ledger" >"$folder/bucket" 2>&1 || grep -q 'object store unsuitable' "$folder/bucket"; then
      break
    fi
    sleep 0.5
  done
  row="| $store | $(version "$store") |"
  if bin/assay ledger probe --ledger "$ledger" >"$folder/traits" 2>"$folder/refused"; then
    while read -r answer; do row+=" $answer |"; done < <(awk '{print $NF}' "$folder/traits")
    if (cd operator && ASSAY_TEST_S3=$ledger go test -count=1 -vet=off ./internal/store ./internal/ledger) >"$folder/suite" 2>&1; then
      row+=" passes |"
    else
      tests=$(sed -nE 's/^--- FAIL: ([A-Za-z]+) .*/`\1`/p' "$folder/suite" | paste -sd ' ')
      row+=" fails: ${tests:-does not compile} |"
      if [ "$store" = minio ] || [ -z "$tests" ]; then failed+=" $store"; fi
      cat "$folder/suite" >&2
    fi
  elif grep -q 'object store unsuitable' "$folder/refused"; then
    row+=" no: refused | | | | | |"
  else
    failed+=" $store"
    row+=" does not start | | | | | |"
    cat "$folder/refused" "$folder/log" >&2
  fi
  stop
  echo "$row" | tee -a "$rows" >&2
done

if [ -n "$write" ]; then
  awk -v rows="$rows" '
    /^<!-- End of stores/ {inside = 0}
    !inside {print}
    /^<!-- Begin of stores/ {inside = 1; print ""; while ((getline line < rows) > 0) print line; print ""}
  ' "$page" >"$work/page"
  cp "$work/page" "$page"
fi
cat "$rows"
if [ -n "$failed" ]; then
  echo "failed:$failed" >&2
  exit 1
fi
