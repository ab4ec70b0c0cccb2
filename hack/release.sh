#!/usr/bin/env bash
# Makes everything a release has, into dist/ (make release VERSION=1.2.3): archives of the command for Linux and macOS, our images and the
# chart as OCI layouts, SBOMs, provenance, checksums and their signature, the krew manifest, the formula, the install script and the notes.
#
#   ASSAY_VERSION  the version; the file VERSION without it
#   REGISTRY       where the images of the packaged chart are; the names in images.yaml without it
#   DOWNLOADS      where the files of dist/ will be downloaded from
#   COSIGN_KEY     a key of cosign, whose password is COSIGN_PASSWORD; without one nothing is signed, and the notes say so
#
# The same tree gives the same archives, images and chart: times are those of the last commit.
set -euo pipefail
cd "$(dirname "$0")/.."
source hack/lib.sh
version=${ASSAY_VERSION:-$(cat VERSION)}
export ASSAY_VERSION=$version
downloads=${DOWNLOADS:?run it by make release, which says where the files will be downloaded from}
platforms=linux/amd64,linux/arm64
epoch=$(git log -1 --format=%ct)
commit=$(git rev-parse HEAD)
dirty=$(git status --porcelain --untracked-files=no)
dist=$PWD/dist work=$PWD/out/release
die() { echo "release.sh: $*" >&2; exit 2; }
# Invalid variables are reported before the build starts and before the last release is removed.
bin/cluster images list >/dev/null
[ "${PLATFORMS:-$platforms}" = "$platforms" ] || die "PLATFORMS is $PLATFORMS: a release is for $platforms; make images takes fewer"
if [ -n "${COSIGN_KEY:-}" ]; then
  step "The key (the first time cosign is compiled)"
  key=$(realpath -e "$COSIGN_KEY") || die "COSIGN_KEY is $COSIGN_KEY: name a key that cosign generate-key-pair wrote"
  public=$(hack/tool.sh cosign public-key --key "$key") || die "COSIGN_KEY is $COSIGN_KEY, which COSIGN_PASSWORD does not open"
fi
# Programs of another version are not packed.
rm -rf "$dist" "$work" out/bin
mkdir -p "$dist" "$work"

# pack makes an archive whose bytes follow from its files: pack FILE.tar[.gz] FOLDER NAME...
pack() {
  local archive=$1 folder=$2 zip=cat
  [[ $archive != *.gz ]] || zip='gzip -9n'
  tar -C "$folder" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner --mode='u=rwX,go=rX' -cf - "${@:3}" | $zip >"$archive"
}

step "Release notes of $version"
# The changelog's section of the version, or else the unreleased one.
section() { awk -v want="$1" '/^## /{p = index($0 " ", " " want " ") > 0; next} p' CHANGELOG.md >"$work/notes"; }
section "$version"
grep -q '[^[:space:]]' "$work/notes" || section '(unreleased)'
grep -q '[^[:space:]]' "$work/notes" ||
  die "CHANGELOG.md has neither a section \"## $version\" nor one that is \"(unreleased)\": write what is new"

step "Programs"
hack/platforms.sh programs "$platforms,darwin/amd64,darwin/arm64"

