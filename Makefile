# make        what there is
# make run    the environment (.venv) when it is not there yet, then the quickstart

VENV ?= .venv
EXPERIMENT ?= quickstart
ARGS ?=
PYTEST ?=
bin := $(VENV)/bin
stamp := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install run test check clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18
	@echo "  variables: PYTHON=python3.12  VENV=.venv  EXPERIMENT=quickstart  ARGS='dtype=bf16'  PYTEST='-k NAME'"

install: $(stamp) ## the environment, made or brought up to date

# Made again only when what it is made from has changed.
$(stamp): pyproject.toml constraints.txt
	@set -e; \
	if ! $(bin)/python -c '' 2>/dev/null; then \
	  for each in "$(PYTHON)" python3 python3.13 python3.12 python3.11 python; do \
	    if [ -n "$$each" ] && "$$each" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then found=$$each; break; fi; \
	    if [ -n "$$each" ] && [ "$$each" = "$(PYTHON)" ]; then \
	      echo "PYTHON=$$each: not a Python 3.11, 3.12 or 3.13 with the venv module" >&2; exit 1; fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo "No Python 3.11, 3.12 or 3.13 with the venv module was found; name one: make PYTHON=/path/to/python3.12" >&2; exit 1; fi; \
	  echo "Making $(VENV) with $$($$found --version)"; \
	  rm -rf "$(VENV)"; "$$found" -m venv "$(VENV)"; \
	fi
	@echo "Installing into $(VENV), which takes minutes the first time"
	@$(bin)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

run: $(stamp) ## answer experiment=$(EXPERIMENT) on this machine, with or without a GPU
	@$(bin)/klab run experiment=$(EXPERIMENT) $(ARGS)

test: $(stamp) ## the tests; those that need a GPU are skipped where there is none
	@$(bin)/python -m pytest $(PYTEST)

check: $(stamp) ## format, lint, types and the tests: what .ci/run checks
	@$(bin)/ruff format --check .
	@$(bin)/ruff check .
	@$(bin)/pyrefly check
	@$(MAKE) --no-print-directory test

clean: ## remove the environment and the caches; outputs/ stays
	rm -rf $(VENV) build dist kernel_lab.egg-info .pytest_cache .ruff_cache
	find . -name __pycache__ -not -path './outputs/*' -prune -exec rm -rf {} +
