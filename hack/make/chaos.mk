##@ Hurt
GO_MODULES += test/chaos

FUZZTIME ?= 1m
# Every target by its package below operator/.
FUZZ := internal/fuzz:FuzzSpec internal/fuzz:FuzzLedger internal/fuzz:FuzzReport internal/fuzz:FuzzRecord internal/fuzz:FuzzKeeper internal/fuzz:FuzzPolicy

.PHONY: chaos
chaos: ## 200 faults against the embedded cluster while runs measure, then the attacks (more than an hour; figures on standard output).
	@hack/chaos.sh chaos

.PHONY: chaos-smoke
chaos-smoke: ## Ten faults within five minutes. CHAOS_CLUSTER=running takes the cluster that is there; SEED=N, FAULTS=name,... choose.
	@hack/chaos.sh smoke

.PHONY: attack
attack: ## What a tenant's specs and a hostile image may try, one test for each promise of the threat model.
	@hack/chaos.sh attack

.PHONY: fuzz
fuzz: ## Go fuzzing of specs, ledgers, reports, records, messages of runners and policies, FUZZTIME each. What fails is kept in testdata/fuzz, and is a test from then on.
	@for f in $(FUZZ); do (cd operator && go test ./$${f%%:*} -run '^$$' -fuzz "^$${f##*:}$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x) || exit 1; done

.PHONY: test-chaos
test-chaos: ## The checks of the fault suite, on ledgers broken by hand.
	@cd test/chaos && go test -count=1 ./...

test: test-chaos
