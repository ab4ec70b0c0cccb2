##@ Unsafe code

# The stable compiler ships the runtimes of the sanitizers, and takes their flags where it is told to as if it were not stable.
SANITIZER_RUSTFLAGS := -Zsanitizer=address
# The crates whose unsafe code reads and writes memory by vectors and pointers: elsewhere it is system calls.
SANITIZE ?= assay-harness scan-pir batch-rms24
SANITIZE_TARGET := x86_64-unknown-linux-gnu

.PHONY: sanitize
sanitize: ## The tests of the Rust crates with unsafe code under AddressSanitizer (some ten minutes). SANITIZE=scan-pir: of one.
	@RUSTC_BOOTSTRAP=1 RUSTFLAGS="$(SANITIZER_RUSTFLAGS)" cargo test --manifest-path workloads/Cargo.toml --locked --lib --bins --tests \
	  --target $(SANITIZE_TARGET) --target-dir out/sanitize $(SANITIZE:%=-p %)
	@# The vector index by its properties. It links a database in C that has two tables of one name in one file.
	@ASAN_OPTIONS=detect_odr_violation=0 RUSTC_BOOTSTRAP=1 RUSTFLAGS="$(SANITIZER_RUSTFLAGS)" \
	  cargo test --manifest-path workloads/Cargo.toml --locked --test properties \
	  --target $(SANITIZE_TARGET) --target-dir out/sanitize -p insert-diskann

# Of the nightly compiler, with rustup component add miri rust-src. It knows AVX2, and neither AVX-512 nor the making of AES keys.
MIRI_TOOLCHAIN ?= nightly
# Inputs of each property: it is some thousand times as slow as the CPU.
MIRI_CASES ?= 16

.PHONY: miri
miri: ## The vectors that all kernels share under Miri, which finds undefined behaviour (a few minutes, most of them to compile).
	@RUSTFLAGS="-Ctarget-feature=+avx2,+fma,+aes" MIRIFLAGS=-Zmiri-disable-isolation PROPTEST_CASES=$(MIRI_CASES) \
	  cargo +$(MIRI_TOOLCHAIN) miri test \
	  --manifest-path workloads/Cargo.toml --locked -p assay-harness --lib -- simd::
