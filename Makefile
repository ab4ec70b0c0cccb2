# `make help` is the map. Every step of CI is one of these targets.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

# The version of everything that is ours; make VERSION=1.2.3 … takes another one.
VERSION := $(shell cat VERSION)
export ASSAY_VERSION := $(VERSION)
# Compiled components, images and toolchains that outlive a checkout. Everything in it can be deleted at any time.
export ASSAY_CACHE ?= $(HOME)/.cache/assay
# embedded, kind or existing; empty lets `cluster choose` decide.
export CLUSTER ?=

include hack/make/build.mk
include hack/make/check.mk
include hack/make/audit.mk
include hack/make/deploy.mk
include hack/make/release.mk
include hack/make/cluster.mk
include hack/make/bench.mk
include hack/make/examples.mk
include hack/make/dashboards.mk
include hack/make/chaos.mk
include hack/make/sanitize.mk
include hack/make/nightly.mk

.PHONY: help
help: ## Show this help.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
