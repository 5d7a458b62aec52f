# Everything happens in .venv, which the first target that needs it makes.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help test check clean

help:  ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install -q -c constraints.txt -e .[notebook] pytest pytest-timeout hypothesis ruff import-linter
	touch $@

check: .venv/ready  ## Lint, and the layers' contracts
	$(BIN)/ruff check memviz tests
	$(BIN)/lint-imports

test: check  ## Everything: lint, contracts, tests
	$(BIN)/python -m pytest memviz tests

clean:  ## Remove what the other targets made
	rm -rf .venv .pytest_cache .ruff_cache .import_linter_cache
