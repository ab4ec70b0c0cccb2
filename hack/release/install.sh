#!/bin/sh
# Installs the command assay @VERSION@ for the current user: sh install.sh
#
#   PREFIX          where to: PREFIX/bin (default: /usr/local for root, else $HOME/.local)
#   ASSAY_DOWNLOADS where the archives are: a URL, or a folder (default: @DOWNLOADS@)
#
# Downloads are compared with SHA256SUMS from the same place, whose signature is SHA256SUMS.bundle.
set -eu
version=@VERSION@
downloads=${ASSAY_DOWNLOADS:-@DOWNLOADS@}
die() { echo "install.sh: $*" >&2; exit 1; }

case $(uname -s) in
  Linux) os=linux ;;
  Darwin) os=darwin ;;
  *) die "$(uname -s) is a system that assay is not built for; there are Linux and macOS" ;;
esac
case $(uname -m) in
  x86_64 | amd64) arch=amd64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) die "$(uname -m) is an architecture that assay is not built for; there are amd64 and arm64" ;;
esac
if [ -z "${PREFIX:-}" ]; then
  if [ "$(id -u)" = 0 ]; then PREFIX=/usr/local; else PREFIX=$HOME/.local; fi
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fetch() {
  if [ -d "$downloads" ]; then
    cp "$downloads/$1" "$folder/" || die "$downloads has no file $1"
  elif command -v curl >/dev/null; then
    curl -fsSL --retry 3 -o "$folder/$1" "$downloads/$1" || die "cannot download $downloads/$1"
  elif command -v wget >/dev/null; then
    wget -q -O "$folder/$1" "$downloads/$1" || die "cannot download $downloads/$1"
  else
    die "neither curl nor wget is on PATH: install one"
  fi
}
archive=assay_${version}_${os}_${arch}.tar.gz
fetch SHA256SUMS
fetch "$archive"
(
  cd "$folder"
  grep "  $archive\$" SHA256SUMS >sum || die "SHA256SUMS does not name $archive"
  if command -v sha256sum >/dev/null; then sha256sum -c sum >/dev/null; else shasum -a 256 -c sum >/dev/null; fi
) || die "$archive is not what SHA256SUMS says: it was changed, or the download is incomplete"

mkdir -p "$PREFIX/bin"
tar -xzf "$folder/$archive" -C "$folder"
for program in assay assay-runner; do
  # Under a temporary name first: one that is running cannot be written.
  if [ -f "$folder/$program" ]; then
    cp "$folder/$program" "$PREFIX/bin/.$program.new"
    chmod 755 "$PREFIX/bin/.$program.new"
    mv -f "$PREFIX/bin/.$program.new" "$PREFIX/bin/$program"
  fi
done
ln -sf assay "$PREFIX/bin/kubectl-assay"
ln -sf assay "$PREFIX/bin/kubectl_complete-assay"
echo "installed assay $version in $PREFIX/bin"
case :$PATH: in
  *:"$PREFIX/bin":*) ;;
  *) echo "put it on PATH: export PATH=\"$PREFIX/bin:\$PATH\"" ;;
esac
