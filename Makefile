# Every target sets up what it needs: a fresh clone and `make demo` is enough.
VENV   := .venv
PY     := $(VENV)/bin/python
STAMP  := $(VENV)/.installed
PYTHON ?= python3

DOCS := build/docs

.PHONY: demo test test-slow test-lowest dist lint docs docs-links bench bench-peers reproduce reproduce-quick weekly lock recompile clean

demo: $(STAMP)
	$(PY) examples/demo.py demo

test: lint
	$(PY) -m pytest -n 2

test-slow: $(STAMP)
	$(PY) -m pytest -m slow -s

# What a user sees, with the oldest versions that pyproject.toml admits.
LOWEST        := .venv-lowest
LOWEST_PYTHON ?= python3.11
LOWEST_TESTS  := packaging panel columns files frames trajectories datasets emissions jump_means em contract plots golden_fits report_content report_page

test-lowest: $(LOWEST)/.installed
	$(LOWEST)/bin/python -m pytest -n 2 $(LOWEST_TESTS:%=tests/test_%.py)

$(LOWEST)/.installed: pyproject.toml requirements.lowest
	$(LOWEST_PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install -q -c requirements.lowest -e '.[all]' polars pytest pytest-xdist hypothesis
	@touch $@

# Wheel and source archive, each installed into an empty environment and used there.
dist: $(STAMP)
	rm -rf dist && $(PY) -m build -q --outdir dist . && $(PY) tests/install.py dist/*.whl dist/*.tar.gz

lint: $(STAMP)
	$(VENV)/bin/ruff check src tests benchmarks experiments examples docs
	$(VENV)/bin/ruff format --check src tests benchmarks experiments examples docs
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

# The pages, with every tutorial and example run; a warning or a broken link is an error. No network is needed.
docs: $(STAMP)
	$(PY) -m sphinx -W --keep-going -q -b html docs $(DOCS)
	$(PY) docs/check_site.py $(DOCS)
	@echo "open $(DOCS)/index.html"

# Links to other sites, which needs the network.
docs-links: $(STAMP)
	$(PY) -m sphinx -q -b linkcheck docs build/linkcheck

bench: $(STAMP)
	$(PY) benchmarks/run.py
	$(PY) benchmarks/comparators.py
	$(PY) benchmarks/infinite.py
	$(PY) benchmarks/cli.py
	$(PY) benchmarks/online.py

# Beside the peers, in an environment of their own: they bring torch and jax.
PEERS := .venv-peers

bench-peers: $(PEERS)/.installed
	$(PEERS)/bin/python benchmarks/peers.py
	$(PEERS)/bin/python benchmarks/peers.py --write

$(PEERS)/.installed: pyproject.toml
	$(PYTHON) -m venv $(PEERS) && $(PEERS)/bin/python -m pip install -q -U 'pip>=25.1'
	$(PEERS)/bin/python -m pip install -q --group peers -e '.[plots]'
	@touch $@

# The paper's experiments and docs/reproduction.md; a run that was stopped goes on where it was.
reproduce: $(STAMP)
	$(PY) experiments/run.py

# The same with few data sets, in minutes; its results stay apart.
reproduce-quick: $(STAMP)
	$(PY) experiments/run.py --quick

weekly: test-slow reproduce-quick

# The versions that the tests run against; `make lock` renews them.
$(STAMP): pyproject.toml requirements.lock
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv -q --allow-existing $(VENV) && \
	  uv pip install -q --python $(PY) -c requirements.lock --group dev -e . ; \
	else \
	  $(PYTHON) -m venv $(VENV) && $(PY) -m pip install -q -U 'pip>=25.1' && \
	  $(PY) -m pip install -q -c requirements.lock --group dev -e . ; \
	fi
	@touch $(STAMP)

lock: $(STAMP)
	$(PY) -m pip freeze --exclude-editable --exclude pip --exclude uv > requirements.lock

# numba does not see that a kernel called by another one has changed: forget what it compiled.
recompile:
	find src -name '*.nb[ic]' -delete

clean:
	rm -rf $(VENV) $(LOWEST) $(PEERS) demo build dist experiments/.cache experiments/results-quick .pytest_cache .mypy_cache .ruff_cache .hypothesis
