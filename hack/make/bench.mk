##@ Measure (never while something else runs)

.PHONY: build-figures
build-figures: build-go build-rust ## Build the program that measures the figures of a kernel.
	@cd operator && $(GO_BUILD) -o ../bin/figures ./calibration/cmd/figures

# PUBLISH=1 also puts the figures of a kernel into the table of its page, run by run as they are measured.
publish = $(if $(PUBLISH),--publish workloads/$(1)/README.md)

.PHONY: bench-pir
bench-pir: build-figures ## Figures of the PIR kernel, one JSON line each, of the runs that workflows/figures/pir.yaml names.
	@bin/figures workflows/figures/pir.yaml $(call publish,scan/pir)

.PHONY: bench-rms24
bench-rms24: build-figures ## Figures of the RMS24 client and server: the runs that workflows/figures/rms24.yaml names.
	@bin/figures workflows/figures/rms24.yaml $(call publish,batch/rms24)

.PHONY: bench-curp
bench-curp: build-figures ## Figures of the CURP-HO replicas: the runs that workflows/figures/curp.yaml names.
	@bin/figures workflows/figures/curp.yaml $(call publish,batch/curp-ho)

.PHONY: bench-diskann
bench-diskann: build-figures ## Figures of the vector index: the runs that workflows/figures/diskann.yaml names.
	@bin/figures workflows/figures/diskann.yaml $(call publish,insert/diskann)

.PHONY: bench-diskann-scale
bench-diskann-scale: build-figures ## Figures of 100,000 and a million vectors within a memory budget (an hour; 2 GB in /var/tmp).
	@bin/figures workflows/figures/diskann-scale.yaml $(call publish,insert/diskann); status=$$?; \
	rm -rf /var/tmp/assay-insert-diskann; exit $$status

.PHONY: bench-diskann-peers
bench-diskann-peers: build-figures ## Figures of the vector index beside others. PEERS_PYTHON=python with the study's peers.txt.
	@$(CARGO_RELEASE) -p insert-diskann --features peer
	@cp -f target/$(RUST_TARGET)/release/insert-diskann bin/
	@rm -f bin/diskann-peers
	@$(if $(PEERS_PYTHON),printf '#!/bin/sh\nexec %s %s "$$@"\n' "$(abspath $(PEERS_PYTHON))" \
		"$(CURDIR)/workflows/studies/diskann-insert/peers.py" >bin/diskann-peers && chmod +x bin/diskann-peers)
	@bin/figures workflows/figures/diskann-peers.yaml $(call publish,insert/diskann)

.PHONY: bench-mork
bench-mork: build-figures ## Figures of the MeTTa facts: the runs that workflows/figures/mork.yaml names.
	@bin/figures workflows/figures/mork.yaml $(call publish,insert/mork)

# A run that has begun is finished; an Invalid one replaces no result. hack/studies.sh measures given runs, or all.
.PHONY: studies
studies: build ## Measure the runs of the studies that are not current, the stalest first, into results/local (hours; BUDGET=150m).
	@cd operator && $(GO_BUILD) -o ../bin/studies ./calibration/cmd/studies
	@bin/studies refresh $(if $(BUDGET),--budget $(BUDGET)) --bin-dir bin

# Results are measured with the release profile, so that programs of another one say nothing about them.
.PHONY: studies-state
studies-state: build ## Claims without an answer, stale results, missing ledgers, numbers without a reference (measures nothing).
	@cd operator && $(GO_BUILD) -o ../bin/studies ./calibration/cmd/studies
	@bin/studies state --bin-dir "$(if $(filter checked,$(RUST_PROFILE)),,bin)"

.PHONY: studies-pilot
studies-pilot: ## Run a block of every study at full size here: does every trial work, and how long does a run take?
	@hack/studies.sh --pilot

.PHONY: studies-cluster
studies-cluster: ## Run every study's run.yaml at full size on a cluster, into workflows/studies/*/results/cluster.
	@hack/studies.sh --cluster

.PHONY: build-calibration
build-calibration: build-go build-rust ## Build the programs for calibration: calibrate and the noisy neighbour.
	@cd operator && $(GO_BUILD) -o ../bin/calibrate ./calibration/cmd/calibrate

.PHONY: calibrate
calibrate: build-calibration ## How often verdicts are wrong, simulated and on this machine, into docs/methodology (an hour, alone).
	@$(MAKE) --no-print-directory calibrate-simulated RUNS=$(or $(RUNS),400)
	@bin/calibrate real --runs 30 --out out/calibration --json out/calibration.json --update docs/methodology/calibration.md
	@bin/calibrate limits --ledgers out/calibration --update docs/methodology/noise.md

# Counts of all seeds so far, for the present code.
COUNTS := docs/methodology/simulated.json

.PHONY: calibrate-simulated
calibrate-simulated: build-calibration ## Add simulated runs with the next seed to the tracked counts and their table: RUNS=n of every row.
	@bin/calibrate simulate --runs $(or $(RUNS),100) --counts $(COUNTS) --update docs/methodology/calibration.md

