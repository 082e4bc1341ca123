# Everything runs from .venv, which every target makes from the hashed lock when it is missing or outdated.
BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help venv demo test check bench serve cases format lock bench-policy

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv:  ## make or update .venv (every other target does this by itself)
	@PYTHON='$(PYTHON)' .ci/venv

demo:  ## play the whole story against a real broker and a real tool server
	@began=$$(date +%s); PYTHON='$(PYTHON)' .ci/venv || exit 1; ready=$$(date +%s); \
	$(BIN)/carnet demo; code=$$?; ended=$$(date +%s); \
	echo "set-up $$((ready - began)) s, story $$((ended - ready)) s"; exit $$code

test: venv  ## all tests, slow suites in their short form (TEST_EXAMPLES, TEST_ROUNDS: other sizes)
	@$(BIN)/python -m pytest -n 2 $(ARGS)

check: venv  ## style, types, layers, locks, file sizes
	@.ci/check

bench: venv  ## speed, as ratios inside one run, against their floors
	@$(BIN)/python -m bench $(ARGS)

BENCH_BIN := .venv-bench/bin
bench-policy: venv  ## a policy decision against cedarpy, regopy and pycasbin (in a venv of their own)
	@[ -x $(BENCH_BIN)/python ] || $(BIN)/python -m venv .venv-bench
	@cmp -s bench/policy/requirements-bench.txt .venv-bench/installed.txt || { \
	  $(BENCH_BIN)/python -m bench.policy.install && cp bench/policy/requirements-bench.txt .venv-bench/installed.txt || true; }
	@PYTHONPATH=.:policy $(BENCH_BIN)/python -m bench.policy

serve: venv  ## a broker for trying things out, on loopback
	@$(BIN)/carnet dev

cases: venv  ## the case files (DIR=another folder of the same format)
	@$(BIN)/python -m tests.cases $(or $(DIR),tests/cases/data) $(ARGS)

format: venv  ## rewrite the layout of the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

UV = $(firstword $(wildcard $(BIN)/uv) uv)
COMPILE = $(UV) pip compile --quiet --universal --generate-hashes --no-header --no-annotate pyproject.toml
lock:  ## make both lock files anew from pyproject.toml (needs uv: .venv/bin/pip install uv)
	$(COMPILE) --all-extras --group dev -o requirements-dev.lock
	$(COMPILE) --extra cli --extra server --extra fastapi -o requirements.lock
