# Needs Python 3.11 or later and make. All else goes into .venv, from the pins in requirements-dev.txt, once.
# uv is taken where it is there, since it is fast; `make test UV=` does without it.

.PHONY: help demo test test-full quick check lint types format coverage mutation reference bench image release lock clean
.PHONY: controlplane controlplane-clients
.DEFAULT_GOAL := help
unexport PYTHONDONTWRITEBYTECODE

UV := $(shell uv --version >/dev/null 2>&1 && echo uv)
PYTHON ?= $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11,$(shell \
	$(name) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(name))))
BIN := .venv/bin
READY := .venv/.ready
DEMO := build/demo

# uv and pip may be set up for different places to install from, so pip has a try where uv fails.
install = $(if $(UV),$(UV) pip install -q --python $(BIN)/python $(1) ||) \
	$(BIN)/python -m pip install -q --disable-pip-version-check $(1)

# Two of the three workers mostly wait for a control plane of their own (tests/conftest.py); without one, two have enough
# to do. Which tests run beside each other is set by groups, so plain `pytest`, one after the other, runs the same ones.
WORKERS ?= 3
quick: WORKERS = 2
tests = pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder --durations 15
pytest = $(BIN)/python -m $(tests)
prebuilt = PYTHONPATH=tests $(BIN)/python -m controlplane.build --if-possible

help: ## say what can be made
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | awk -F '|' '{printf "make %-22s%s\n", $$1, $$2}'

demo: $(READY) ## set everything up, render the upgrade of a three-node cluster and rehearse it
	$(BIN)/upgradeplan render examples/three-node --output-dir $(DEMO)
	@echo
	find $(DEMO) -type f | sort
	@echo
	head -24 $(DEMO)/*/index.yaml
	@echo
	$(BIN)/upgradeplan rehearse examples/three-node

test: check $(READY) ## set everything up, then lint, types and the tests: all but what it says at the end
	@$(prebuilt)
	@$(pytest) --short

# Real processes on a busy machine can lose a race of seconds. Such a test has a second try, and the output shows both.
test-full: check $(READY) ## the same with every test, as CI runs it
	@$(prebuilt)
	@$(pytest) --rerun-real --rerun-show-tracebacks -rfER

quick: check $(READY) ## lint, types and the quick tests, without a control plane
	@$(pytest) --quick

check: lint types

lint: $(READY) ## ruff: rules and format
	@$(BIN)/ruff check -q .
	@$(BIN)/ruff format -q --check .

types: $(READY) ## mypy --strict
	@$(BIN)/python -m mypy

# Processes that tests start are measured too, so a test that fails there does not hide the figures of all others.
coverage: export COVERAGE_FILE = $(CURDIR)/.coverage
coverage: WORKERS = 2
coverage: $(READY) ## which lines and branches the tests without a control plane run (TESTS=files)
	@$(BIN)/python -m coverage erase
	@$(BIN)/python -m coverage run -m $(tests) --short -m "not controlplane" $(TESTS); code=$$?; \
		$(BIN)/python -m coverage combine -q && $(BIN)/python -m coverage report --skip-covered; exit $$code

mutation: $(READY) ## change the pure core in small ways and count what no test notices (COUNT=60)
	@PYTHONPATH=tests $(BIN)/python -m mutation $(COUNT)

format: $(READY) ## format the code, and fix what ruff can fix
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# kube-apiserver, kube-controller-manager, etcd, kubectl and helm. The first build takes about 8 minutes on two cores;
# it is kept in $UPGRADEPLAN_CACHE or ~/.cache/upgradeplan. Afterwards these two do nothing.
controlplane: $(READY) ## build the real control plane for tests, once (needs Go)
	@PYTHONPATH=tests $(BIN)/python -m controlplane.build

controlplane-clients: $(READY)
	@PYTHONPATH=tests $(BIN)/python -m controlplane.build clients

reference: $(READY) ## write docs/reference and schemas/built from the schemas and the code
	@$(BIN)/python -m pytest -q --snapshot-update tests/test_reference.py

bench: controlplane-clients ## time and memory, beside helm's
	@PYTHONPATH=tests $(BIN)/python -m bench

image: $(READY) ## build the container image with buildah (BASE=python:3.11-slim ARCH=amd64 IMAGE=localhost/upgradeplan:tag)
	@PYTHONPATH=tests $(BIN)/python -m release image $(if $(BASE),--base $(BASE)) $(if $(ARCH),--arch $(ARCH)) $(if $(IMAGE),--tag $(IMAGE))

release: $(READY) ## commit version and changelog, and fill dist/ (VERSION=1.2.3 BASE=image); publishes nothing
	@test -n "$(VERSION)" || { echo "say which version: make release VERSION=1.2.3" >&2; exit 2; }
	@PYTHONPATH=tests $(BIN)/python -m release check $(VERSION)
	@$(MAKE) test
	@PYTHONPATH=tests $(BIN)/python -m release make $(VERSION) $(if $(BASE),--base $(BASE)) $(if $(ARCH),--arch $(ARCH))

lock: ## update the pins from pyproject.toml (needs uv; UPGRADE=--upgrade takes newer versions)
	@uv pip compile -q --universal --generate-hashes --no-header --no-annotate $(UPGRADE) \
		pyproject.toml -o requirements.txt >/dev/null
	@uv pip compile -q --universal --generate-hashes --no-header --no-annotate $(UPGRADE) \
		pyproject.toml --extra dev -o requirements-dev.txt >/dev/null

clean: ## remove what was made here, but for .venv
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

$(READY): pyproject.toml requirements-dev.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed; say which with PYTHON=/path/to/python" >&2; exit 2; }
	@test -x $(BIN)/python || { echo "making .venv"; $(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }; }
	@echo "installing the pinned packages into .venv"
	@$(call install,--require-hashes -r requirements-dev.txt)
	@$(call install,--no-deps --no-build-isolation -e .)
	@touch $@
