##@ Unsafe code

# The stable compiler ships the runtimes of the sanitizers, and takes their flags where it is told to as if it were not stable.
SANITIZER_RUSTFLAGS := -Zsanitizer=address
# The crates whose unsafe code reads and writes memory by vectors and pointers: elsewhere it is system calls.
SANITIZE ?= assay-harness scan-pir batch-rms24
SANITIZE_TARGET := x86_64-unknown-linux-gnu

.PHONY: sanitize
sanitize: ## The tests of the Rust crates with unsafe code under AddressSanitizer (some ten minutes). SANITIZE=scan-pir: of one.
	@RUSTC_BOOTSTRAP=1 RUSTFLAGS="$(SANITIZER_RUSTFLAGS)" cargo test --locked --lib --bins --tests \
	  --target $(SANITIZE_TARGET) --target-dir out/sanitize $(SANITIZE:%=-p %)
	@# The indexes of vectors and of facts by their properties: other tests count page faults and bound memory, which the sanitizer takes
	@# for itself. The first links a database in C that has two tables of one name in one file.
	@ASAN_OPTIONS=detect_odr_violation=0 RUSTC_BOOTSTRAP=1 RUSTFLAGS="$(SANITIZER_RUSTFLAGS)" \
	  cargo test --locked --test properties \
	  --target $(SANITIZE_TARGET) --target-dir out/sanitize -p insert-diskann -p insert-mork

# Of the nightly compiler, with rustup component add miri rust-src. It knows AVX2, and neither AVX-512 nor the making of AES keys.
MIRI_TOOLCHAIN ?= nightly
# Inputs of each property: it is some thousand times as slow as the CPU.
MIRI_CASES ?= 16

# Of a crate the tests that enter its unsafe code, as few as Miri can execute in minutes: CRATE:KIND:FILTER.
MIRI := assay-harness:--lib:simd:: scan-pir:--test=properties:a_few_rows insert-diskann:--test=properties:every_path_

.PHONY: miri
miri: ## The unsafe code of vectors, scans and distances under Miri, which finds undefined behaviour (ten minutes, most of them to compile).
	@for t in $(MIRI); do set -- $$(echo "$$t" | sed 's/:/ /; s/:/ /'); echo "== $$t"; \
	  RUSTFLAGS="-Ctarget-feature=+avx2,+fma$$([ "$$1" = assay-harness ] && echo ,+aes)" \
	  MIRIFLAGS=-Zmiri-disable-isolation PROPTEST_CASES=$(MIRI_CASES) cargo +$(MIRI_TOOLCHAIN) miri test \
	  --locked -p "$$1" "$$2" -- "$$3" || exit 1; done
