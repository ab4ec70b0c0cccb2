##@ Build

# Compiling without debug information is faster. Checks and tests use the same flags, because Go's
# cache has a package once for each set of them.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(filter-out -trimpath -gcflags=%,$(GOFLAGS)) -trimpath -gcflags=all=-dwarf=false)
# A compiler that collects less garbage is faster.
GO_BUILD := GOGC=400 go build -ldflags "-s -w -X main.version=$(VERSION)"
# Rust programs are linked statically, because the images in which they run may have no C library.
RUST_TARGET := x86_64-unknown-linux-gnu
STATIC_CARGO := RUSTFLAGS="-C target-feature=+crt-static" cargo
CARGO_RELEASE := $(STATIC_CARGO) build --locked --release --target $(RUST_TARGET)
# Lint and tests use the profile `checked`, with one selection of packages and features. Cargo compiles a dependency again for each set of
# flags and features, so that a command with another selection would compile the dependencies a second time.
CHECKED := --locked --profile checked --target $(RUST_TARGET) --workspace --all-targets --features insert-diskann/peer
# The profile of the programs in bin/. CI sets `checked`, whose programs the tests have built already.
RUST_PROFILE ?= release
RUST_BIN := target/$(RUST_TARGET)/$(RUST_PROFILE)

KERNELS := scan-pir batch-rms24 batch-curp-ho insert-diskann insert-mork spin-kernel
RUST_PACKAGES := assay-runner assay-neighbour $(KERNELS)
RUST_PROGRAMS := assay-runner assay-neighbour $(KERNELS)
# Programs that attack Assay in tests, or are killed in them, are in no release.
TEST_PROGRAMS := assay-hostile assay-killed

# cargo_build compiles packages with the profile of bin/.
cargo_build = $(if $(filter checked,$(RUST_PROFILE)),$(STATIC_CARGO) build $(CHECKED),$(CARGO_RELEASE) $(1:%=-p %))

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
	$(call timed,workloads,$(call cargo_build,$(RUST_PACKAGES)))
	@cp -f $(patsubst %,$(RUST_BIN)/%,$(RUST_PROGRAMS) $(TEST_PROGRAMS)) bin/

.PHONY: bin/assay
bin/assay:
	@cd operator && $(GO_BUILD) -o ../bin/assay ./cmd/assay

.PHONY: bin/assay-runner
bin/assay-runner:
	@mkdir -p bin
	@$(call cargo_build,assay-runner)
	@cp -f $(RUST_BIN)/assay-runner bin/

.PHONY: bin/cluster
bin/cluster:
	@cd cluster && $(GO_BUILD) -o ../bin/cluster ./cmd/cluster

.PHONY: clean
clean: ## Remove build outputs of this checkout (the cache stays: rm -rf $ASSAY_CACHE).
	rm -rf bin out target
