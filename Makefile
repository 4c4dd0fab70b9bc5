# Every target is explained by "make help". Go, git and make are all that is needed; Go fetches the rest.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

# The race detector needs a C compiler; without one the tests run without it and say so.
RACE := $(shell command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1 && echo -race)
TEST := $(GO) run .ci/gotest.go

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# DIR is what the demo looks at.
DIR ?= .

.DEFAULT_GOAL := help
.PHONY: help demo build test test-needs check lint generated generate smoke conformance aimock ring crash replay collector s3 gates bench example-events test-examples clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/hozo
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$(LDFLAGS)" -o bin/hozo ./cmd/hozo

demo: build ## run an agent job over DIR (default: this tree) without any key and show its report
	@sh examples/demo.sh bin/hozo "$(DIR)"

test: test-needs ## run every test, with the race detector where a C compiler is at hand
	$(TEST) -- $(RACE) ./...

# strace lets one test watch every file that a job opens. It is fetched only where that needs no question.
test-needs:
	@if [ -z "$(RACE)" ]; then echo "no C compiler: the tests run without the race detector"; fi
	@if [ "$$(uname)" = Linux ] && ! command -v strace >/dev/null 2>&1; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
			echo "installing strace for the test that watches opened files"; \
			{ apt-get update && apt-get install -y --no-install-recommends strace; } >/dev/null 2>&1 || echo "strace could not be installed: that test is skipped"; \
		else echo "no strace: the test that watches opened files is skipped"; fi; fi
	@if [ -z "$$HOZO_TEST_POSTGRES" ] && ! command -v initdb >/dev/null 2>&1 && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
			echo "installing postgresql for the tests of the database"; \
			{ apt-get update && apt-get install -y --no-install-recommends postgresql; } >/dev/null 2>&1 || echo "postgresql could not be installed: the tests on it are missing"; \
		else echo "no PostgreSQL: install it, or name a server in HOZO_TEST_POSTGRES"; fi; fi
	@if command -v npm >/dev/null 2>&1; then \
		tool/mcptool/conformance/fetch.sh || echo "the reference server of MCP could not be fetched: its tests are skipped"; \
	else echo "no npm: the tests against the reference server of MCP are skipped"; fi

check: lint generated test ## everything a change must pass before it is committed

lint: ## formatting, go vet for Linux and macOS, staticcheck (staticcheck.conf)
	@out=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); if [ -n "$$out" ]; then echo "not formatted (run gofmt -w):"; echo "$$out"; exit 1; fi
	GOOS=linux $(GO) vet ./...
	GOOS=darwin $(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

generate: ## write the schema, the reference pages and everything else that comes from code
	$(GO) generate ./...

generated: ## fail if a generated file differs from what its generator writes
	@before=$$(mktemp) && after=$$(mktemp) && \
	{ git diff; git status --porcelain; } >$$before && $(GO) generate ./... && { git diff; git status --porcelain; } >$$after && \
	if cmp -s $$before $$after; then rm -f $$before $$after; else \
		echo "generated files are out of date; run make generate and commit:"; diff $$before $$after | head -40; rm -f $$before $$after; exit 1; fi

conformance: ## the official conformance suite of MCP against our client, in both revisions; needs npm
	tool/mcptool/conformance/run.sh

smoke: ## the upgrade gate: isolation, tool policy, limits, failures, credentials, run
	$(TEST) -suites Isolation,ToolPolicy,Limits,Failures,Credentials,Run -- -count=1 -run '^TestSmoke' ./...

# The parts of the tree that others import, copied out and tested on their own, with the documents that their tests read.
RING := go.mod go.sum docs problem llm job tool workspace sandbox kernel jobproc journal hostserver provider schema telemetry

ring: ## build and test the kernel ring without internal/, cmd/ and everything else
	@ring=$$(mktemp -d) && root=$$(pwd) && \
	for f in $$(git ls-files -co --exclude-standard -- $(RING)); do \
		[ -e "$$f" ] && mkdir -p "$$ring/$$(dirname "$$f")" && cp -p "$$f" "$$ring/$$f"; done; \
	cd "$$ring" && $(GO) build ./... && $(GO) run "$$root/.ci/gotest.go" -- ./...; code=$$?; \
	rm -rf "$$ring"; exit $$code

aimock: ## whole jobs against a server by others that plays five APIs and breaks them; needs npm
	provider/aimocktest/fetch.sh
	$(TEST) -- -count=1 ./provider/aimocktest

# How many points the crash harness draws, and which ones.
KILLS ?= 240
SEED  ?= 1

crash: ## kill recorded jobs at KILLS points drawn at random and compare how they end with undisturbed runs
	CGO_ENABLED=0 HOZO_CRASH_KILLS=$(KILLS) HOZO_CRASH_SEED=$(SEED) $(TEST) -- -count=1 -run '^TestCrash$$' ./cmd/hozo

replay: ## replay recorded provider traffic; RECORDINGS=DIR names the recordings
	@if [ ! -d "$(RECORDINGS)" ]; then echo "set RECORDINGS to a directory of recordings"; exit 2; fi
	$(TEST) -- -count=1 ./provider/...

collector: ## check the export of jobs with the OpenTelemetry collector's own receiver
	cd telemetry/collectortest && $(GO) run ../../.ci/gotest.go -- ./...

s3: ## check the keeping of blobs in a bucket with an S3 server that others wrote
	cd internal/artifact/s3test && $(GO) run ../../../.ci/gotest.go -- ./...

example-events: ## run the events-calendar server offline: a run, its report, its events, its tools in the MCP inspector
	cd examples/events-calendar && CGO_ENABLED=0 $(GO) build -trimpath -o ../../bin/events-calendar .
	@sh examples/events-calendar/demo.sh bin/events-calendar

test-examples: ## run the tests of the example programs
	cd examples/events-calendar && $(GO) vet ./... && $(GO) run ../../.ci/gotest.go -- $(RACE) ./...

gates: ## the allocations of a call, which no clock decides; also fails if bench needs "go mod tidy"
	cd bench && $(GO) vet ./... && $(GO) run ../.ci/gotest.go -- -count=1 ./peer/hozo

bench: ## measure the shipped build and compare with other runtimes
	$(MAKE) --no-print-directory -C bench run

clean: ## remove what was built
	rm -rf bin bench/out
