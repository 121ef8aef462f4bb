# `make run` and `make test` do everything on a machine with Go and Postgres's
# programs; `make help` lists the rest.
#
# The checkout's path may contain a space: paths are relative, or quoted.

.DEFAULT_GOAL := help
MAKEFLAGS     += --no-print-directory

# The race detector needs a C compiler; go env knows whether there is one.
RACE ?= $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# go build stamps the revision in, and fails where git does not answer: without
# a first commit, or in a checkout of another owner. It shall build there, too.
ifeq ($(shell git rev-parse --quiet --verify HEAD 2>/dev/null),)
  export GOFLAGS := $(strip $(GOFLAGS) -buildvcs=false)
endif

# Not in tools/go.mod: it and golangci-lint need different dependencies.
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.8.0

.PHONY: help
help: ## List the targets and variables
	@echo 'Usage: make TARGET [VARIABLE=value ...]'
	@echo
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo 'Variables of test and fuzz:'
	@echo '  PKG             packages of the product to test (./...)'
	@echo '  TESTFLAGS       more flags for go test: TESTFLAGS="-run Name -v -count=1"'
	@echo '  RACE            -race where there is a C compiler; RACE= tests without'
	@echo '  FUZZTIME        how long each fuzz target runs (30s)'
	@echo
	@echo 'Variable of bench:'
	@echo '  BENCHFLAGS      what to measure: BENCHFLAGS="-only deliveries -seconds 5"'
	@echo
	@echo 'Variable of faults:'
	@echo '  FAULTSFLAGS     FAULTSFLAGS="-faults.time=20m -faults.seed=7", see docs/faults.md'
	@echo
	@echo 'Variables of run, which brings up a Postgres and a Temporal of its own:'
	@echo '  DEV_DIR         where their data stays from one run to the next (.dev)'
	@echo '  API_PORT        port of the API (8080)'
	@echo '  TEMPORAL_PORT, TEMPORAL_UI_PORT, API_METRICS_PORT, WORKER_METRICS_PORT'
	@echo '                  the other ports (7233, 8233, 9464, 9465)'
	@echo '  DATABASE_URL, TEMPORAL_ADDRESS'
	@echo '                  a database, a Temporal server to use instead'

## Building

.PHONY: build
build: bin/millwright bin/devstack ## Build bin/millwright and bin/devstack

.PHONY: run
run: build ## Run everything on this machine until Ctrl-C: Postgres, Temporal, api, worker
	@exec bin/devstack run

# go build and go install know what is up to date, so they are always asked;
# go install does not link again what it has linked before.
.PHONY: FORCE
FORCE:

bin/millwright: FORCE
	CGO_ENABLED=0 go build -trimpath -o bin/millwright ./cmd/millwright

bin/devstack: FORCE
	@[ -e bin/devstack ] || echo 'Building bin/devstack; the first time this takes some minutes, since it compiles Temporal.'
	cd dev && GOBIN="$${PWD%/dev}/bin" go install -buildvcs=false -ldflags='-s -w' ./cmd/devstack

.PHONY: generate
generate: ## Write the generated files anew
	go generate ./...

.PHONY: clean
clean: ## Remove what was built; the data of run stays
	rm -rf bin

## Testing

.PHONY: test
test: bin/devstack ## Test both modules, the product on a throwaway Postgres and Temporal
	@[ -n '$(RACE)' ] || echo 'Testing without the race detector.'
	@$(MAKE) --keep-going test-product test-dev

.PHONY: test-product
test-product: bin/devstack ## ... the product alone
	bin/devstack exec -- go test -timeout 30m $(RACE) $(TESTFLAGS) $(or $(PKG),./...)

# With -race, all of Temporal would be compiled a second time; the packages that
# have it in them are tested without.
.PHONY: test-dev
test-dev: bin/devstack ## ... dev/ alone
	@root="$$PWD"; cd dev || exit; export DEVSTACK="$$root/bin/devstack"; status=0; \
	packages() { go list -f '{{.ImportPath}} {{join .Deps " "}}' ./... | grep $$1 ' go.temporal.io/server/' | cut -d ' ' -f 1; }; \
	try() { echo "cd dev && go test $$*"; go test -timeout 30m "$$@" || status=1; }; \
	try $(RACE) $(TESTFLAGS) $$(packages -v); \
	try $(TESTFLAGS) $$(packages -e); \
	exit $$status

.PHONY: conformance
conformance: bin/devstack ## Hold the product against the specification, rule by rule; writes docs/conformance.md
	bin/devstack exec --no-temporal -- go test $(RACE) -count=1 ./conformance -run TestSpecification -args -write ../docs/conformance.md

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME
	@grep -rEo --include='*_test.go' --exclude-dir='.*' '^func Fuzz\w*' * | sed 's/:func / /' | { \
	status=0; while read -r file target; do \
		echo "$$target in $$file"; \
		(cd "$${file%/*}" && go test -run '^$$' -fuzz "^$$target\$$" -fuzztime '$(or $(FUZZTIME),30s)' . </dev/null) || status=1; \
	done; exit $$status; }

.PHONY: bench
bench: bin/millwright bin/devstack ## Measure throughput and latency on a throwaway Postgres and Temporal
	bin/devstack exec -- go run ./bench $(BENCHFLAGS)

