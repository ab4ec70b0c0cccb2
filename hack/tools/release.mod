// What make release uses and CI does not need for anything else: it writes SBOMs, and signs.
module assay.dev/assay/hack/tools

go 1.26.8

tool (
	github.com/anchore/syft/cmd/syft
	github.com/sigstore/cosign/v3/cmd/cosign
)

require (
	github.com/anchore/syft v1.57.0
	github.com/sigstore/cosign/v3 v3.1.3
)
