##@ Release

# Where images go: a host, with a port and a path if need be, such as ghcr.io/acme.
REGISTRY ?=
PLATFORMS ?= linux/amd64,linux/arm64
# With a key (cosign generate-key-pair), images, chart and checksums are signed; with none, the release says that it is unsigned.
COSIGN_KEY ?=
# Where the archives of a release can be downloaded, for the krew manifest, the formula and the install script.
DOWNLOADS ?= https://github.com/assay-dev/assay/releases/download/v$(VERSION)

# Read by hack/platforms.sh and hack/release.sh.
images release test-arm64: export RUST_PACKAGES := $(RUST_PACKAGES)
images release test-arm64: export RUST_PROGRAMS := $(RUST_PROGRAMS)
export REGISTRY COSIGN_KEY DOWNLOADS PLATFORMS

.PHONY: images
images: bin/cluster ## Images of PLATFORMS (linux/amd64,linux/arm64) as OCI layouts below out/images; VERSION names another version.
	@hack/platforms.sh programs '$(PLATFORMS)'
	@bin/cluster images layout out/images --bin 'out/bin/linux-{arch}' --platforms '$(PLATFORMS)'

.PHONY: push
push: bin/cluster ## Push the images of `make images` to REGISTRY, with the credentials of docker login; PUSH_ARGS=--all adds others'.
	@test -n "$(REGISTRY)" || { echo 'REGISTRY is not set: name a host, with a path if need be, such as REGISTRY=ghcr.io/acme'; exit 2; }
	@hack/push.sh '$(REGISTRY)' '$(COSIGN_KEY)' --layouts out/images $(PUSH_ARGS)

.PHONY: test-arm64
test-arm64: ## The property suites of the kernels, built for linux/arm64 and run with qemu.
	@hack/platforms.sh test arm64

.PHONY: release
release: bin/cluster ## Everything a release has, into dist/: VERSION=1.2.3, REGISTRY=ghcr.io/acme, COSIGN_KEY=cosign.key.
	@hack/release.sh

.PHONY: push-release
push-release: bin/cluster ## Push the images and the chart of `make release` to REGISTRY, the chart to REGISTRY/charts.
	@test -n "$(REGISTRY)" || { echo 'REGISTRY is not set: name a host, with a path if need be, such as REGISTRY=ghcr.io/acme'; exit 2; }
	@hack/push.sh '$(REGISTRY)' '$(COSIGN_KEY)' --layouts out/release/images --chart out/release/chart-layout $(PUSH_ARGS)

.PHONY: test-release
test-release: bin/cluster ## Install from dist/ alone: the CLI without a toolchain, files, signatures, a push to a local registry.
	@PATH="$$(bin/cluster build --print-dir helm registry):$$PATH"; export PATH; cd test/release && go test -count=1 ./...

.PHONY: e2e-release
e2e-release: bin/cluster ## Push dist/ to a registry on the embedded cluster, install from it by digest, and reach a verdict.
	@hack/e2e-release.sh
