# Two commands for users (demo, test), four for contributors (check, test-slow, test-systems, cases). All set up
# what they need.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Results of tests must not depend on how many cores happen to be free.
export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-slow test-systems cases check format clean

demo: $(VENV)/.installed
	$(BIN)/magneton compare transformers:logits_to_keep=0 torch --model llama --scale small

test: $(VENV)/.installed-dev
	$(BIN)/pytest -n 2

# Recordings over simulated boards in real time, nearly all of which is waiting, and proofs over many ranks.
# SLOW: the folders to look in.
test-slow: $(VENV)/.installed-dev
	$(BIN)/pytest -n 2 -m "slow and not systems" $(SLOW)

# Real engines, each in an environment that magneton makes for it: gigabytes, and minutes.
test-systems: $(VENV)/.installed-dev
	$(BIN)/magneton systems install vllm --device cpu --yes
	$(BIN)/magneton systems install sglang --device cpu --yes
	$(BIN)/pytest -m systems

# Known bugs and mutants of production graphs: none may be proved. Results go to benchmarks/results.
cases: $(VENV)/.installed-dev
	$(BIN)/pytest -m slow tests/scalify
	PYTHONPATH=tests/support $(BIN)/python benchmarks/silent_bugs/pairs.py
	PYTHONPATH=benchmarks $(BIN)/python -W ignore benchmarks/silent_bugs/run.py
	PYTHONPATH=tests/support $(BIN)/python benchmarks/hlo_mutants.py
	PYTHONPATH=tests/support:. $(BIN)/python -W ignore benchmarks/frameworks.py
	PYTHONPATH=tests/support:. $(BIN)/python -W ignore benchmarks/mutants.py

check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	$(MAKE) test

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "magneton needs Python 3.11 or later")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/pip install --quiet -c constraints.txt -e '.[transformers]'
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/pip install --quiet -c constraints.txt -e '.[transformers,dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
