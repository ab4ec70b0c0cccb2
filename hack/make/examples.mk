##@ Examples

.PHONY: examples
examples: build ## Every benchmark tool that can be read, for real, at a small size (installs the tools once).
	@hack/adapters.sh
