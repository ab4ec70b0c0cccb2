##@ Check

GO_MODULES := operator cluster charts/test test/e2e test/browser test/release test/docs test/extend hack/count hack/english hack/house \
  workloads/batch/curp-ho/checker
# The modules with programs: deadcode reports functions that no program calls, even if tests do.
GO_PROGRAMS := operator cluster charts/test hack/count hack/english hack/house workloads/batch/curp-ho/checker
TOOL := $(CURDIR)/hack/tool.sh
# Built once, in about a minute and a half on 2 cores, and kept in Go's build cache.
GOLANGCI := go tool -modfile=$(CURDIR)/hack/tools/lint.mod golangci-lint-kube-api-linter

.PHONY: generate
generate: bin/cluster ## Regenerate generated files (may write).
	@cd operator && go generate ./internal/record && go generate ./internal/experiment
	@cd operator && $(TOOL) controller-gen object paths=./api/... paths=./internal/executor/argo \
	  && $(TOOL) controller-gen crd rbac:roleName=assay-operator paths=./... output:crd:dir=config/crd output:rbac:dir=config/rbac
	@cd operator && go generate ./...
	@cd operator && $(TOOL) crd-ref-docs --source-path=api/v1alpha1 --config=hack/api-reference.yaml --renderer=markdown \
	  --output-path=../docs/reference/api.md --log-level=ERROR
	@hack/version.sh
	@ASSAY_VERSION= bin/cluster images chart charts/assay
	@cd charts/test && go run ./cmd/chartgen

.PHONY: fmt
fmt: ## Format everything (may write).
	@for m in $(GO_MODULES); do gofmt -w $$m || exit 1; done
	@cargo fmt --all

# Packages that only tests call: they are internal, as the types in their signatures are.
TEST_SUPPORT := ^internal/fixture/

