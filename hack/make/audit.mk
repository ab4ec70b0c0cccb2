##@ Audit (what it finds changes with the day, so that CI does not run it)

CARGO_DENY_VERSION := 0.18.3
CARGO_DENY = $(ASSAY_CACHE)/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny

$(CARGO_DENY):
	@cargo install --locked --root $(ASSAY_CACHE)/cargo-deny-$(CARGO_DENY_VERSION) cargo-deny@$(CARGO_DENY_VERSION)

.PHONY: audit
audit: $(CARGO_DENY) ## Known vulnerabilities in what is linked, and licences and sources of crates (asks the databases of the day).
	@for m in operator cluster; do \
	  echo "== govulncheck $$m" && (cd $$m && go run $(TOOLS) golang.org/x/vuln/cmd/govulncheck ./...) || exit 1; done
	@$(CARGO_DENY) --manifest-path workloads/Cargo.toml check --config workloads/deny.toml
