#!/usr/bin/env bash
# Runs every benchmark tool that Assay can read, for real, through `assay run --local` of its example at smoke size.
# Tools go to $ASSAY_CACHE/adapters, once. Arguments name the examples to run; none runs them all.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
cache=${ASSAY_CACHE:-$HOME/.cache/assay}/adapters
out=$root/out/examples
programs=$out/bin

hyperfine=1.20.0
criterion=0.8.2 # As in workflows/examples/criterion/Cargo.toml.
pytest=9.1.1
pytest_benchmark=5.3.1
k6=1.8.1
jmh=1.37 # As in workflows/examples/jmh/pom.xml.
vegeta=12.13.0
divan=0.1.21 # As in workflows/examples/divan/Cargo.toml.

# once FOLDER COMMAND... makes a folder of the cache by a command that gets its path, or leaves nothing behind.
once() {
  local folder=$cache/$1
  shift
  [ -e "$folder/.done" ] && return
  rm -rf "$folder"
  mkdir -p "$folder"
  echo "installing into $folder" >&2
  "$@" "$folder" >&2
  touch "$folder/.done"
}

install_hyperfine() {
  cargo install --quiet --locked --version "$hyperfine" --root "$1" --target-dir "$1/target" hyperfine && rm -rf "$1/target"
}
install_k6() { GOBIN=$1 CGO_ENABLED=0 go install -trimpath -ldflags "-s -w" "go.k6.io/k6@v$k6"; }
install_vegeta() { GOBIN=$1 CGO_ENABLED=0 go install -trimpath -ldflags "-s -w" "github.com/tsenart/vegeta/v12@v$vegeta"; }
install_pytest() {
  python3 -m venv "$1" &&
    "$1/bin/pip" install --quiet --disable-pip-version-check "pytest==$pytest" "pytest-benchmark==$pytest_benchmark"
}

install_jmh() { mvn -q -B -f workflows/examples/jmh/pom.xml dependency:copy-dependencies -DoutputDirectory="$1"; }

# Debian's packages are unpacked and not installed, which needs no root.
install_google_benchmark() (
  cd "$1"
  apt-get download libbenchmark-dev libbenchmark1debian
  for package in *.deb; do dpkg -x "$package" .; done
)

install_catch2() (
  cd "$1"
  apt-get download catch2
  dpkg -x catch2_*.deb .
)

# packaged PROGRAM links to a program of the system's packages, after it has installed it if it is not there.
packaged() {
  if ! command -v "$1" >/dev/null; then
    echo "installing $1" >&2
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >&2
  fi
  ln -sf "$(command -v "$1")" "$programs/$1"
}

# cargo_bench EXAMPLE VERSION NAME builds a benchmark of cargo's and takes its program.
cargo_bench() {
  local made
  made=$(cd "workflows/examples/$1" && CARGO_TARGET_DIR=$cache/$1-$2 cargo bench --quiet --locked --bench "$3" --no-run \
    --message-format=json | grep -o '"executable":"[^"]*/'"$3"'-[^"]*"' | tail -1 | cut -d'"' -f4)
  cp "$made" "$programs/$3"
}

# prepare_TOOL leaves the example's program in $programs and its inputs in the folder where it runs.
prepare_go-test() { (cd workflows/examples/go-test && CGO_ENABLED=0 go test -c -trimpath -o "$programs/join.test" .); }

prepare_criterion() {
  cargo_bench criterion "$criterion" find
}

prepare_google-benchmark() {
  once google-benchmark install_google_benchmark
  local usr=$cache/google-benchmark/usr lib
  lib=$(dirname "$(find "$usr" -name libbenchmark.so | head -1)")
  if [ ! "$programs/sum" -nt workflows/examples/google-benchmark/sum.cc ]; then
    g++ -O2 -std=c++17 -I"$usr/include" workflows/examples/google-benchmark/sum.cc -o "$programs/sum" -L"$lib" \
      -lbenchmark -lpthread -Wl,-rpath,"$lib"
  fi
}

prepare_hyperfine() {
  once "hyperfine-$hyperfine" install_hyperfine
  cp "$cache/hyperfine-$hyperfine/bin/hyperfine" "$programs/"
  seq 1 60000 >numbers.txt
}

prepare_pytest-benchmark() {
  once "pytest-benchmark-$pytest_benchmark" install_pytest
  ln -sf "$cache/pytest-benchmark-$pytest_benchmark/bin/pytest" "$programs/pytest"
}

prepare_k6() {
  once "k6-$k6" install_k6
  ln -sf "$cache/k6-$k6/k6" "$programs/k6"
  pages
}

prepare_jmh() {
  once "jmh-$jmh" install_jmh
  rm -rf "$here/classes"
  mkdir -p "$here/classes"
  javac -cp "$cache/jmh-$jmh/*" -d "$here/classes" workflows/examples/jmh/Lookup.java
  ln -sfn "$cache/jmh-$jmh" "$here/lib"
  ln -sf "$(readlink -f "$(command -v java)")" "$programs/java"
}

