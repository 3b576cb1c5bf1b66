# Every target makes the virtual environment it needs; a stamp file per set of extras says that it is
# up to date with pyproject.toml. Another interpreter: make PYTHON=python3.12 test

PYTHON ?= python3
# at most this many test processes
JOBS ?= 2
# more arguments for pytest: make test PYTEST_ARGS="tests/datasets -x"
PYTEST_ARGS ?=
# Neighbours stay together: two processes that share out a file would both compile what it needs.
PARALLEL := -n auto --maxprocesses=$(JOBS) --dist worksteal

VENV := .venv
BIN := $(VENV)/bin
# Dependencies come as wheels only, so no compiler is ever needed (the project itself is pure Python).
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary=:all:

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow test-versions fuzz test-arviz lint bench bench-full docs gallery wheel clean

help:
	@echo "make demo        run the tour in examples/demo.py"
	@echo "make test        fast tests and the examples in the docstrings"
	@echo "make test-slow   the statistical tests that take long"
	@echo "make fuzz        altered model files, damaged tables and hostile tiny tables, for five minutes (FUZZ_ARGS='--seconds 60 --seed 7')"
	@echo "make test-versions  the quick part on other Pythons and on the oldest versions of the libraries"
	@echo "make test-arviz  the draws in ArviZ's hands, in .venv-arviz (PYTHON: 3.12 or newer)"
	@echo "make lint        ruff, mypy and the import contract"
	@echo "make bench       small versions of all benchmarks, and their ratios beside the committed ones"
	@echo "make bench-full  the whole of them: hours (PARTITA_DATA names the folder of data sets)"
	@echo "make gallery     run examples/gallery and write docs/gallery.md"
	@echo "make docs        build the documentation into site/"
	@echo "make wheel       build the distributions into dist/, one wheel with compiled kernels"
	@echo "make clean       remove the environment and everything built"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info; \
	sys.exit(0 if v >= (3, 11) else "partita needs Python 3.11 or newer, and $(PYTHON) is %d.%d: try make PYTHON=python3.12" % v[:2])'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.stamp-demo: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) -e ".[recommended]"
	@touch $@

$(VENV)/.stamp-dev: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) -e ".[dev]"
	@touch $@

$(VENV)/.stamp-docs: pyproject.toml | $(VENV)/.stamp-dev
	$(PIP_INSTALL) -e ".[docs]"
	@touch $@

$(VENV)/.stamp-wheel: pyproject.toml | $(VENV)/.stamp-dev
	$(PIP_INSTALL) -e ".[cli,wheel]"
	@touch $@

$(VENV)/.stamp-bench: pyproject.toml | $(VENV)/.stamp-dev
	$(PIP_INSTALL) -e ".[plot,graph,peers]"
	@touch $@

demo: $(VENV)/.stamp-demo
	$(BIN)/python examples/demo.py

test: $(VENV)/.stamp-dev
	$(BIN)/python -m pytest $(PARALLEL) $(PYTEST_ARGS)

test-slow: $(VENV)/.stamp-dev
	$(BIN)/python -m pytest $(PARALLEL) -m slow $(PYTEST_ARGS)

# Numba's checks of bounds are compiled into kernels, which must not get into the cache of the others.
fuzz: $(VENV)/.stamp-dev
	NUMBA_CACHE_DIR=$(CURDIR)/.fuzz-cache $(BIN)/python -m tests.fuzz $(FUZZ_ARGS)

# The quick part of the suite: reading, laws and files, little that compiles. An interpreter that is missing is named.
# The oldest numba has a cache of its own: kernels of another version would replace those of the first interpreter.
QUICK := tests/table tests/metrics tests/partitions tests/posterior tests/estimator tests/fuzz tests/ensembles \
	tests/test_labels.py tests/test_files.py tests/test_public_api.py tests/test_packaging.py
VERSIONS ?= 3.11 3.12 3.13
test-versions:
	@for version in $(VERSIONS); do \
	  python$$version -c "" 2>/dev/null || { echo "python$$version is not installed: left out"; continue; }; \
	  $(MAKE) --no-print-directory .venv-versions/$$version/.stamp PYTHON=python$$version CONSTRAINT= || exit 1; \
	  .venv-versions/$$version/bin/python -m pytest $(QUICK) $(PYTEST_ARGS) || exit 1; \
	done
	$(PYTHON) scripts/oldest_versions.py test > .oldest-versions.txt
	$(MAKE) --no-print-directory .venv-versions/oldest/.stamp CONSTRAINT="-c .oldest-versions.txt"
	NUMBA_CACHE_DIR=$(CURDIR)/.venv-versions/kernels .venv-versions/oldest/bin/python -m pytest $(QUICK) $(PYTEST_ARGS)

.venv-versions/%/.stamp: pyproject.toml
	$(PYTHON) -m venv .venv-versions/$*
	.venv-versions/$*/bin/python -m pip install --quiet --disable-pip-version-check --only-binary=:all: $(CONSTRAINT) -e ".[test]"
	@touch $@

# ArviZ 1.0 needs a newer Python than partita does, so it has an environment of its own.
test-arviz:
	@$(PYTHON) -c 'import sys; v = sys.version_info; \
	sys.exit(0 if v >= (3, 12) else "ArviZ needs Python 3.12 or newer, and $(PYTHON) is %d.%d: try make PYTHON=python3.12 test-arviz" % v[:2])'
	$(PYTHON) -m venv .venv-arviz
	.venv-arviz/bin/python -m pip install --quiet --disable-pip-version-check --only-binary=:all: -e ".[arviz,plot]" "pytest>=8.2"
	.venv-arviz/bin/python -m pytest tests/posterior/test_arviz.py tests/posterior/test_checks.py

lint: $(VENV)/.stamp-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy src
	$(BIN)/lint-imports

bench: $(VENV)/.stamp-bench
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.regression

# A bar that is not met is no reason to keep the page from saying so.
bench-full: $(VENV)/.stamp-bench
	-$(BIN)/python -m benchmarks --full
	$(BIN)/python scripts/draw_results.py
	$(BIN)/python scripts/draw_pages.py
	$(BIN)/python scripts/sync_results.py

gallery: $(VENV)/.stamp-dev
	$(BIN)/python scripts/build_gallery.py

wheel: $(VENV)/.stamp-wheel
	$(BIN)/python scripts/build_wheel.py

docs: $(VENV)/.stamp-docs
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) .venv-arviz site dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
