##@ Measure (never while something else runs)

.PHONY: build-figures
build-figures: build-go build-rust ## What the figures of a kernel need beside the build: figures.
	@cd operator && $(GO_BUILD) -o ../bin/figures ./cmd/figures

.PHONY: bench-pir
bench-pir: build-figures ## Figures of the PIR kernel, one JSON line each: the runs that workflows/figures/pir.yaml names.
	@bin/figures workflows/figures/pir.yaml

.PHONY: bench-rms24
bench-rms24: build-figures ## Figures of the RMS24 client and server: the runs that workflows/figures/rms24.yaml names.
	@bin/figures workflows/figures/rms24.yaml

.PHONY: bench-curp
bench-curp: build-rust ## Figures of the CURP-HO replicas.
	@bin/batch-curp-ho bench

.PHONY: bench-diskann
bench-diskann: build-rust ## Figures of the vector index.
	@bin/insert-diskann bench

.PHONY: bench-diskann-scale
bench-diskann-scale: build-rust ## Figures of 100,000 and of a million vectors within a memory budget (half an hour, most of it to make them).
	@bin/insert-diskann scale --size=100000
	@bin/insert-diskann scale

.PHONY: bench-diskann-peers
bench-diskann-peers: build-rust ## Figures of the vector index beside others. PEERS_PYTHON=python with workflows/studies/diskann-insert/peers.txt installed.
	@bin/insert-diskann peers $(if $(PEERS_PYTHON),--peers="$(PEERS_PYTHON) workflows/studies/diskann-insert/peers.py")

.PHONY: bench-diskann-live
bench-diskann-live: build-rust ## Figures of the vector index while it is searched, updated and deleted from. SEARCHERS=n threads search.
	@bin/insert-diskann live $(if $(SEARCHERS),--searchers=$(SEARCHERS))

.PHONY: bench-mork
bench-mork: build-rust ## Figures of the MeTTa facts.
	@bin/insert-mork bench

.PHONY: studies
studies: ## Run every study at full size on this machine, into workflows/studies/*/results/local (two hours).
	@hack/studies.sh

.PHONY: studies-cluster
studies-cluster: ## Run every study's run.yaml at full size on a cluster, into workflows/studies/*/results/cluster.
	@hack/studies.sh --cluster

.PHONY: build-calibration
build-calibration: build-go build-rust ## What calibrating needs beside the build: calibrate and the noisy neighbour.
	@cd operator && $(GO_BUILD) -o ../bin/calibrate ./cmd/calibrate

.PHONY: calibrate
calibrate: build-calibration ## How often verdicts are wrong, on simulated machines and on this one, into docs/methodology.md (an hour; nothing else may run).
	@bin/calibrate simulate --runs 2000 --update docs/methodology.md
	@bin/calibrate real --runs 30 --out out/calibration --json out/calibration.json --update docs/methodology.md
	@bin/calibrate limits --ledgers out/calibration --update docs/methodology.md

.PHONY: calibrate-cluster
calibrate-cluster: build-calibration ## The same on the embedded cluster (hours; nothing else may run). RUNS=n runs of every row.
	@hack/calibrate.sh --runs $(or $(RUNS),30) --json out/calibration-cluster.json --update docs/methodology.md

.PHONY: calibrate-smoke
calibrate-smoke: build-calibration ## The same in minutes, for CI: fails if a target is missed for certain.
	@bin/calibrate simulate --runs 200 --check
	@bin/calibrate real --runs 2 --slowdown 0,5 --neighbour cpu --check
	@bin/calibrate attacks

.PHONY: calibrate-history
calibrate-history: build-calibration ## What histories find, on simulated years, into docs/history.md (half an hour). OTAVA=python: beside Apache Otava.
	@bin/calibrate history --years 300 --bisections 200 --otava "$(OTAVA)" --update docs/history.md

.PHONY: bench-history
bench-history: build-calibration ## Figures of histories: false alerts, recall, delay, bisection, and what detection costs. OTAVA=python: beside Apache Otava.
	@bin/calibrate history --otava "$(OTAVA)"

.PHONY: bench-verdict
bench-verdict: build-calibration ## Figures of verdicts: how often they are wrong, what they find, and what they cost.
	@bin/calibrate figures
	@bin/calibrate attacks
	@bin/assay-runner bench
	@hack/perturbation.sh

.PHONY: bench-platform
bench-platform: ## Figures of the platform itself: memory, planning, reconcile duration, and what a run costs beside its pods.
	@hack/bench-platform.sh

.PHONY: bench-first-minute
bench-first-minute: ## Figures of the first minutes: install dist/ (make release), a first verdict, and the demo, cold and warm (an hour).
	@hack/bench-first-minute.sh
