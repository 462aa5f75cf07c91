# Everything here makes what it needs, in .venv, and can be run again.
#
#   make demo     diagnose a bundled script; ends with the verdict and the path of report.html
#   make test     run the fast tests: under 4 minutes on 2 cores; no torch.compile, no browser
#   make test-live    run the others: torch.compile, scripts and commands as processes, a browser
#   make docs-rules   write the rules' pages again
#   make docs     build the site of docs/ in site/, with a gallery of recorded reports
#   make check    what has to hold before a change lands: all tests, ruff, mypy, packaging

PYTHON ?= python3
TORCH  ?= torch==2.13.0
DEMO   ?= pointwise
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo test test-live check lint types package docs docs-rules clean
.DEFAULT_GOAL := demo

demo: $(VENV)/.installed
	@echo "== diagnosing the bundled script '$(DEMO)' (a minute or two: it compiles, measures, profiles)"
	@$(BIN)/traceview demo $(DEMO)

test: $(VENV)/.installed-dev
	@echo "== running the fast tests (make test-live: the others)"
	@$(BIN)/python -m pytest -n auto -m "not live and not browser and not packaging and not thorough"

test-live: $(VENV)/.installed-dev
	@echo "== running the tests that compile, start scripts and commands, or open a browser"
	@$(BIN)/python -m pytest -n auto -m "live or browser or thorough"

check: test test-live lint types package

lint: $(VENV)/.installed-dev
	@echo "== ruff"
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	@echo "== mypy"
	@$(BIN)/mypy

package: $(VENV)/.installed-dev
	@echo "== building and looking into the wheel"
	@$(BIN)/python -m pytest -q tests/test_packaging.py -m packaging

docs-rules: $(VENV)/.installed
	@echo "== writing docs/rules.md and docs/rules from the rules' docstrings"
	@$(BIN)/python -m traceview.rules.docs

docs: $(VENV)/.installed-docs
	@echo "== making the gallery's reports, then the site: site/index.html"
	@rm -rf site build/gallery
	@$(BIN)/python docs/make_gallery.py build/gallery/gallery
	@$(BIN)/python -m sphinx -q -W --keep-going -d build/doctrees docs site

$(VENV)/bin/python:
	@echo "== making a virtual environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "traceview needs Python 3.10 or newer: say make PYTHON=python3.11")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --upgrade pip

$(VENV)/.torch: $(VENV)/bin/python
	@echo "== installing $(TORCH) (another build: make TORCH=...)"
	@$(BIN)/python -m pip install -qq "$(TORCH)" numpy
	@touch $@

$(VENV)/.installed: $(VENV)/.torch pyproject.toml
	@echo "== installing traceview"
	@$(BIN)/python -m pip install -qq --editable .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "== installing what the tests need"
	@$(BIN)/python -m pip install -qq --editable . --group dev
	@touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	@echo "== installing what builds the site"
	@$(BIN)/python -m pip install -qq --group docs
	@touch $@

clean:
	rm -rf $(VENV) build site dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
