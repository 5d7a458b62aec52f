# Everything happens in .venv, which the first target that needs it makes; nothing else on the machine changes,
# except that the browser tests install Chromium where none is found and apt and root allow.
PYTHON ?= python3
BIN := .venv/bin
NODE := $(CURDIR)/.venv/node
NOTEBOOKS := $(wildcard notebooks/*.ipynb)
BROWSER_TESTS := $(wildcard tests/browser/test_*.py)

# Beside other work (a browser, a second process), threads that spin while they wait take several times as long.
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: help lab test check demo gpu-check test-python test-typescript test-browser typescript clean

help:  ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:[^#]*## /\t/' | expand -t 12

lab: .venv/ready typescript  ## Open JupyterLab at the first notebook (with no display: print its address)
	$(BIN)/jupyter-lab $(if $(DISPLAY)$(WAYLAND_DISPLAY)$(filter Darwin,$(shell uname)),,--no-browser) \
		$(if $(filter 0,$(shell id -u)),--allow-root) --LabApp.default_url=/lab/tree/$(firstword $(NOTEBOOKS))

test: check test-python test-typescript test-browser  ## Everything: lint, types, contracts, all tests

check: .venv/ready  ## Lint, types, and the layers' contracts
	$(BIN)/ruff check .
	$(BIN)/pyrefly check
	$(BIN)/lint-imports

demo: .venv/ready  ## The whole job without a browser; writes memviz-demo/ (ARGS=--quick for a minute's worth)
	$(BIN)/memviz demo $(ARGS)

gpu-check:  ## Check on a CUDA device, with the Python that has torch (PYTHON=...); writes benchmarks/results/gpu.json
	$(PYTHON) -m benchmarks.gpu

clean:  ## Remove what the other targets made
	rm -rf .venv .pytest_cache .ruff_cache .import_linter_cache .hypothesis memviz-demo extensions/node_modules

test-python: .venv/ready typescript
	$(BIN)/python -m pytest

test-typescript: typescript
	cd extensions && PATH="$(NODE):$$PATH" npm test

# Without Chromium: a loud line and no failure; with CI=true a failure (.ci/chromium says which).
test-browser: .venv/ready typescript
ifneq ($(BROWSER_TESTS),)
	@chromium=$$(.ci/chromium) || exit 1; \
	if [ -n "$$chromium" ]; then MEMVIZ_CHROMIUM="$$chromium" $(BIN)/python -m pytest $(BROWSER_TESTS); fi
endif

typescript: memviz/widgets/static/graph.js

memviz/widgets/static/graph.js: .venv/ready extensions/node_modules $(wildcard extensions/*/src/*.ts)
	cd extensions && PATH="$(NODE):$$PATH" npm run build

extensions/node_modules: .venv/ready extensions/package.json extensions/package-lock.json
	$(BIN)/python .ci/node.py $(NODE)
	cd extensions && PATH="$(NODE):$$PATH" npm ci --no-audit --no-fund
	touch $@

.venv/ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[notebook,test,build,browser]'
	touch $@
