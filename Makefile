# Everything happens in .venv, which the first target that needs it makes; nothing else on the machine changes,
# except that the browser tests install Chromium where none is found and apt and root allow.
PYTHON ?= python3
comma := ,
BIN := .venv/bin
NODE := $(CURDIR)/.venv/node
TYPESCRIPT := $(wildcard extensions/package.json)
NOTEBOOKS := $(wildcard notebooks/*.ipynb)
BROWSER_TESTS := $(wildcard tests/browser/test_*.py)
GPU_TESTS := $(wildcard tests/gpu/test_*.py)
EXTRAS := notebook,test$(if $(TYPESCRIPT),$(comma)build)$(if $(BROWSER_TESTS),$(comma)browser)

.PHONY: help lab test check demo gpu-check test-python test-typescript test-browser typescript clean

help:  ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:[^#]*## /\t/' | expand -t 12

lab: .venv/ready typescript  ## Open JupyterLab at the first notebook (with no display: print its address)
	$(BIN)/jupyter-lab $(if $(DISPLAY)$(WAYLAND_DISPLAY)$(filter Darwin,$(shell uname)),,--no-browser) \
		$(if $(filter 0,$(shell id -u)),--allow-root) $(firstword $(NOTEBOOKS))

test: check test-python test-typescript test-browser  ## Everything: lint, types, contracts, all tests

check: .venv/ready  ## Lint, types, and the layers' contracts
	$(BIN)/ruff check .
	$(BIN)/pyrefly check
	$(BIN)/lint-imports

demo: .venv/ready  ## The whole job without a browser; writes memviz-demo/ (ARGS=--quick for a minute's worth)
	$(BIN)/memviz demo $(ARGS)

gpu-check: .venv/ready  ## The tests that need a CUDA device
ifneq ($(GPU_TESTS),)
	$(BIN)/python -m pytest $(GPU_TESTS)
else
	@echo "There are no tests for a GPU yet."
endif

clean:  ## Remove what the other targets made
	rm -rf .venv .pytest_cache .ruff_cache .import_linter_cache .hypothesis memviz-demo extensions/node_modules

test-python: .venv/ready typescript
	$(BIN)/python -m pytest

test-typescript: typescript
ifneq ($(TYPESCRIPT),)
	cd extensions && PATH="$(NODE):$$PATH" npm test
endif

# Without Chromium: a loud line and no failure; with CI=true a failure (.ci/chromium says which).
test-browser: .venv/ready typescript
ifneq ($(BROWSER_TESTS),)
	@chromium=$$(.ci/chromium) || exit 1; \
	if [ -n "$$chromium" ]; then MEMVIZ_CHROMIUM="$$chromium" $(BIN)/python -m pytest $(BROWSER_TESTS); fi
endif

typescript: .venv/ready
ifneq ($(TYPESCRIPT),)
	test -e $(NODE)/npm || $(BIN)/python .ci/node.py $(NODE)
	cd extensions && PATH="$(NODE):$$PATH" npm ci --no-audit --no-fund && PATH="$(NODE):$$PATH" npm run build
endif

# The file's name holds the extras, so that a first TypeScript or browser test brings what it needs.
.venv/ready: .venv/installed-$(subst $(comma),-,$(EXTRAS))
	touch $@

.venv/installed-$(subst $(comma),-,$(EXTRAS)): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	touch $@
