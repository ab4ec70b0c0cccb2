#!/bin/sh
# postgres.sh PORT starts a PostgreSQL with a new database in a temporary folder, fills it with pgbench's tables, and prints a line. The
# server refuses to run as root and then runs as its package's user, who cannot read the folder of a trial.
set -e
programs=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
data=$(mktemp -d /tmp/pgbench.XXXXXX)
as=
if [ "$(id -u)" = 0 ]; then
  chown postgres "$data"
  as="setpriv --reuid=postgres --regid=postgres --clear-groups"
fi
cd "$data"
$as "$programs/initdb" --auth=trust --username=postgres --pgdata="$data/db" >"$data/log" 2>&1
$as "$programs/postgres" -D "$data/db" -p "$1" -c listen_addresses=127.0.0.1 -c unix_socket_directories="$data" 2>>"$data/log" &
server=$!
trap 'kill "$server"; wait "$server" || true; rm -rf "$data"; exit 0' TERM INT
until "$programs/pg_isready" --quiet --host=127.0.0.1 --port="$1"; do sleep 0.1; done
"$programs/pgbench" --host=127.0.0.1 --port="$1" --username=postgres --initialize --quiet postgres >>"$data/log" 2>&1
echo "database is filled"
wait "$server"
