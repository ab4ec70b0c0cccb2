# Dashboards are Go, and their JSON is generated from it. Beside the targets here, make generate, fmt, lint and test-dashboards
# cover them.
GO_MODULES += dashboards

.PHONY: generate-dashboards
generate-dashboards:
	@cd dashboards && go run ./cmd/dashgen

# The operator embeds one of them and the chart copies all, so they come first.
generate: generate-dashboards

.PHONY: test-grafana
test-grafana: ## Grafana dashboards: their schema, their queries, and that they are generated.
	@cd dashboards && $(GO_TEST) ./...

test-dashboards: test-grafana

.PHONY: browse-dashboards
browse-dashboards: bin/cluster ## Every dashboard in a browser, with Grafana's libraries (needs Node and Chromium); pictures in out/browser.
	@hack/dashboards.sh
