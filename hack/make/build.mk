##@ Build

# Compiling without debug information is faster. Checks and tests use the same flags, because Go's
# cache has a package once for each set of them.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(filter-out -trimpath -gcflags=%,$(GOFLAGS)) -trimpath -gcflags=all=-dwarf=false)
# A compiler that collects less garbage is faster.
GO_BUILD := GOGC=400 go build -ldflags "-s -w -X main.version=$(VERSION)"
# A runner that goes into any image, and kernels that run in an empty one, cannot look for a C library there.
CARGO_RELEASE := RUSTFLAGS="-C target-feature=+crt-static" cargo build --manifest-path workloads/Cargo.toml --locked --release \
  --target x86_64-unknown-linux-gnu

KERNELS := scan-pir batch-rms24 batch-curp-ho insert-diskann insert-mork spin-kernel
RUST_PACKAGES := assay-runner assay-neighbour $(KERNELS)
RUST_PROGRAMS := assay-runner assay-neighbour $(KERNELS)
# Programs that attack Assay in tests are in no release.
TEST_PROGRAMS := assay-hostile

# timed runs commands and says how long they took, as bin/cluster does of the components that it compiles.
timed = @begin=$$(date +%s); $(2); printf 'build %-24s %-38s %d s\n' $(1) $(VERSION) $$(($$(date +%s) - begin)) >&2

.PHONY: build
build: build-go build-rust ## Build assay, the manager, the cluster tool, the runner and the kernels into bin/.

.PHONY: build-go
build-go: bin/cluster
	$(call timed,assay,(cd operator && $(GO_BUILD) -o ../bin/manager ./cmd && $(GO_BUILD) -o ../bin/assay ./cmd/assay))
	@ln -sf assay bin/kubectl-assay && ln -sf assay bin/kubectl_complete-assay

.PHONY: build-rust
build-rust:
	@mkdir -p bin
	$(call timed,workloads,$(CARGO_RELEASE) $(RUST_PACKAGES:%=-p %))
	@cp -f $(patsubst %,workloads/target/x86_64-unknown-linux-gnu/release/%,$(RUST_PROGRAMS) $(TEST_PROGRAMS)) bin/

.PHONY: bin/assay
bin/assay:
	@cd operator && $(GO_BUILD) -o ../bin/assay ./cmd/assay

.PHONY: bin/assay-runner
bin/assay-runner:
	@mkdir -p bin
	@$(CARGO_RELEASE) -p assay-runner
	@cp -f workloads/target/x86_64-unknown-linux-gnu/release/assay-runner bin/

.PHONY: bin/cluster
bin/cluster:
	@cd cluster && $(GO_BUILD) -o ../bin/cluster ./cmd/cluster

.PHONY: clean
clean: ## Remove build outputs of this checkout (the cache stays: rm -rf $ASSAY_CACHE).
	rm -rf bin out workloads/target
