# `make run` and `make test` need only Go and Postgres's programs; `make help`
# lists all targets.
#
# The checkout's path may contain a space: paths are relative or quoted.

.DEFAULT_GOAL := help
MAKEFLAGS     += --no-print-directory

# go build embeds the git revision and fails without one: before the first commit,
# or in a checkout that belongs to another user.
ifeq ($(shell git rev-parse --quiet --verify HEAD 2>/dev/null),)
  export GOFLAGS := $(strip $(GOFLAGS) -buildvcs=false)
endif

# Not in tools/go.mod, because they and golangci-lint need different dependencies.
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.8.0
CYCLONEDX   := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

.PHONY: help
help: ## List the targets and variables
	@echo 'Usage: make TARGET [VARIABLE=value ...]'
	@echo
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo 'Variables for test and fuzz:'
	@echo '  PKG              the packages of the product to test (./...)'
	@echo '  TESTFLAGS        additional flags for go test: TESTFLAGS="-run Name -v -count=1"'
	@echo '  RACE             RACE=-race tests with the race detector, as CI does; it needs a C compiler'
	@echo '  FUZZTIME         how long each fuzz target runs (30s)'
	@echo
	@echo 'Variable for bench:'
	@echo '  BENCHFLAGS       what to measure: BENCHFLAGS="-only deliveries -seconds 5"'
	@echo
	@echo 'Variable for faults:'
	@echo '  FAULTSFLAGS      flags of the tests: FAULTSFLAGS="-faults.time=20m -faults.seed=7"'
	@echo
	@echo 'Variable for soak:'
	@echo '  SOAKFLAGS        flags of the test: SOAKFLAGS="-soak.time=8h -soak.every=5m"'
	@echo
	@echo 'Variables for run, which starts its own Postgres and Temporal:'
	@echo '  DEV_DIR          the directory that keeps their data between runs (.dev)'
	@echo '  API_PORT         the port of the API (8080)'
	@echo '  TEMPORAL_PORT, TEMPORAL_UI_PORT, API_METRICS_PORT, WORKER_METRICS_PORT'
	@echo '                   the other ports (7233, 8233, 9464, 9465)'
	@echo '  DATABASE_URL, TEMPORAL_ADDRESS'
	@echo '                   a database and a Temporal server to use instead'

## Building

.PHONY: build
build: bin/millwright bin/devstack ## Build bin/millwright and bin/devstack

.PHONY: run
run: ## Run everything on this machine until Ctrl-C: Postgres, Temporal, api, worker
	@$(MAKE) -j 2 build
	@exec bin/devstack run

# go install decides itself what is up to date, so it always runs; it does not relink an
# unchanged program.
.PHONY: FORCE
FORCE:

bin/millwright: FORCE
	@[ -e bin/millwright ] || echo 'Building bin/millwright.'
	@tools/install ./cmd/millwright

bin/devstack: FORCE
	@[ -e bin/devstack ] || echo 'Building bin/devstack. The first build takes a few minutes, because it compiles Temporal.'
	@cd dev && ../tools/install ./cmd/devstack -buildvcs=false -ldflags='-s -w'

.PHONY: generate
generate: ## Regenerate the generated files
	go generate ./...

.PHONY: clean
clean: ## Remove bin/; the data of run is kept
	rm -rf bin

## Testing

