# Everything a contributor runs. CI runs `make deps && make check` and nothing else.

GO        ?= go
VERSION   ?= $(shell git describe --tags --always 2>/dev/null || echo dev)
COMMIT    ?= $(shell git rev-parse HEAD 2>/dev/null)
TELEMETRY := github.com/varvedb/varve/telemetry
LDFLAGS   := -s -w -X $(TELEMETRY).version=$(VERSION) -X $(TELEMETRY).commit=$(COMMIT)
TOOLS     := -modfile=tools/go.mod
FUZZTIME  ?= 30s
ROUNDS    ?= 30
STREAMROWS ?= 50000000
STAGE     := tests/stage.sh

.PHONY: help run build test race fuzz crash stream bench lint check docker deps compiler

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## build and start a server on 127.0.0.1:4000 with its data in ./varve-data
	bin/varve standalone start

build: compiler ## build bin/varve
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/varve ./cmd/varve

test: compiler ## run all tests
	$(GO) test ./...

race: compiler ## run all tests under the race detector
	$(GO) test -race -timeout 60m ./...

fuzz: compiler ## run every fuzz target for FUZZTIME each (30s)
	@grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do \
	  grep -oE '^func Fuzz[A-Za-z0-9_]*' $$file | sed 's/^func //' | while read -r target; do \
	    echo "== $$target in $$(dirname $$file)"; \
	    $(GO) test $$(dirname $$file) -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) || exit 1; \
	  done || exit 1; \
	done

crash: compiler ## every operation of the fault sweeps; then kill -9 the real binary under writers, ROUNDS times (30)
	$(GO) test ./storage ./storage/sst ./ingest -run 'Sweep|Model|Flipped' -count 1 -timeout 60m -args -long
	$(GO) test ./tests -run '^TestKillUnderWriters$$' -count 1 -timeout 60m -v -args -rounds $(ROUNDS)

stream: compiler ## answer STREAMROWS rows (50 million) in every format and measure the memory
	$(GO) test ./handlers -run '^TestFormatsStream$$' -count 1 -timeout 60m -v -args -stream-rows $(STREAMROWS)

bench: build ## measure ingest and queries, beside VictoriaMetrics and DuckDB
	$(GO) build -modfile=tools/peers/go.mod -o bin/victoria-metrics github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics
	$(GO) run ./tests/bench -peer bin/victoria-metrics

lint: ## run the linters
	$(GO) tool $(TOOLS) golangci-lint run ./...

check: ## what CI runs: lint, layering, tests, the README's quick start; under 30 minutes
	@$(STAGE) lint 600 $(MAKE) --no-print-directory lint
	@$(STAGE) layering 120 $(GO) test ./tests -run '^TestLayering' -count 1
	@$(STAGE) test 900 $(MAKE) --no-print-directory test
	@$(STAGE) quickstart 180 $(GO) run ./tests/quickstart README.md

docker: ## build the container image varve:latest
	docker build --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) -t varve:latest .

deps: ## install what `make check` needs: system packages (as root), modules, tools
	@command -v curl >/dev/null && command -v $(word 1,$(CXX)) >/dev/null || \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends curl gcc g++ make git; }
	$(GO) mod download
	$(GO) build $(TOOLS) -o /dev/null github.com/golangci/golangci-lint/v2/cmd/golangci-lint

compiler:
	@command -v $(GO) >/dev/null || { echo "varve needs Go 1.26 or newer: https://go.dev/dl" >&2; exit 1; }
	@cc=$$($(GO) env CC); command -v $${cc%% *} >/dev/null || \
	  { echo "varve embeds DuckDB and needs a C compiler; '$$cc' is not there: apt-get install gcc" >&2; exit 1; }
	@cxx=$$($(GO) env CXX); command -v $${cxx%% *} >/dev/null || \
	  { echo "varve embeds DuckDB and needs a C++ compiler; '$$cxx' is not there: apt-get install g++" >&2; exit 1; }
