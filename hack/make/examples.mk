##@ Examples

.PHONY: examples
examples: build ## Every benchmark tool that can be read, for real, at a small size (installs the tools once).
	@hack/adapters.sh

.PHONY: sample-report
sample-report: ## Write docs/sample-report again, with its picture (needs Chromium).
	@cd operator && go test -count=1 -run TestSample_ReportInDocsIsCurrent ./internal/report/html -update
	@hack/browser.sh docs/sample-report/report.html
	@cp out/browser/desk-light-top.png docs/sample-report/report.png

.PHONY: sample-site
sample-site: ## Write the pages of an invented history to out/sample-site, and their picture in the docs (needs Chromium).
	@cd operator && go test -count=1 -run TestSample_HasEveryElement ./internal/site -args -sample $(CURDIR)/out/sample-site
	@hack/browser.sh out/sample-site
	@cp out/browser/index-desk-light-top.png docs/tasks/publish-a-history.png
