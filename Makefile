# heliograph's commands. "make test" is everything that CI runs; its last line counts the tests.
SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

CACHE    := $(CURDIR)/.cache
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LINT     := $(CACHE)/bin/golangci-lint
GOTEST   := $(CACHE)/bin/gotest
COUNTS   := $(CACHE)/test-counts
FUZZTIME ?= 10s
# Packages and tests of the suite against real brokers.
E2E      ?= ./internal/kafkatest/... ./test/e2e/...
E2EFLAGS ?=
# Length of a chaos run.
MINUTES  ?= 3

.PHONY: build tools test lint unit fuzz e2e demo bench chaos clean

build: ## the static binary bin/heliograph
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/heliograph ./cmd/heliograph

tools: $(LINT) $(GOTEST) ## what lint and test run

test: $(GOTEST) ## lint, unit tests with the race detector, fuzzing, real brokers
	@rm -f $(COUNTS); touch $(COUNTS); failed=; \
	for step in lint unit fuzz e2e; do \
		echo "== $$step"; \
		$(MAKE) --no-print-directory $$step COUNTS=$(COUNTS) || failed="$$failed $$step"; \
	done; \
	echo "== total$${failed:+, failed steps:$$failed}"; \
	$(GOTEST) -counts $(COUNTS) sum && test -z "$$failed"

lint: ## golangci-lint as pinned by tools/lint
	@if $(MAKE) --no-print-directory $(LINT); then \
		$(LINT) config verify && $(LINT) run ./...; \
	elif [ -n "$${CI:-}" ]; then \
		echo "lint: golangci-lint could not be built" >&2; exit 1; \
	else \
		echo "SKIPPED lint: golangci-lint could not be built" >&2; \
	fi

unit: $(GOTEST) ## with the race detector, and without it what counts allocations
	@race=-race; \
	if ! command -v gcc >/dev/null; then \
		[ -z "$${CI:-}" ] || { echo "unit: the race detector needs gcc" >&2; exit 1; }; \
		echo "SKIPPED race detector: no gcc" >&2; race=; \
	fi; \
	$(GOTEST) -counts $(COUNTS) run $$race ./... && \
	if [ -n "$$race" ]; then $(GOTEST) -counts $(COUNTS) run -run Allocates ./internal/replicate; fi

fuzz: $(GOTEST) ## every fuzz target for FUZZTIME
	@$(GOTEST) -counts $(COUNTS) fuzz $(FUZZTIME) ./...

e2e: $(GOTEST) ## the suite against real Kafka, fetched with Maven; E2E and E2EFLAGS narrow it
	@for tool in java keytool mvn; do \
		command -v $$tool >/dev/null && continue; \
		[ -z "$${CI:-}" ] || { echo "e2e: $$tool is missing" >&2; exit 1; }; \
		echo "SKIPPED e2e: $$tool is missing" >&2; exit 0; \
	done; \
	$(GOTEST) -counts $(COUNTS) run -tags e2e -count=1 -p 1 -timeout 40m $(E2EFLAGS) $(E2E)

demo: build ## two embedded clusters, traffic, replication and a live view; no Java
	bin/heliograph demo

bench: build ## heliograph beside its peers, half an hour; appends to docs/benchmarks.md; BENCHFLAGS=-quick is shorter, FULL=1 takes hours
	go run -tags bench ./test/bench $(if $(FULL),-full) $(BENCHFLAGS)

chaos: build ## faults drawn from SEED for MINUTES against a flow on real brokers; appends to docs/reliability.md
	go run -tags chaos ./test/chaos/cmd $(if $(SEED),-seed $(SEED)) -minutes $(MINUTES) $(CHAOSFLAGS)

clean: ## what was built; fetched Kafka releases stay in the user's cache
	rm -rf bin $(CACHE)

# Tools have modules of their own, so that what they need never reaches the product.
$(LINT): tools/lint/go.mod tools/lint/go.sum
	@mkdir -p $(@D)
	go -C tools/lint build -trimpath -ldflags '-s -w' -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(GOTEST): $(wildcard tools/gotest/*.go)
	@mkdir -p $(@D)
	go build -o $@ ./tools/gotest