.PHONY: calibrate-cluster
calibrate-cluster: build-calibration ## The same on the embedded cluster (hours; nothing else may run). RUNS=n runs of every row.
	@hack/calibrate.sh --runs $(or $(RUNS),30) --json out/calibration-cluster.json --update docs/methodology/calibration.md

.PHONY: calibrate-smoke
calibrate-smoke: build-calibration ## The same in minutes, for CI: fails if a target is missed for certain.
	@bin/calibrate simulate --runs 60 --check
	@bin/calibrate real --runs 2 --slowdown 0,5 --neighbour cpu --check
	@bin/calibrate attacks
	@bin/calibrate killed
	@bin/calibrate broken

.PHONY: calibrate-why
calibrate-why: build ## How often assay bench --why names the right cause of known differences, and a cause of none (minutes).
	@rm -rf out/why && mkdir -p out/why/bin && cp bin/assay bin/assay-runner out/why/bin/
	@cd operator && $(GO_BUILD) -o ../out/why/bin/ ./calibration/cmd/calibratewhy ./calibration/cmd/calibratewhy/known
	@out/why/bin/calibratewhy -bin out/why/bin -out out/why/ledgers

.PHONY: calibrate-history
calibrate-history: build-calibration ## Error rates of histories on simulated years, into docs/history.md (half an hour); OTAVA=python.
	@bin/calibrate history --years 300 --bisections 200 --otava "$(OTAVA)" --update docs/history.md

.PHONY: calibrate-history-real
calibrate-history-real: build-calibration ## The same on real series of this machine (an hour, alone). REPEAT=n of each.
	@bin/calibrate nights --repeat $(or $(REPEAT),1) --update docs/history.md

.PHONY: bench-history
bench-history: build-calibration ## Figures of histories: false alerts, recall, delay, bisection, and the cost of detection; OTAVA=python.
	@bin/calibrate history --otava "$(OTAVA)"

.PHONY: bench-verdict
bench-verdict: build-calibration ## Figures of verdicts: error rates, power and cost.
	@bin/calibrate figures --runs $(or $(RUNS),20) --counts $(COUNTS)
	@bin/calibrate attacks
	@bin/calibrate killed
	@cargo run --quiet --locked -p assay-adapters --example cells
	@bin/calibrate broken
	@bin/assay-runner bench
	@hack/perturbation.sh

.PHONY: bench-platform
bench-platform: ## Figures of the platform itself: memory, planning, reconcile duration, and the overhead of a run.
	@hack/bench-platform.sh

.PHONY: bench-command
bench-command: build-calibration ## Figures of assay bench beside a neighbour: RUNS=n (20) minutes each of different and of equal commands.
	@bin/calibrate commands --runs $(or $(RUNS),20) --simulated $(if $(RUNS),$(shell echo $$(($(RUNS) * 100))),2000) \
	  --counts docs/methodology/commands.json

.PHONY: bench-suite
bench-suite: build-calibration build ## Figures of assay suite: RUNS=n (2000) suites of equal builds; and of scans with assay bench.
	@bin/calibrate suites --runs $(or $(RUNS),2000) --parallel 2 --counts docs/methodology/suites.json
	@hack/bench-scan.sh

.PHONY: bench-causes
bench-causes: ## Figures of the causes of broken runs: all are told where people look, and how soon.
	@mkdir -p out
	@cd operator && CGO_ENABLED=0 go test -count=1 ./test/causes -args -figures=$(CURDIR)/out/causes.json >&2
	@cat out/causes.json

.PHONY: bench-nodes
bench-nodes: bin/cluster ## Figures of RUNS=n (1000) runs on half as many simulated nodes: leases, passes, memory, size of a status.
	@mkdir -p out
	@rm -f out/nodes.json; status=0; \
	  assets=$${KUBEBUILDER_ASSETS:-$$(bin/cluster build --print-dir etcd kube-apiserver kubectl)}; \
	  (cd operator && KUBEBUILDER_ASSETS=$$assets go test -count=1 -timeout 90m -run TestScale ./test/integration -args \
	  -scale-runs=$(or $(RUNS),1000) -scale-nodes=$$(($(or $(RUNS),1000) / 2)) -scale-releases=20 \
	  -scale-figures=$(CURDIR)/out/nodes.json >&2) || status=$$?; \
	  if [ -f out/nodes.json ]; then cat out/nodes.json; fi; exit $$status

.PHONY: bench-first-minute
bench-first-minute: ## Figures of the first minutes: install dist/ (make release), a first verdict, and the demo, cold and warm (an hour).
	@hack/bench-first-minute.sh

.PHONY: house
house: ## Compare with an earlier commit: verdicts, run time, lines of code and of prose (HOUSE_BASE=COMMIT; half an hour, alone).
	@hack/house.sh
