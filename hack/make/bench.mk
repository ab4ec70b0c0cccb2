##@ Measure (never while something else runs)

.PHONY: bench-pir
bench-pir: build-rust ## Figures of the PIR kernel, one JSON line each.
	@bin/scan-pir bench
