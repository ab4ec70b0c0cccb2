#!/usr/bin/env bash
# Runs a tool in the version that this file pins, compiled with the dependencies of its own release: hack/tool.sh NAME [arguments]. The
# first call compiles it into the cache. golangci-lint is pinned in hack/tools instead, because the API linter's release has an older one.
set -euo pipefail
case ${1:-} in
  actionlint) package=github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 ;;
  controller-gen) package=sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 ;;
  cosign) package=github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3 ;;
  crd-ref-docs) package=github.com/elastic/crd-ref-docs@v0.3.0 ;;
  deadcode) package=golang.org/x/tools/cmd/deadcode@v0.52.0 ;;
  govulncheck) package=golang.org/x/vuln/cmd/govulncheck@v1.9.0 ;;
  gremlins) package=github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0 ;;
  *)
    echo "tool.sh: unknown tool \"${1:-}\": choose from actionlint, controller-gen, cosign, crd-ref-docs, deadcode, govulncheck and" \
      "gremlins" >&2
    exit 2
    ;;
esac
# A tool reads the code of its compiler's version only, so each compiler has its own.
folder=${ASSAY_CACHE:-$HOME/.cache/assay}/tools/$(go env GOVERSION)/$1-${package##*@}
[ -x "$folder/$1" ] || GOBIN=$folder go install "$package"
exec "$folder/$1" "${@:2}"