prepare_benchmarkdotnet() {
  rm -rf "$here/src" "$here/app"
  mkdir -p "$here/src"
  cp workflows/examples/benchmarkdotnet/lookups.csproj workflows/examples/benchmarkdotnet/Lookups.cs "$here/src/"
  dotnet publish "$here/src" -c Release -o "$here/app" >&2
  ln -sf "$here/app/lookups" "$programs/lookups"
}

prepare_fio() { packaged fio; }

prepare_wrk() {
  packaged wrk
  pages
}

prepare_sysbench() { packaged sysbench; }

prepare_divan() {
  cargo_bench divan "$divan" search
}

prepare_catch2() {
  once catch2 install_catch2
  if [ ! "$programs/sums" -nt workflows/examples/catch2/sums.cc ]; then
    g++ -O2 -std=c++17 -I"$cache/catch2/usr/include" workflows/examples/catch2/sums.cc -o "$programs/sums"
  fi
}

# pages builds the server of k6's example.
pages() { (cd workflows/examples/k6/server && CGO_ENABLED=0 go build -trimpath -o "$programs/pages" .); }

prepare_iperf3() { packaged iperf3; }

prepare_pgbench() {
  ln -sf "$(find /usr/lib/postgresql -name pgbench | sort | tail -1)" "$programs/pgbench"
  cp workflows/examples/pgbench/postgres.sh "$programs/"
}

prepare_vegeta() {
  once "vegeta-$vegeta" install_vegeta
  cp "$cache/vegeta-$vegeta/vegeta" workflows/examples/vegeta/attack.sh "$programs/"
  pages
}

prepare_oha() {
  ln -sf "$(command -v oha)" "$programs/oha"
  pages
}

prepare_aiperf() { ln -sf "$(command -v aiperf)" "$programs/aiperf"; }

prepare_json() { :; }

prepare_csv() { :; }

# has PROGRAM... reports whether all of them are on PATH.
has() {
  local program
  for program; do
    command -v "$program" >/dev/null || return 1
  done
}

# lacking TOOL prints the requirements of its example that this system lacks.
lacking() {
  case $1 in
  google-benchmark | catch2)
    has apt-get dpkg g++ || echo "its library is taken from Debian's packages and this system is not Debian"
    ;;
  fio | wrk | sysbench | iperf3)
    has "$1" || { has apt-get && [ "$(id -u)" = 0 ]; } || echo "$1 is not on PATH"
    ;;
  pgbench)
    find /usr/lib/postgresql -name pgbench 2>/dev/null | grep -q . && has setpriv || echo "PostgreSQL is not in /usr/lib/postgresql"
    ;;
  oha) has oha || echo "oha is not on PATH" ;;
  aiperf)
    has aiperf curl && curl --silent --max-time 5 --output /dev/null http://127.0.0.1:8000/ ||
      echo "aiperf is not on PATH, or no model server answers at 127.0.0.1:8000"
    ;;
  jmh) has java javac mvn || echo "it needs a JDK and Maven on PATH" ;;
  benchmarkdotnet) has dotnet || echo "it needs the .NET SDK on PATH" ;;
  esac
}

# run TOOL runs its example and fails unless the verdict is Go, which is the known answer of all of them.
run() {
  local tool=$1 here=$out/$1
  mkdir -p "$here" "$programs"
  "prepare_$tool"
  [ -e numbers.txt ] && mv numbers.txt "$here/"
  cp -f workflows/examples/"$tool"/*.py workflows/examples/"$tool"/*.js "$here/" 2>/dev/null || true
  rm -rf "$here/ledger"
  # Programs find their input where they run, as in their image.
  (cd "$here" && "$root/bin/assay" run --local "$root/workflows/examples/$tool/smoke.yaml" \
    --bin-dir "$root/bin" --bin-dir "$programs" --out "$here/ledger") >"$here/said.txt" 2>"$here/log.txt" ||
    { tail -n 20 "$here/log.txt" >&2; cat "$here/said.txt" >&2; echo "example $tool: failed; its log is $here/log.txt" >&2; return 1; }
  grep -q '^verdict: Go,' "$here/said.txt" || { cat "$here/said.txt" >&2; echo "example $tool: the verdict is not Go" >&2; return 1; }
  echo "example $tool: Go, as it must be"
}

tools=("$@")
[ $# -gt 0 ] || tools=(
  go-test criterion google-benchmark hyperfine pytest-benchmark k6 jmh benchmarkdotnet fio wrk sysbench divan catch2
  iperf3 pgbench vegeta oha aiperf json csv
)
passed=0 failed=0
for tool in "${tools[@]}"; do
  reason=$(lacking "$tool")
  if [ -n "$reason" ]; then
    echo "example $tool: skipped, because $reason"
    continue
  fi
  if run "$tool"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
