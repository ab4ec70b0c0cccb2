##@ Measure (never while something else runs)

.PHONY: bench-pir
bench-pir: build-rust ## Figures of the PIR kernel, one JSON line each.
	@bin/scan-pir bench

.PHONY: studies
studies: build ## Run every study at full size on this machine; reports go to out/studies/.
	@for run in workflows/studies/*/run.yaml; do \
	  study=$$(basename $$(dirname $$run)); echo "== $$study"; \
	  bin/assay run --local $$run --out out/studies/$$study-$$(date +%Y%m%d-%H%M%S) 2>/dev/null || exit 1; done