.PHONY: faults
faults: bin/devstack ## Kill, fill and stop everything for minutes, and check what is left; writes docs/faults-run.md
	bin/devstack exec -- go test ./e2e -count=1 -v -timeout 2h -run '^TestFault' \
		-faults.time=3m -faults.outage=30s -faults.report=../docs/faults-run.md $(FAULTSFLAGS)

## Linting

.PHONY: lint
lint: ## Check both modules, all of the following
	@$(MAKE) --keep-going lint-words lint-product lint-dev lint-workflows lint-modules lint-generated lint-openapi

# Left out: other projects' files, recorded outputs, and the client, which is
# generated from the OpenAPI document.
.PHONY: lint-words
lint-words: ## ... that comments and docs use none of the turns of phrase in tools/words.txt
	@! git grep -nIP -f tools/words.txt -- $(or $(WORDS_IN),.) \
		':!tools/words.txt' ':!api/docs' ':!docs/bench' ':!client/generated.go' ':!*.sum' ':!*/testdata/*' || \
	{ echo 'Rewrite these lines in plain English; tools/words.txt has the patterns.' >&2; exit 1; }

.PHONY: lint-product
lint-product: bin/golangci-lint ## ... the product's code and its layers (.golangci.yaml)
	bin/golangci-lint run ./...

.PHONY: lint-dev
lint-dev: bin/golangci-lint ## ... the code of dev/; the first time this takes some minutes
	cd dev && ../bin/golangci-lint run ./...

# As a -vettool of go vet it would be faster, but that allows no space in its path.
.PHONY: lint-workflows
lint-workflows: bin/workflowcheck ## ... that workflow code is deterministic
	bin/workflowcheck ./workflows/...

.PHONY: lint-modules
lint-modules: ## ... that go.mod and go.sum are tidy
	go mod tidy -diff
	cd dev && go mod tidy -diff
	cd tools && go mod tidy -diff
	cd tools/oasdiff && go mod tidy -diff

# Generates in a copy, so that lint changes nothing and a checkout with other
# changes in it is judged fairly.
.PHONY: lint-generated
lint-generated: ## ... that the generated files are fresh
	@copies="$$(mktemp -d)" && trap 'rm -rf "$$copies"' EXIT && mkdir "$$copies/as-is" && \
	tar -cf - --exclude ./.git --exclude ./.dev --exclude ./bin . | tar -xf - -C "$$copies/as-is" && \
	cp -R "$$copies/as-is" "$$copies/generated" && \
	(cd "$$copies/generated" && go generate ./...) && \
	(cd "$$copies" && diff -ru as-is generated) || \
	{ echo 'Generated files are not fresh, or cannot be generated: run make generate.' >&2; exit 1; }

# Compares with the document of the last release, which openapi-released keeps.
# Before the first release there is nothing to break. What is taken out of an
# answer or a webhook is only a warning to oasdiff; here it fails, too.
.PHONY: lint-openapi
lint-openapi: bin/oasdiff ## ... that the API breaks no client of the last release
	@if [ ! -e docs/openapi-released.json ]; then \
		echo 'There is no docs/openapi-released.json yet, so nothing can break.'; \
	else \
		documents="$$(mktemp -d)" && trap 'rm -rf "$$documents"' EXIT && \
		(cd tools/oasdiff && go run ./received) <docs/openapi-released.json >"$$documents/released.json" && \
		(cd tools/oasdiff && go run ./received) <api/openapi.json >"$$documents/now.json" && \
		bin/oasdiff breaking --fail-on WARN "$$documents/released.json" "$$documents/now.json"; \
	fi

.PHONY: openapi-released
openapi-released: ## At a release: keep the API's document, for lint-openapi to compare with
	cp api/openapi.json docs/openapi-released.json

.PHONY: fmt
fmt: bin/golangci-lint ## Format the code as lint wants it
	bin/golangci-lint fmt
	cd dev && ../bin/golangci-lint fmt

.PHONY: vuln
vuln: ## Look for known vulnerabilities in what is used (needs the network; no gate)
	go run $(GOVULNCHECK) ./...
	cd dev && go run $(GOVULNCHECK) ./...

# Tools of tools/go.mod are built once for each version; touch, because go
# install leaves a binary alone that is up to date.
bin/golangci-lint: tools/go.mod tools/go.sum
	@[ -e $@ ] || echo 'Building $@; the first time this takes some minutes.'
	cd tools && GOBIN="$${PWD%/tools}/bin" go install -buildvcs=false -ldflags='-s -w' github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

bin/workflowcheck: tools/go.mod tools/go.sum
	cd tools && GOBIN="$${PWD%/tools}/bin" go install -buildvcs=false -ldflags='-s -w' go.temporal.io/sdk/contrib/tools/workflowcheck
	@touch $@

# In a module of its own: it and golangci-lint want different versions of the same.
bin/oasdiff: tools/oasdiff/go.mod tools/oasdiff/go.sum
	cd tools/oasdiff && GOBIN="$${PWD%/tools/oasdiff}/bin" go install -buildvcs=false -ldflags='-s -w' github.com/oasdiff/oasdiff
	@touch $@
