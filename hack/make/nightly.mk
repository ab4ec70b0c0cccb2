##@ Nightly (the suites that CI leaves out; each part takes at most an hour and needs the machine for itself)

# Each part is a row of .github/workflows/nightly.yaml.
NIGHTLY := tests e2e nodes chaos attacks guards release calibration history unsafe browser

.PHONY: nightly
nightly: $(NIGHTLY:%=nightly-%) ## All parts, one after the other: nightly-PART runs one of them.

.PHONY: $(NIGHTLY:%=nightly-%)
nightly-tests: test-long fuzz test-extend test-upgrade
nightly-e2e: e2e
nightly-nodes: e2e-nodes
nightly-chaos: chaos
nightly-attacks: attack
nightly-guards: attack-guards
nightly-release: release test-release e2e-release test-arm64
nightly-calibration: calibrate-smoke bench-verdict
nightly-history: e2e-history
nightly-unsafe: sanitize
nightly-browser: browse-dashboards
