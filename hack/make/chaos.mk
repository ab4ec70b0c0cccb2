##@ Faults and attacks
GO_MODULES += test/chaos
GO_PROGRAMS += test/chaos

FUZZTIME ?= 1m
FUZZ_SECONDS ?= 60
# Every target by its package below operator/.
FUZZ := $(addprefix internal/fuzz:,FuzzSpec FuzzLedger FuzzRenderers FuzzReport FuzzRecord FuzzKeeper FuzzPolicy) internal/store:FuzzArchive

.PHONY: chaos
chaos: ## 200 faults against the embedded cluster while runs measure (an hour; figures on standard output).
	@hack/chaos.sh chaos

.PHONY: chaos-smoke
chaos-smoke: ## Six to ten faults, by a seed, within four minutes; a part of make e2e. CHAOS_CLUSTER=running, SEED=N, FAULTS=name,...
	@hack/chaos.sh smoke

.PHONY: attack
attack: ## Attacks by a tenant's specs and a hostile image, one test for each promise of the threat model.
	@hack/chaos.sh attack

.PHONY: attack-guards
attack-guards: bin/cluster ## Take every guard out, and demand that its attack succeeds (an hour; a figure). ONLY=words, CLUSTER_TOO=1.
	@assets="$$(bin/cluster build --print-dir etcd kube-apiserver kubectl minio helm)" \
	  && export KUBEBUILDER_ASSETS="$$assets" PATH="$$assets:$$PATH" \
	  && cd operator && go run ./test/attacks/guards $(if $(ONLY),-only '$(ONLY)') $(if $(CLUSTER_TOO),-cluster)

# Coverage by the stable compiler, as cargo-fuzz asks for it without a sanitizer.
FUZZ_RUSTFLAGS := -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
  -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing
FUZZ_PROGRAMS := out/fuzz/target/x86_64-unknown-linux-gnu/release

.PHONY: fuzz-rust
fuzz-rust: ## libFuzzer on the Rust decoders of network messages and files, FUZZ_SECONDS each. Needs a C++ compiler.
	@RUSTFLAGS="$(FUZZ_RUSTFLAGS)" cargo build --manifest-path workloads/fuzz/Cargo.toml --locked --release \
	  --target x86_64-unknown-linux-gnu --target-dir out/fuzz/target
	@for f in $(basename $(notdir $(wildcard workloads/fuzz/*.rs))); do \
	  seeds=workloads/fuzz/seeds/$$f; [ -d $$seeds ] || seeds=; \
	  echo "== $$f" && mkdir -p out/fuzz/$$f \
	  && $(FUZZ_PROGRAMS)/$$f -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 -artifact_prefix=out/fuzz/$$f- out/fuzz/$$f $$seeds \
	    2>out/fuzz/$$f.log || { tail -n 40 out/fuzz/$$f.log; exit 1; }; \
	  grep -E 'stat::(number_of_executed_units|new_units_added)' out/fuzz/$$f.log; done

.PHONY: fuzz
fuzz: fuzz-rust ## Go fuzzing of untrusted inputs, FUZZTIME each; failing inputs go to testdata/fuzz.
	@for f in $(FUZZ); do \
	  (cd operator && go test ./$${f%%:*} -run '^$$' -fuzz "^$${f##*:}$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x) || exit 1; done

.PHONY: test-chaos
test-chaos: ## The checks of the fault suite, on ledgers broken by hand.
	@cd test/chaos && $(GO_TEST) ./...

test: test-chaos
