#!/usr/bin/env bash
# Makes several builds of one program that differ in where the linker puts its functions and data, and in nothing else, for
# arms[].builds of a run (docs/tasks/compare-several-builds.md):
#
#   hack/builds.sh go   OUT N NAME [arguments of go build]     Go: -ldflags=-randlayout=SEED
#   hack/builds.sh rust OUT N NAME [arguments of cargo rustc]  Rust: lld's --shuffle-sections, lld being the default linker on x86-64 Linux
#   hack/builds.sh link OUT N NAME COMMAND...                  C, C++: a command that links, to which the output and the order are added;
#                                                              it links objects compiled with -ffunction-sections -fdata-sections with lld
#
# writes OUT/NAME-b01, OUT/NAME-b02 and so on, from the seeds SEED (default 1), SEED+1 and so on. It fails if two are the same file.
set -euo pipefail
die() { echo "builds.sh: $*" >&2; exit 2; }
[[ $# -ge 4 ]] || die "want: go|rust|link OUT N NAME [arguments]; see its first lines"
how=$1 out=$2 n=$3 name=$4
shift 4
[[ $n =~ ^[1-9][0-9]?$ ]] || die "N is $n: write how many builds, 1 to 99"
mkdir -p "$out"
out=$(cd "$out" && pwd)

# Not every section may be moved: the order of constructors, for one, means something.
shuffle() {
  for section in '.text*' '.rodata*' '.data*' '.bss*'; do printf -- '-Wl,--shuffle-sections=%s=%d\n' "$section" "$1"; done
}

build() {
  local seed=$1 file=$2 flags
  mapfile -t flags < <(shuffle "$seed")
  case $how in
    go) go build -trimpath -ldflags "-randlayout=$seed" -o "$file" "${arguments[@]}" ;;
    rust) cargo rustc --release --message-format=json-render-diagnostics "${arguments[@]}" -- "${flags[@]/#/-Clink-arg=}" |
      sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1 | xargs -I{} cp {} "$file" ;;
    link) "${arguments[@]}" "${flags[@]}" -o "$file" ;;
    *) die "invalid kind $how: allowed are go, rust and link" ;;
  esac
}

arguments=("$@")
for ((i = 1; i <= n; i++)); do
  file=$out/$name-b$(printf %02d "$i")
  build "$((${SEED:-1} + i - 1))" "$file"
  [[ -x $file ]] || die "no program came of build $i"
  echo "$file"
done
same=$(sha256sum "$out/$name"-b[0-9][0-9] | sort | uniq -w 64 -d)
[[ -z $same ]] || die "two builds are the same file, so that their layouts do not differ: $same"
