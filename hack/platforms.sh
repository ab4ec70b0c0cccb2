#!/usr/bin/env bash
# Builds our programs for platforms other than this machine's, on linux/amd64:
#
#   hack/platforms.sh programs LIST    into out/bin/OS-ARCH: all of them for linux/amd64 and linux/arm64, the command assay for darwin
#   hack/platforms.sh test arm64       tests of the Rust workspace for linux/arm64, run by qemu
#
# ASSAY_VERSION is the version that they print. linux/arm64 needs rustup's target where rustup can fetch it, else Debian's Rust
# and its library for arm64, unpacked into the cache; the linker and the emulator are Debian's packages.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh
die() { echo "platforms.sh: $*" >&2; exit 2; }
cache=${ASSAY_CACHE:-$HOME/.cache/assay}
version=${ASSAY_VERSION:-$(cat VERSION)}
export ASSAY_VERSION=$version
read -ra packages <<<"${RUST_PACKAGES:?run it by make images, which names what there is to build}"
read -ra programs <<<"$RUST_PROGRAMS"

# has says whether a compiler has the standard library of a target.
has() { [ -d "$("$1" --print sysroot)/lib/rustlib/$2/lib" ]; }

# rust_for makes a compiler have a target, and prints it.
rust_for() {
  local target=$1 tree=$cache/rust-web
  if has rustc "$target"; then
    echo rustc
    return
  fi
  if command -v rustup >/dev/null && rustup target add "$target" >&2 2>/dev/null && has rustc "$target"; then
    echo rustc
    return
  fi
  command -v apt-get >/dev/null || die "no Rust library for $target: run rustup target add $target"
  if [ ! -x "$tree/rustc" ]; then
    echo "unpacking Debian's Rust with its library for $target" >&2
    rm -rf "$tree" "$tree.new"
    mkdir -p "$tree.new"
    (
      cd "$tree.new"
      if ! dpkg --print-foreign-architectures | grep -qx arm64; then
        [ "$(id -u)" = 0 ] || die "Debian's packages for arm64 are not known: run dpkg --add-architecture arm64 && apt-get update as root"
        dpkg --add-architecture arm64
        apt-get update -qq
      fi
      std=$(apt-cache depends rustc-web | sed -n 's/^ *Depends: \(libstd-rust-web-dev\)$/\1/p')
      dynamic=$(apt-cache depends "$std" | sed -n 's/^ *Depends: \(libstd-rust-web-[0-9.]*\)$/\1/p')
      llvm=$(apt-cache depends "$dynamic" | sed -n 's/^ *Depends: \(libllvm[0-9]*\)$/\1/p')
      apt-get -qq -o APT::Sandbox::User=root download rustc-web "$std" "$dynamic" "$llvm" "$std:arm64" >&2
      for package in *.deb; do dpkg -x "$package" .; done
      rm ./*.deb
    )
    local compiler
    compiler=$(cd "$tree.new" && find . -type f -name rustc | head -n 1)
    [ -n "$compiler" ] || die "Debian's package rustc-web holds no rustc"
    printf '#!/bin/sh\nexport LD_LIBRARY_PATH=%s\nexec %s "$@"\n' "$tree/usr/lib/x86_64-linux-gnu" "$tree/$compiler" >"$tree.new/rustc"
    chmod +x "$tree.new/rustc"
    mv "$tree.new" "$tree"
  fi
  has "$tree/rustc" "$target" || die "$tree has no library for $target: delete it and try again, or run rustup target add $target"
  echo "$tree/rustc"
}

# cargo_for runs cargo for an architecture, as Go names it.
cargo_for() {
  local arch=$1 target
  shift
  case $arch in
    amd64) target=x86_64-unknown-linux-gnu ;;
    arm64)
      target=aarch64-unknown-linux-gnu
      installed aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu libc6-dev-arm64-cross
      export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
      ;;
    *) die "$arch: programs are built for amd64 and arm64" ;;
  esac
  RUSTC=$(rust_for "$target")
  RUSTC=$RUSTC RUSTFLAGS="-C target-feature=+crt-static" cargo "$1" --locked \
    --target "$target" "${@:2}"
}

build() {
  local platform=$1 os=${1%/*} arch=${1#*/}
  local bin=$PWD/out/bin/$os-$arch
  mkdir -p "$bin"
  echo "== $platform" >&2
  local flags=(-trimpath -ldflags "-s -w -X main.version=$version")
  (cd operator && CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build "${flags[@]}" -o "$bin/assay" ./cmd/assay)
  [ "$os" = linux ] || return 0
  (cd operator && CGO_ENABLED=0 GOOS=$os GOARCH=$arch go build "${flags[@]}" -o "$bin/manager" ./cmd)
  cargo_for "$arch" build --release "${packages[@]/#/--package=}"
  local release=${CARGO_TARGET_DIR:-target}/x86_64-unknown-linux-gnu/release
  [ "$arch" = amd64 ] || release=${release/x86_64/aarch64}
  for program in "${programs[@]}"; do cp -f "$release/$program" "$bin/"; done
}

case ${1:-} in
  programs)
    for platform in ${2//,/ }; do
      case $platform in
        linux/amd64 | linux/arm64 | darwin/amd64 | darwin/arm64) build "$platform" ;;
        *) die "platform $platform: choose from linux/amd64, linux/arm64, darwin/amd64 and darwin/arm64" ;;
      esac
    done
    ;;
  test)
    [ "${2:-}" = arm64 ] || die "test: name arm64, the architecture to emulate"
    installed qemu-aarch64-static qemu-user-static
    # The emulator is about thirty times slower, so fewer cases are checked; the paths are those of the architecture.
    export PROPTEST_CASES=${PROPTEST_CASES:-16}
    tests=(--release -p assay-harness -p scan-pir -p batch-rms24 -p insert-diskann)
    # Code of this architecture alone is linted only here; Debian's compiler has no clippy of ours.
    if [ "$(rust_for aarch64-unknown-linux-gnu)" = rustc ]; then cargo_for arm64 clippy --all-targets "${tests[@]:1}" -- -D warnings; fi
    # Tests start programs too: the kernel has to know the emulator. Where the system did not tell it (Debian's package does so with
    # systemd), a namespace of the tests' own does, which leaves nothing behind.
    formats=/proc/sys/fs/binfmt_misc
    if [ ! -e $formats/qemu-aarch64 ]; then
      cargo_for arm64 test --no-run "${tests[@]}"
      # shellcheck disable=SC2016 # Expanded inside.
      exec unshare --user --map-root-user --mount bash -c 'mount -t binfmt_misc none "$0" && cat "$1" >"$0/register" || {
        echo "platforms.sh: the kernel takes no emulator here (Linux 6.7 or later does): run apt-get install binfmt-support as root" >&2
        exit 2
      }; exec hack/platforms.sh test arm64' $formats /usr/lib/binfmt.d/qemu-aarch64.conf
    fi
    cargo_for arm64 test "${tests[@]}"
    ;;
  *) die "want: programs LIST, or test arm64; its head says more" ;;
esac