step "Archives of the command"
for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64; do
  folder=$work/cli/${platform/\//-}
  mkdir -p "$folder"
  cp "out/bin/${platform/\//-}/assay" LICENSE "$folder/"
  [ ! -f "out/bin/${platform/\//-}/assay-runner" ] || cp "out/bin/${platform/\//-}/assay-runner" "$folder/"
  # shellcheck disable=SC2046 # Names without spaces.
  pack "$dist/assay_${version}_${platform/\//_}.tar.gz" "$folder" $(ls "$folder")
done

step "Images"
bin/cluster images layout "$work/images" --bin 'out/bin/linux-{arch}' --platforms "$platforms" | tee "$work/image-digests"
for layout in "$work"/images/*; do
  pack "$dist/$(basename "$layout")_$version.oci.tar" "$layout" .
done

step "Chart"
cp -R charts/assay "$work/chart"
bin/cluster images chart "$work/chart" --layouts "$work/images" ${REGISTRY:+--registry "$REGISTRY"}
helm=$(bin/cluster build --print-dir helm)/helm
"$helm" lint --quiet "$work/chart"
"$helm" package "$work/chart" --destination "$work" >/dev/null
# Helm packs with the time of the day.
mkdir "$work/packed"
tar -C "$work/packed" -xzf "$work/assay-$version.tgz"
pack "$work/assay-$version.tar.gz" "$work/packed" assay
mv "$work/assay-$version.tar.gz" "$dist/assay-$version.tgz"
chart_digest=$(bin/cluster images chart --archive "$dist/assay-$version.tgz" --out "$work/chart-layout")
pack "$dist/assay-chart_$version.oci.tar" "$work/chart-layout" .

step "SBOMs"
for platform in ${platforms//,/ } darwin/amd64 darwin/arm64; do
  bin/cluster sbom "out/bin/${platform/\//-}"/* --platform "$platform" --time "$epoch" --out "$dist"
done

step "Manifests of package managers, and the install script"
fill() {
  local text platform
  text=$(sed -e "s|@VERSION@|$version|g" -e "s|@DOWNLOADS@|$downloads|g" "$1")
  for platform in linux_amd64 linux_arm64 darwin_amd64 darwin_arm64; do
    text=${text//@SHA256_$platform@/$(sha256sum "$dist/assay_${version}_$platform.tar.gz" | cut -d ' ' -f 1)}
  done
  printf '%s\n' "$text"
}
fill hack/release/install.sh >"$dist/install.sh"
fill hack/release/krew.yaml >"$dist/krew.yaml"
fill hack/release/assay.rb >"$dist/assay.rb"

step "Notes, provenance, checksums"
{
  printf '# Assay %s\n\n' "$version"
  cat "$work/notes"
  printf '\n## Images\n\n'
  sed 's/^/* `/; s/$/`/' "$work/image-digests"
  printf '* chart: `assay-%s@%s`\n\n' "$version" "$chart_digest"
  if [ -n "${COSIGN_KEY:-}" ]; then
    echo 'Signed: `cosign verify-blob --key cosign.pub --bundle SHA256SUMS.bundle --insecure-ignore-tlog SHA256SUMS` checks the checksums'
    echo 'of all files, and `cosign verify-blob-attestation --key cosign.pub --bundle provenance.bundle --insecure-ignore-tlog'
    echo '--type slsaprovenance1 FILE` what a file was made from.'
  else
    echo '**Not signed:** it was made without a key.'
  fi
  [ -z "$dirty" ] || printf '\n**Not reproducible:** it was made from a tree with changes that are not committed.\n'
} >"$dist/RELEASE_NOTES.md"
# Written elsewhere first, because it names every file of the folder.
bin/cluster provenance "$dist" --commit "$commit" ${dirty:+--dirty} --builder "${BUILDER_ID:-https://assay.dev/make-release}" \
  --parameter "VERSION=$version" --parameter "PLATFORMS=$platforms" --parameter "REGISTRY=${REGISTRY:-}" \
  --parameter "DOWNLOADS=$downloads" --tool "go=$(go env GOVERSION)" --tool "rustc=$(rustc --version)" >"$work/provenance.intoto.json"
mv "$work/provenance.intoto.json" "$dist/"
(cd "$dist" && find . -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum) >"$work/SHA256SUMS"
mv "$work/SHA256SUMS" "$dist/"
if [ -n "${COSIGN_KEY:-}" ]; then
  step "Signatures"
  # Without a transparency log: a release can be made where no service is reached, and before anyone is told of it.
  offline=(--yes --key "$key" --tlog-upload=false --use-signing-config=false)
  hack/tool.sh cosign sign-blob "${offline[@]}" --bundle "$dist/SHA256SUMS.bundle" "$dist/SHA256SUMS" >/dev/null
  hack/tool.sh cosign attest-blob "${offline[@]}" --bundle "$dist/provenance.bundle" --statement "$dist/provenance.intoto.json" >/dev/null
  printf '%s\n' "$public" >"$dist/cosign.pub"
  # Cosign writes bundles that only their owner may read.
  chmod 644 "$dist"/*.bundle "$dist/cosign.pub"
fi
(cd "$dist" && ls -l)
step "Done: dist/ is version $version${COSIGN_KEY:+, signed}"
