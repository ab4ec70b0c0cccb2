##@ Develop against the cluster of your kubeconfig

KUBECTL ?= kubectl
IMG ?= assay.dev/assay-operator:$(VERSION)
RUNNER_IMG ?= assay.dev/assay-runner:$(VERSION)
# The address as seen from pods and from this machine.
LEDGER ?= s3://assay?endpoint=http://minio.minio:9000&region=us-east-1
# Whether uninstall and undeploy return when all is gone, or at once.
WAIT ?= true
OVERLAY := out/deploy

.PHONY: manifests
manifests: generate ## Regenerate operator/config and the files made from it (make generate; may write).

.PHONY: install
install: ## Install the definitions only.
	@$(KUBECTL) apply --server-side --force-conflicts -k operator/config/crd

.PHONY: uninstall
uninstall: ## Remove the definitions, and with them every run.
	@$(KUBECTL) delete --ignore-not-found --wait=$(WAIT) -k operator/config/crd

.PHONY: $(OVERLAY)
$(OVERLAY):
	@mkdir -p $@
	@printf '%s\n' 'resources: [../../operator/config/default]' 'patches:' \
	  '- target: {kind: Deployment, name: assay-operator}' '  patch: |-' \
	  '    - {op: replace, path: /spec/template/spec/containers/0/image, value: "$(IMG)"}' \
	  '    - {op: add, path: /spec/template/spec/containers/0/args/-, value: "--operator-image=$(IMG)"}' \
	  '    - {op: add, path: /spec/template/spec/containers/0/args/-, value: "--runner-image=$(RUNNER_IMG)"}' \
	  '    - {op: add, path: /spec/template/spec/containers/0/args/-, value: "--ledger=$(LEDGER)"}' > $@/kustomization.yaml

.PHONY: deploy
deploy: $(OVERLAY) ## Install definitions, rights and the operator of IMG, with RUNNER_IMG and LEDGER.
	@$(KUBECTL) apply --server-side --force-conflicts -k $(OVERLAY)

.PHONY: undeploy
undeploy: $(OVERLAY) ## Remove the deployed objects, the definitions, and with them every run.
	@$(KUBECTL) delete --ignore-not-found --wait=$(WAIT) -k $(OVERLAY)

.PHONY: run
run: ## Run the operator here, against that cluster, after make install. ARGS adds arguments, NAMESPACES names those with runs.
	@cd operator && go run ./cmd --ledger='$(LEDGER)' --operator-image='$(IMG)' --runner-image='$(RUNNER_IMG)' \
	  --namespaces=$(or $(NAMESPACES),default) --log-format=console $(ARGS)