# e2e, which takes minutes, is left to test.
.PHONY: check
check: bin/devstack bin/golangci-lint ## While writing, in about a minute: format, vet, words, and the tests of rules, workflows and packages that differ from main
	bin/golangci-lint fmt --diff
	go vet ./...
	@$(MAKE) lint-words
	bin/devstack exec --no-temporal -- go test -vet=off $$({ echo models/ workflows/; git diff --name-only main; git ls-files --others --exclude-standard; } | \
		tr ' ' '\n' | while read -r file; do \
			directory="$${file%/*}"; \
			until ls "$$directory"/*.go >/dev/null 2>&1 || [ "$${directory#*/}" = "$$directory" ]; do directory="$${directory%/*}"; done; \
			ls "$$directory"/*.go >/dev/null 2>&1 && echo "./$$directory"; \
		done | grep -vE '^./(e2e|dev|tools|examples|deploy)(/|$$)' | sort -u)

.PHONY: test
test: bin/devstack ## Before a change lands: everything, on a throwaway Postgres and Temporal
	@$(MAKE) --keep-going -j 2 test-product test-dev

# e2e runs after the other packages: next to them its many processes, which wait for each
# other, and the browsers of console's tests would be slow enough to miss their limits.
# The race detector would make each process wait for a second at its end. check and lint run vet.
.PHONY: test-product
test-product: export GORACE ?= atexit_sleep_ms=0
test-product: bin/devstack ## ... only the product
	@status=0; for packages in $(if $(PKG),'$(PKG)',"$$(go list ./... | grep -v /e2e$$ | tr '\n' ' ')" ./e2e); do \
		bin/devstack exec -- go test -vet=off -timeout 30m $(RACE) $(TESTFLAGS) $$packages || status=1; \
	done; exit $$status

# With the race detector all of Temporal would be compiled a second time, so the packages
# that import it are tested without it.
.PHONY: test-dev
test-dev: bin/devstack ## ... only dev/
	@root="$$PWD"; cd dev || exit; export DEVSTACK="$$root/bin/devstack"; status=0; \
	packages() { go list -f '{{.ImportPath}} {{join .Deps " "}}' ./... | grep $$1 ' go.temporal.io/server/' | cut -d ' ' -f 1; }; \
	try() { echo "cd dev && go test $$*"; go test -vet=off -timeout 30m "$$@" || status=1; }; \
	try $(RACE) $(TESTFLAGS) $$(packages -v); \
	try $(TESTFLAGS) $$(packages -e); \
	exit $$status

# compose-test and systemd-test are not part of test: they need a container engine with Compose 2.24 or newer, and root.
.PHONY: compose-test
compose-test: ## Start docker-compose.yml in containers and run the commands of docs/running.md; writes docs/compose-run.md
	@if ! reason="$$(docker version 2>&1 >/dev/null)"; then \
		echo "Skipped, because there is no container engine: $$reason"; \
	elif ! docker compose version >/dev/null 2>&1; then \
		echo 'Skipped, because docker has no Compose plugin.'; \
	else \
		cd dev && go test ./install -count=1 -v -timeout 1h -run '^TestTheContainersRun$$' -containers -report=../../docs/compose-run.md; \
	fi

.PHONY: systemd-test
systemd-test: bin/devstack ## Boot a machine with the systemd units and run the commands of docs/running.md; writes docs/systemd-run.md
	@for program in systemd-nspawn mmdebstrap nsenter; do \
		command -v $$program >/dev/null || { echo "Skipped, because there is no $$program."; exit; }; \
	done; \
	if [ "$$(id -u)" != 0 ]; then echo 'Skipped, because systemd-nspawn needs root.'; exit; fi; \
	cd dev && go test ./install -count=1 -v -timeout 1h -run '^TestTheUnitsRun$$' -machine -report=../../docs/systemd-run.md

.PHONY: conformance
conformance: bin/devstack ## Test the product against the specification, rule by rule; writes docs/conformance.md
	bin/devstack exec --no-temporal -- go test $(RACE) -count=1 ./conformance -run TestSpecification -args -write ../docs/conformance.md

.PHONY: screenshots
screenshots: bin/devstack ## Take the pictures of the console in docs/console again (needs Chromium)
	CONSOLE_DOCS="$$PWD/docs/console" bin/devstack exec --no-temporal -- go test ./console -count=1 -run '^TestPagesOfTheDemo$$'

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME
	@grep -rEo --include='*_test.go' --exclude-dir='.*' '^func Fuzz\w*' * | sed 's/:func / /' | { \
	status=0; while read -r file target; do \
		echo "$$target in $$file"; \
		(cd "$${file%/*}" && go test -run '^$$' -fuzz "^$$target\$$" -fuzztime '$(or $(FUZZTIME),30s)' . </dev/null) || status=1; \
	done; exit $$status; }

# With TMPDIR, devstack keeps a stack's data on disk: these write more than fits into memory.
bench faults soak: export TMPDIR := $(or $(TMPDIR),/tmp)

.PHONY: bench
bench: bin/millwright bin/devstack ## Measure throughput and latency on a throwaway Postgres and Temporal
	bin/devstack exec -- go run ./bench $(BENCHFLAGS)

# Denser code is no fewer lines, so the bytes of a line are shown next to them.
.PHONY: lines
lines: ## Count lines of Go by directory, without tests, client and examples, and lines of tests
	@git ls-files '*.go' | grep -v -e '^client/' -e '^examples/' | xargs wc -lc | sort -k3 | awk '$$3 == "total" { next } \
		{ n = split($$3, path, "/"); dir = n == 1 ? "." : path[1] == "service" && n > 2 ? path[1] "/" path[2] : path[1]; \
		  kind = $$3 ~ /_test\.go$$|[a-z]test\// ? "tests" : "code"; lines[kind, dir] += $$1; lines[kind, "all"] += $$1; bytes[dir] += kind == "code" ? $$2 : 0; \
		  bytes["all"] += kind == "code" ? $$2 : 0; if (!(dir in seen)) { seen[dir]; order[++count] = dir } } \
		END { order[++count] = "all"; printf "%-24s %8s %14s %8s\n", "DIRECTORY", "LINES", "BYTES A LINE", "TESTS"; \
		  for (i = 1; i <= count; i++) { d = order[i]; c = lines["code", d]; printf "%-24s %8d %14.1f %8d\n", d, c, c ? bytes[d] / c : 0, lines["tests", d] } }'

.PHONY: faults
faults: bin/devstack ## Before a release: the fault tests in their long forms, 18 minutes (docs/faults.md); writes docs/faults-run.md
	bin/devstack exec -- go test ./e2e -count=1 -v -timeout 2h -parallel 1 -run '^TestFault' \
		-faults.time=3m -faults.outage=30s -faults.temporal=1m -faults.kills=10 -faults.report=../docs/faults-run.md $(FAULTSFLAGS)

.PHONY: soak
soak: bin/devstack ## Before a release: the service for an hour under a steady load with occasional faults (docs/soak.md, Linux); writes docs/soak-run.md
	bin/devstack exec -- go test -tags soak ./e2e -count=1 -v -timeout 48h -run '^TestSoak$$' \
		-soak.report=../docs/soak-run.md $(SOAKFLAGS)

## Linting

.PHONY: lint
lint: ## Run all of the following checks on both modules
	@$(MAKE) --keep-going lint-words lint-product lint-dev lint-workflows lint-modules lint-generated lint-openapi lint-document lint-clients lint-examples lint-deploy lint-module-path

# Skips other projects' files, recorded output, and the clients, which are generated
# from the OpenAPI document.
.PHONY: lint-words
lint-words: ## ... that comments and docs use none of the phrases in tools/words.txt
	@git grep --untracked -nIP -f tools/words.txt -- $(or $(WORDS_IN),.) \
		':!tools/words.txt' ':!api/docs' ':!docs/bench' ':!client/generated.go' ':!examples/erp-typescript/src/api.ts' ':!*.sum' ':!*/testdata/*'; \
	case $$? in \
	0) echo 'Rewrite these lines in plain English; tools/words.txt has the patterns.' >&2; exit 1 ;; \
	1) ;; \
	*) echo 'The words cannot be checked: git grep -P failed.' >&2; exit 1 ;; \
	esac

.PHONY: lint-product
lint-product: bin/golangci-lint ## ... the product's code and the imports between its layers (.golangci.yaml)
	bin/golangci-lint run ./...

.PHONY: lint-dev
lint-dev: bin/golangci-lint ## ... the code of dev/; the first run takes a few minutes
	cd dev && ../bin/golangci-lint run ./...

# As a -vettool of go vet it would be faster, but go vet allows no space in its path.
.PHONY: lint-workflows
lint-workflows: bin/workflowcheck ## ... that workflow code is deterministic
	bin/workflowcheck ./workflows/...

.PHONY: lint-modules
lint-modules: ## ... that go.mod and go.sum are tidy, and the example module's code
	go mod tidy -diff
	cd dev && go mod tidy -diff
	cd tools && go mod tidy -diff
	cd tools/oasdiff && go mod tidy -diff
	cd tools/clients && go mod tidy -diff
	cd deploy/check && go mod tidy -diff
	cd examples/erp-go && go mod tidy -diff && go vet .

# The manifests are checked with kustomize and the types of Kubernetes, in a separate
# module. systemd-analyze wants programs that exist, and only warns about misspelt settings.
.PHONY: lint-deploy
lint-deploy: ## ... the Kubernetes manifests, and the systemd units where systemd-analyze is installed
	cd deploy/check && go vet . && go test .
	@if command -v systemd-analyze >/dev/null; then \
		units="$$(mktemp -d)" && trap 'rm -rf "$$units"' EXIT && \
		for unit in deploy/systemd/*.service; do \
			sed 's#/usr/local/bin/millwright#/bin/true#' "$$unit" >"$$units/$${unit##*/}"; \
		done && \
		said="$$(SYSTEMD_UNIT_PATH="$$units:" systemd-analyze verify --man=no "$$units"/*.service 2>&1)" && [ -z "$$said" ] || \
		{ echo "$$said" >&2; exit 1; }; \
	else echo 'systemd-analyze is not installed: the units are not checked.'; fi

# In a copy, so that lint leaves nothing in the checkout.
.PHONY: lint-examples
lint-examples: ## ... the types of the example in TypeScript, and that its API is up to date, if Node is installed
	@if command -v node >/dev/null && command -v npm >/dev/null; then \
		copy="$$(mktemp -d)" && trap 'rm -rf "$$copy"' EXIT && mkdir "$$copy/api" "$$copy/examples" && \
		cp api/openapi.json "$$copy/api" && \
		tar -cf - --exclude node_modules --exclude dist -C examples erp-typescript | tar -xf - -C "$$copy/examples" && \
		cd "$$copy/examples/erp-typescript" && npm ci --silent --no-audit --no-fund && npm run --silent check && \
		cp src/api.ts as-is.ts && npm run --silent generate >/dev/null && diff -u as-is.ts src/api.ts || \
		{ echo 'The example in TypeScript has an error, or src/api.ts is out of date: run npm run generate there.' >&2; exit 1; }; \
	elif [ -n "$(CI)" ]; then echo 'Node or npm is missing.' >&2; exit 1; \
	else echo 'Node or npm is not installed: the example in TypeScript is not checked.'; fi

# Generates in a copy, so that lint does not write and works in a checkout with
# uncommitted changes.
.PHONY: lint-generated
lint-generated: ## ... that the generated files are up to date
	@copies="$$(mktemp -d)" && trap 'rm -rf "$$copies"' EXIT && mkdir "$$copies/as-is" && \
	tar -cf - --exclude ./.git --exclude ./.dev --exclude ./bin --exclude node_modules . | tar -xf - -C "$$copies/as-is" && \
	cp -R "$$copies/as-is" "$$copies/generated" && \
	(cd "$$copies/generated" && go generate ./...) && \
	(cd "$$copies" && diff -ru as-is generated) || \
	{ echo 'Generated files are out of date, or cannot be generated: run make generate.' >&2; exit 1; }

# Compares with the document of the last release, which release keeps.
# Before the first release the check passes. oasdiff only warns about fields that
# are removed from a response or a webhook; here they fail the check too.
.PHONY: lint-openapi
lint-openapi: bin/oasdiff ## ... that the API is compatible with clients of the last release
	@if [ ! -e docs/openapi-released.json ]; then \
		echo 'docs/openapi-released.json does not exist before the first release: nothing to compare.'; \
	else \
		documents="$$(mktemp -d)" && trap 'rm -rf "$$documents"' EXIT && \
		(cd tools/oasdiff && go run ./received) <docs/openapi-released.json >"$$documents/released.json" && \
		(cd tools/oasdiff && go run ./received) <api/openapi.json >"$$documents/now.json" && \
		bin/oasdiff breaking --fail-on WARN "$$documents/released.json" "$$documents/now.json"; \
	fi

# Of Redocly CLI and Spectral every warning counts. In a copy, as lint-examples.
.PHONY: lint-document
lint-document: export REDOCLY_TELEMETRY = off
lint-document: export REDOCLY_SUPPRESS_UPDATE_NOTICE = true
lint-document: ## ... the OpenAPI document with Redocly CLI and Spectral, if Node is installed
	@if command -v npm >/dev/null && node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || a == 20 && b >= 19 ? 0 : 1)'; then \
		copy="$$(mktemp -d)" && trap 'rm -rf "$$copy"' EXIT && \
		cp tools/openapi/package*.json tools/openapi/.spectral.yaml api/openapi.json "$$copy" && cd "$$copy" && \
		npm ci --silent --no-audit --no-fund && export PATH="$$copy/node_modules/.bin:$$PATH" && \
		redocly lint --extends recommended-strict openapi.json && spectral lint --fail-severity warn openapi.json; \
	else echo 'Node 20.19 or npm is not installed: Redocly CLI and Spectral do not check the OpenAPI document.'; fi

# In a copy, which takes the code that oapi-codegen and ogen generate with their defaults.
.PHONY: lint-clients
lint-clients: ## ... that clients of oapi-codegen and ogen compile, clear fields and read events
	@copy="$$(mktemp -d)" && trap 'rm -rf "$$copy"' EXIT && mkdir "$$copy/oapi" && \
	cp tools/clients/go.* tools/clients/testdata/*.go api/openapi.json "$$copy" && \
	(cd tools && go tool oapi-codegen -package oapi -generate types,client -o "$$copy/oapi/client.go" ../api/openapi.json) && \
	(cd tools/clients && go tool ogen -loglevel error -package ogen -target "$$copy/ogen" ../../api/openapi.json) && \
	cd "$$copy" && go test .

# It compiles the whole product under another path.
.PHONY: lint-module-path
lint-module-path: ## ... that module-path gives all modules a path under which they build
	cd tools && go test ./modulepath

.PHONY: fmt
fmt: bin/golangci-lint ## Format the code as lint requires
	bin/golangci-lint fmt
	cd dev && ../bin/golangci-lint fmt

.PHONY: vuln
vuln: ## Check the dependencies for known vulnerabilities (needs vuln.go.dev; not part of lint)
	@GOBIN="$(CURDIR)/bin" go install $(GOVULNCHECK)
	@for module in . dev; do (cd $$module && $(CURDIR)/bin/govulncheck ./...) || { status=$$?; \
		[ $$status != 3 ] || exit 3; echo "The dependencies of $$module are not checked."; }; done

## Releasing

# The version is the tag's, as Go embeds it in the program. Without a tag on the
# commit, or with changes in the checkout, it is a snapshot, which keeps no document.
.PHONY: release
release: bin/cyclonedx-gomod ## At a tag: build archives, checksums and SBOMs into dist/, and keep the API's document (docs/releasing.md)
	@rm -rf dist && mkdir dist && \
	CGO_ENABLED=0 go build -buildvcs=true -trimpath -ldflags='-s -w' -o bin/millwright ./cmd/millwright && \
	version="$$(bin/millwright --version)" && version="$${version##* }" && \
	for platform in $(PLATFORMS); do \
		name="millwright_$${version}_$${platform%/*}_$${platform#*/}" && echo "$$name" && \
		CGO_ENABLED=0 GOOS="$${platform%/*}" GOARCH="$${platform#*/}" go build -buildvcs=true -trimpath -ldflags='-s -w' -o "dist/$$name/millwright" ./cmd/millwright && \
		bin/cyclonedx-gomod bin -json -std -version "v$$version" -output "dist/$$name.cdx.json" "dist/$$name/millwright" && \
		git -c tar.umask=0022 archive --prefix="$$name/" --add-file="dist/$$name/millwright" -o "dist/$$name.tar.gz" HEAD $$(git ls-files LICENSE) CHANGELOG.md deploy/systemd && \
		rm -r "dist/$$name" || exit; \
	done && \
	cp api/openapi.json "dist/millwright_$${version}_openapi.json" && \
	(cd dist && $$(command -v sha256sum || echo shasum -a 256) * >"millwright_$${version}_checksums.txt") && \
	case "$$version" in \
	*[-+]*) echo "A snapshot: $$version is not the version of a release." ;; \
	*) cp api/openapi.json docs/openapi-released.json ;; \
	esac

