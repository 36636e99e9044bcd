# Weir. `make` lists the targets.
#
# What can be run needs Go, make and git only (the race detector also a C compiler, which Go's own
# -race needs on Linux). Modules are found by their go.mod, so a new one takes part without an edit here.

GO        ?= go
TAGS      ?=
TESTFLAGS ?=

# One test binary may take this long before go ends it with a stack dump.
TEST_TIMEOUT ?= 10m
RACE_TIMEOUT ?= 10m

# Packages whose every line is about concurrency. `make race` runs them again with GOMAXPROCS 16.
RACE_HOT   ?= ./rpcstatus/... ./tps/... ./filter/... ./internal/...
# What of it has no goroutines.
RACE_COLD  ?= /internal/dagor/sim$$
RACE_CPU   ?= 16
RACE_COUNT ?= 3

# Fuzzing time of one function.
FUZZTIME ?= 10s

BENCH      ?= .
BENCHTIME  ?= 1s
BENCHCOUNT ?= 1

# One example may take this long (where the timeout command exists).
EXAMPLE_TIMEOUT ?= 120

# Every module but tools/, which only pins the versions of tools.
MODULES := $(sort $(patsubst %/,%,$(dir $(shell find . -name go.mod -not -path './tools/*' \
	-not -path '*/testdata/*' -not -path '*/vendor/*' -not -path './.*/*'))))
# Peers have a target of their own.
BENCH_MODULES := $(filter-out ./bench,$(MODULES))
# Those of the hot packages that are there.
RACE_HOT_HERE = $(strip $(foreach p,$(RACE_HOT),$(if $(wildcard $(patsubst %/...,%,$(p))),$(p))))

LINT = $(GO) tool -modfile='$(CURDIR)/tools/go.mod' golangci-lint

# A workspace in a parent folder must not decide what is built, and version stamps are of no use here:
# they fail where git does not trust the folder's owner.
export GOWORK := off
export GOFLAGS := $(strip $(filter-out -buildvcs=%,$(shell $(GO) env GOFLAGS)) -buildvcs=false)

# $(call each,WORDS,MODULES,COMMAND) says WORDS and runs COMMAND in each of MODULES that has packages. It goes on
# after a failure, and then fails at the end.
define each
@failed=; \
for module in $(2); do \
	packages=$$(cd $$module && $(GO) list -tags '$(TAGS)' ./... 2>&1) || { echo "$$packages"; exit 1; }; \
	case "$$packages" in \
	*'matched no packages'*) echo "== $(1): $$module has no packages yet" ;; \
	*) echo "== $(1): $$module"; (cd $$module && $(3)) || failed="$$failed $$module" ;; \
	esac; \
done; \
if [ -n "$$failed" ]; then echo "== $(1) failed in:$$failed"; exit 1; fi
endef

.DEFAULT_GOAL := help
.NOTPARALLEL:

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## compile every module
	$(call each,build,$(MODULES),$(GO) build -o /dev/null -tags '$(TAGS)' ./...)

.PHONY: vet
vet: ## go vet in every module
	$(call each,vet,$(MODULES),$(GO) vet -tags '$(TAGS)' ./...)

.PHONY: test
test: vet ## go vet and every test that needs nothing but Go
	$(call each,test,$(MODULES),$(GO) test -tags '$(TAGS)' -count=1 -timeout $(TEST_TIMEOUT) $(TESTFLAGS) ./...)

.PHONY: test-all
test-all: ## test, and the tests against real services (installs and starts them; needs root for that)
	@echo "== services"
	@.ci/services.sh run $(MAKE) --no-print-directory test TAGS=services

.PHONY: race
race: ## tests under the race detector, then the hot packages with GOMAXPROCS 16
	$(call each,race,$(MODULES),$(GO) test -race -count=1 -timeout $(RACE_TIMEOUT) $(TESTFLAGS) ./...)
	@if [ -n "$(RACE_HOT_HERE)" ]; then \
		echo "== race, $(RACE_CPU) threads, $(RACE_COUNT) rounds: $(RACE_HOT_HERE)"; \
		$(GO) test -race -cpu $(RACE_CPU) -count $(RACE_COUNT) -timeout $(RACE_TIMEOUT) $(TESTFLAGS) \
			$$($(GO) list $(RACE_HOT_HERE) | grep -v '$(RACE_COLD)'); \
	fi

.PHONY: lint
lint: ## golangci-lint in every module (its first build takes a minute or two)
	$(call each,lint,$(MODULES),$(LINT) run --config '$(CURDIR)/.golangci.yml' ./...)

.PHONY: fmt
fmt: ## format every module, imports in three groups
	$(call each,fmt,$(MODULES),$(LINT) fmt --config '$(CURDIR)/.golangci.yml' ./...)

.PHONY: tidy
tidy: ## go mod tidy in every module
	@for module in $(MODULES) ./tools; do echo "== tidy: $$module"; (cd $$module && $(GO) mod tidy) || exit 1; done

.PHONY: tidy-check
tidy-check: ## fail if go mod tidy would change something
	@for module in $(MODULES) ./tools; do echo "== tidy-check: $$module"; (cd $$module && $(GO) mod tidy -diff) || exit 1; done

.PHONY: repo-check
repo-check: ## licence headers, paths of some machine, links between documents
	@.ci/repo-check.sh

.PHONY: fuzz
fuzz: ## every fuzz function for FUZZTIME (10s)
	@FUZZTIME=$(FUZZTIME) .ci/fuzz.sh $(MODULES)

.PHONY: bench
bench: ## benchmarks of every module; BENCH=regexp BENCHTIME=1s BENCHCOUNT=1
	$(call each,bench,$(BENCH_MODULES),$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime $(BENCHTIME) -count $(BENCHCOUNT) ./...)

ifneq ($(wildcard bench/go.mod),)
.PHONY: bench-peers
bench-peers: ## benchmarks beside other libraries
	$(call each,bench-peers,./bench,$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime $(BENCHTIME) -count $(BENCHCOUNT) ./...)
endif

.PHONY: examples
examples: ## run every example; each checks its own outcome
	@EXAMPLE_TIMEOUT=$(EXAMPLE_TIMEOUT) .ci/examples.sh

.PHONY: experiments
experiments: ## every experiment on admission under overload, which writes docs/overload-experiments.md; takes minutes
	cd example && $(GO) run ./overloadsim -full -o ../docs/overload-experiments.md -images ../docs/images

.PHONY: demo
demo: ## the shortest look at what Weir does
	cd example && $(GO) run ./limits
