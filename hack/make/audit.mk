##@ Audit (its findings change with the day, so CI does not run it)

CARGO_DENY_VERSION := 0.20.2
CARGO_DENY = $(ASSAY_CACHE)/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny
# With OFFLINE=1 the advisories are those that `cargo-deny fetch` kept before.
DENY = $(CARGO_DENY) $(if $(OFFLINE),--offline)

$(CARGO_DENY):
	@cargo install --locked --root $(ASSAY_CACHE)/cargo-deny-$(CARGO_DENY_VERSION) cargo-deny@$(CARGO_DENY_VERSION)

.PHONY: audit
audit: $(CARGO_DENY) ## Licences and sources of crates, and known vulnerabilities of linked code (VULNDB=URL, OFFLINE=1).
	@echo "== cargo deny, which finds deny.toml beside the manifest"
	@$(DENY) check bans licenses sources
	@for m in operator cluster; do \
	  echo "== govulncheck $$m" && (cd $$m && \
	    $(TOOL) govulncheck $(if $(VULNDB),-db $(VULNDB)) ./...) || exit 1; done
	@$(DENY) check advisories