.PHONY: module-path
module-path: ## Give the module, dev/, the tools and the example the path under which you publish them: MODULE=github.com/OWNER/millwright
	@cd tools && go run ./modulepath '$(MODULE)'

bin/cyclonedx-gomod: Makefile
	GOBIN="$(CURDIR)/bin" go install $(CYCLONEDX)
	@touch $@

# The tools of tools/go.mod are built once for each version. touch is needed because
# go install does not update the time of an unchanged binary.
bin/golangci-lint: tools/go.mod tools/go.sum
	@[ -e $@ ] || echo 'Building $@. The first build takes a few minutes.'
	@cd tools && ./install github.com/golangci/golangci-lint/v2/cmd/golangci-lint -buildvcs=false -ldflags='-s -w'
	@touch $@

bin/workflowcheck: tools/go.mod tools/go.sum
	@cd tools && ./install go.temporal.io/sdk/contrib/tools/workflowcheck -buildvcs=false -ldflags='-s -w'
	@touch $@

# In a separate module, because it and golangci-lint need different dependencies.
bin/oasdiff: tools/oasdiff/go.mod tools/oasdiff/go.sum
	@cd tools/oasdiff && ../install github.com/oasdiff/oasdiff -buildvcs=false -ldflags='-s -w'
	@touch $@
