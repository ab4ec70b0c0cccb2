##@ Cluster

.PHONY: quickstart
quickstart: build-go build-rust ## The PIR study without a cluster, in a few minutes.
	@hack/quickstart.sh

.PHONY: demo
demo: ## The PIR study on a real cluster: build, start, install, run, print the verdicts. NODES=3 has three nodes.
	@hack/demo.sh

.PHONY: readme-demo
readme-demo: ## Write the result of the last demo on this machine into README.
	@hack/readme-demo.sh out/demo.txt README.md

.PHONY: demo-down
demo-down: bin/cluster ## Remove the demo's cluster and everything it left.
	@bin/cluster down

.PHONY: e2e
e2e: ## End-to-end tests on the embedded cluster (three quarters of an hour).
	@hack/e2e.sh

.PHONY: e2e-short
e2e-short: ## The end-to-end tests that CI runs: one test for each path through the cluster.
	@E2E_SHORT=1 hack/e2e.sh

.PHONY: e2e-history
e2e-history: ## A schedule on the embedded cluster finds, confirms and names a slow commit (half an hour).
	@hack/e2e-history.sh

.PHONY: e2e-nodes
e2e-nodes: ## Runs on three nodes of the embedded cluster: a lane on each, and a node that is switched off (a quarter of an hour).
	@hack/e2e-nodes.sh
