##@ Unsafe code

# The stable compiler ships the runtimes of the sanitizers, and takes their flags where it is told to as if it were not stable.
SANITIZER_RUSTFLAGS := -Zsanitizer=address
# The crates whose unsafe code reads and writes memory by vectors and pointers. Elsewhere it is system calls, and the vector index links C.
SANITIZE ?= assay-harness scan-pir batch-rms24
SANITIZE_TARGET := x86_64-unknown-linux-gnu

.PHONY: sanitize
sanitize: ## The tests of the Rust crates with unsafe code under AddressSanitizer (some ten minutes). SANITIZE=scan-pir: of one.
	@RUSTC_BOOTSTRAP=1 RUSTFLAGS="$(SANITIZER_RUSTFLAGS)" cargo test --manifest-path workloads/Cargo.toml --locked --lib --bins --tests \
	  --target $(SANITIZE_TARGET) --target-dir out/sanitize $(SANITIZE:%=-p %)