.PHONY: lint
lint: english ## golangci-lint, deadcode, actionlint, clippy and format checks (read only).
	@for m in $(GO_MODULES); do \
	  (cd $$m && bad=$$(gofmt -l .) && if [ -n "$$bad" ]; then echo "not formatted, run make fmt: $$bad"; exit 1; fi \
	   && $(GOLANGCI) run --config $(CURDIR)/.golangci.yml ./...) || exit 1; done
	@for m in $(GO_PROGRAMS); do \
	  (cd $$m && programs=./... && if [ -d internal ]; then programs="./cmd/... ./internal/..."; fi \
	   && if [ -d calibration ]; then programs="$$programs ./calibration/..."; fi \
	   && dead=$$($(TOOL) deadcode $$programs | { grep -vE '$(TEST_SUPPORT)' || :; }) \
	   && if [ -n "$$dead" ]; then echo "no program calls these, delete them or move them to the tests that do: $$dead"; exit 1; fi) \
	  || exit 1; done
	@$(TOOL) actionlint .github/workflows/*.yaml
	@cargo fmt --all --check
	@$(STATIC_CARGO) clippy $(CHECKED) -- -D warnings
	@scripts=$$(git grep -lE '^#!.*[/ ](ba)?sh\b|^# shellcheck shell=' -- ':!*.md'); for f in $$scripts; do bash -n $$f; done; \
	  if command -v shellcheck >/dev/null; then shellcheck $$scripts; else echo 'shellcheck is not on PATH: scripts are parsed only'; fi
	@if git grep -lF '$(CURDIR)/' -- .; then \
	  echo 'these tracked files hold the path of this checkout: take it out, or the file out of the tree'; exit 1; fi

.PHONY: verify
verify: ## Check that generated files, formats, third-party files and lints are clean.
	@before=$$(hack/tree-state.sh); $(MAKE) --no-print-directory generate fmt; after=$$(hack/tree-state.sh); \
	  if [ "$$before" != "$$after" ]; then \
	    echo 'generated or formatted files differ from what is committed; run "make generate fmt" and commit:'; git status --short; exit 1; fi
	@$(MAKE) --no-print-directory third-party lint
	@echo "verify: generated files, others' files, formats and lints are clean"

.PHONY: third-party
third-party: ## Compare third-party files with their checksums.
	@git ls-files '*/third_party/*/SHA256SUMS' | while read -r sums; do \
	  (cd $$(dirname $$sums) && sha256sum --quiet --strict --check SHA256SUMS) || exit 1; done

.PHONY: test
test: test-rust test-go test-github test-stores-short test-dashboards ## All tests that need no cluster, in their short form.

.PHONY: test-long
test-long: test-rust ## The same with the statistical tests at full size (coverage, power, error rates).
	@$(MAKE) --no-print-directory test-go SHORT=

.PHONY: test-rust
test-rust: ## Rust tests.
	@$(STATIC_CARGO) test $(CHECKED)
	@$(STATIC_CARGO) test $(filter-out --all-targets,$(CHECKED)) --doc

# Empty runs the long form of the tests.
SHORT ?= -short

# make lint vets all modules, so that tests do not repeat it.
GO_TEST := go test -count=1 -vet=off

.PHONY: test-go
test-go: bin/cluster bin/assay-runner ## Go tests, with a real kube-apiserver, etcd and MinIO: those of KUBEBUILDER_ASSETS, or built here.
	@if [ -n "$${KUBEBUILDER_ASSETS:-}" ]; then \
	    echo "etcd, kube-apiserver and kubectl are those of KUBEBUILDER_ASSETS=$$KUBEBUILDER_ASSETS;" \
	      "without a minio in it, tests of the store's users are skipped"; \
	  else \
	    echo "building etcd, kube-apiserver, kubectl and MinIO from source, unless they are cached" \
	      "(the first time some ten minutes on 2 CPUs)"; \
	    KUBEBUILDER_ASSETS=$$(bin/cluster build --print-dir etcd kube-apiserver kubectl minio); \
	  fi; export KUBEBUILDER_ASSETS; \
	  for m in operator cluster charts/test test/docs hack/count hack/english hack/house; do \
	    echo "== go test $$m" && (cd $$m && $(GO_TEST) -timeout 30m $(SHORT) ./...) || exit 1; done
	@cd test/extend && $(GO_TEST) -short ./...

# test-go runs the attacks too: the figure is of the same binary from the build cache.
.PHONY: test-github
test-github: ## Attacks on benchmarks on request of a comment, and their figure; SHORT= also takes out each guard (half an hour).
	@mkdir -p out
	@. hack/lib.sh; installed bwrap bubblewrap || echo "the attacks on the sandbox are skipped" >&2
	@cd operator && $(GO_TEST) -timeout 60m $(SHORT) ./test/pullrequests -args -figures=$(CURDIR)/out/pr.json >&2
	@cat out/pr.json

.PHONY: test-upgrade
test-upgrade: bin/cluster ## Objects and ledgers of the previous release under the definitions of this one, and back, and their figure.
	@mkdir -p out; commit=$$(cat operator/test/upgrade/previous); \
	  git cat-file -e $$commit 2>/dev/null || git fetch --quiet --depth=1 origin $$commit
	@cd operator && KUBEBUILDER_ASSETS=$$(../bin/cluster build --print-dir etcd kube-apiserver) \
	  $(GO_TEST) ./test/upgrade -args -figures=$(CURDIR)/out/upgrade.json >&2
	@cat out/upgrade.json

.PHONY: test-extend
test-extend: ## Apply each patch of test/extend to a copy of the tree, regenerate, build and test it.
	@cd test/extend && $(GO_TEST) -timeout 60m ./...

.PHONY: test-stores
test-stores: bin/cluster bin/assay ## The ledger's tests against every store built from source, into docs/reference/object-stores.md.
	@hack/stores.sh --write

.PHONY: test-stores-short
test-stores-short: bin/cluster bin/assay ## The same against the bundled one alone: that of KUBEBUILDER_ASSETS, or built here.
	@if [ -n "$${KUBEBUILDER_ASSETS:-}" ] && [ ! -x "$$KUBEBUILDER_ASSETS/minio" ]; then \
	    echo "KUBEBUILDER_ASSETS=$$KUBEBUILDER_ASSETS has no minio: the ledger's tests against one are skipped"; \
	  else hack/stores.sh minio; fi

.PHONY: test-rules
test-rules: bin/cluster ## Prometheus rules: syntax, and the tests in dashboards/rules/tests.
	@echo 'building promtool from source, unless it is cached (the first time some minutes on 2 CPUs)'; \
	  promtool=$$(bin/cluster build --print-dir promtool)/promtool && cd dashboards/rules && \
	  $$promtool check rules --lint=all --lint-fatal *.yaml >/dev/null && $$promtool test rules tests/*.yaml

.PHONY: test-alertmanager
test-alertmanager: bin/cluster ## The Alertmanager configuration of the documentation: that it is accepted, and where each alert goes.
	@hack/alertmanager.sh "$$(bin/cluster build --print-dir amtool)/amtool"

.PHONY: test-dashboards
test-dashboards: test-rules test-alertmanager ## Rules, dashboards, and where alerts go.

.PHONY: lint-workflows
lint-workflows: bin/cluster ## argo lint of every workflow that is shipped, and of those that the operator makes.
	@argo=$$(bin/cluster build --print-dir argo)/argo && \
	  $$argo lint --offline --no-color \
	    $$(grep -rlE '^kind: (ClusterWorkflowTemplate|CronWorkflow|Workflow|WorkflowTemplate)$$' --include='*.yaml' \
	      workflows operator/internal/executor/argo/testdata)

.PHONY: english
english: bin/assay ## Count clauses in comments, strings, help and pages that cannot be searched for; fails above 3 per 1,000 lines.
	@cd hack/english && go build -o ../../bin/english .
	@bin/assay help --all | bin/english -stdin 'assay help --all'

.PHONY: count
count: ## Lines of code, tests, fixtures, generated and third-party files, and text, by part.
	@cd hack/count && go run . ../..

.PHONY: mutate
mutate: ## Change a package in many ways and print the share that its tests detect in short form: PKG=internal/lease (minutes).
	@test -n "$(PKG)" || { echo 'PKG is not set: name a package below operator/, such as PKG=internal/lease'; exit 2; }
	@found=$$(mktemp) && trap 'rm -f "$$found"' EXIT && cd operator && \
	  GOFLAGS="$${GOFLAGS:-} -short" $(TOOL) gremlins unleash --workers 1 --timeout-coefficient 60 --output "$$found" ./$(PKG) && \
	  with() { grep -oE "\"status\":\"($$1)\"" "$$found" | wc -l; } && \
	  awk -v killed="$$(with KILLED)" -v all="$$(with 'KILLED|LIVED|NOT COVERED|TIMED OUT')" 'BEGIN { \
	    printf "{\"figure\":\"mutants.$(notdir $(PKG))\",\"value\":%.3f,\"unit\":\"ratio\",\"samples\":%d}\n", killed / all, all }'
