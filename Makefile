# What a developer does with this checkout. `make` alone lists it.

# Built with a profile, as distributions build it, Python takes a fifth less time for all that it
# does than as version managers build it: the first of these that is so, else `python3`.
OPTIMIZED := import ensurepip, sys, sysconfig, venv; \
	built = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or ""); \
	sys.exit(sys.version_info < (3, 11) or not (built or sys.base_prefix == "/usr"))
PYTHON ?= $(or $(shell for one in python3 /usr/bin/python3; do \
	"$$one" -c '$(OPTIMIZED)' 2> /dev/null && { echo "$$one"; break; }; done),python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header

# Spark starts its Python workers with this; another Python would lack our packages.
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export PYSPARK_DRIVER_PYTHON := $(CURDIR)/$(BIN)/python

.DEFAULT_GOAL := help
.PHONY: help setup check types tidiness test test-fast test-all demo stack stack-demo stack-down \
	stack-test bench soak faults take-over fuzz golden-update rules plans mutants \
	law-mutants artifact lock clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv with everything locked in requirements/, and fetch the broker
	@$(BIN)/python infra/fetch_jars.py

# uv does the same as pip, sooner; either refuses a package whose hash is not in the file.
$(STAMP): requirements/development.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "LedgerMQ needs Python 3.11 or newer: make setup PYTHON=python3.11" >&2; exit 1; }
	[ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV)
	@if command -v uv > /dev/null; then \
	    set -x; \
	    uv pip install --quiet --python $(BIN)/python --require-hashes \
	        -r requirements/development.txt && \
	    uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e . ; \
	else \
	    set -x; \
	    $(BIN)/python -m pip install --quiet --require-hashes -r requirements/development.txt && \
	    $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e . ; \
	fi
	@# Compiled now: where Python is told to write no bytecode, every worker, client and Spark task
	@# would compile all of it again at its start. Some packages bring templates that do not compile.
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib services spark_jobs benchmarks \
	    examples || true
	@touch $@

check: types tidiness ## lint, format, types, import rules, tidiness (-j2: two at once)

types: $(STAMP)
	$(BIN)/mypy

tidiness: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/test_tidy.py tests/test_imports.py

test: setup ## run what `make check` does not, on a real broker and Spark, in five processes at once
	PYTHONPATH=tests $(BIN)/python -m support.side_by_side -m "not long" \
	    --ignore tests/test_tidy.py --ignore tests/test_imports.py $(ARGS)

test-fast: $(STAMP) ## run what needs neither broker nor Spark, with few examples: the inner loop
	LEDGERMQ_EXAMPLES_DIVISOR=20 PYTHONPATH=tests $(BIN)/python -m support.side_by_side -q \
	    -m "not long and not slow and not kafka and not spark" -k "not planted" \
	    --ignore tests/test_tidy.py --ignore tests/test_side_by_side.py $(ARGS)

test-all: setup ## run all tests, the long ones too
	$(BIN)/python -m pytest

demo: setup ## show the whole system at work (ARGS=--all: a whole year of flights)
	$(BIN)/ledgermq demo $(ARGS)

stack: ## start Kafka and two workers in containers (PROFILES="monitoring registry spark")
	@docker compose version > /dev/null && docker info > /dev/null || { \
	    echo "LedgerMQ's stack needs Docker with Compose 2; \`ledgermq up\` runs without" >&2; exit 1; }
	docker compose $(addprefix --profile ,$(PROFILES)) up --wait --build

stack-demo: setup ## run the demo on the stack, with a worker's container that is killed
	address=$$(docker compose port kafka 9092) && $(BIN)/ledgermq demo --bootstrap $$address \
	    --data-dir .demo/stack --kill-worker 'docker compose kill {worker}' $(ARGS)
	docker compose up --wait

stack-down: ## end the stack; the data stay (VOLUMES=1: they go, too)
	docker compose --profile '*' down $(if $(VOLUMES),--volumes)

stack-test: setup ## run a stack beside it, the demo on that, kill and drain workers; skips without Docker
	$(BIN)/python -m pytest tests/infra/test_stack.py

bench: setup ## measure speed, and print where it was measured
	$(BIN)/ledgermq bench $(ARGS)

soak: setup ## kill the worker ROUNDS=200 times with a deep queue (ARGS='--depth 1000000 --seed 1')
	PYTHONPATH=tests $(BIN)/python -m support.soak --rounds $(or $(ROUNDS),200) $(ARGS)

faults: setup ## clients at work while broker, workers and clients are hurt for 10 min (ARGS=--help)
	PYTHONPATH=tests $(BIN)/python -m support.faults.suite $(ARGS)

take-over: setup ## how long clients wait when a worker is killed, frozen or told to stop (ARGS=--help)
	PYTHONPATH=tests $(BIN)/python -m support.faults.take_over $(ARGS)

fuzz: setup ## write ROUNDS=10000 bad records to all topics; no worker may stay stopped (ARGS=--help)
	PYTHONPATH=tests $(BIN)/python -m support.fuzz --rounds $(or $(ROUNDS),10000) $(ARGS)

golden-update: $(STAMP) ## rewrite the golden logs; review the change with git diff
	LEDGERMQ_GOLDEN_UPDATE=1 $(BIN)/python -m pytest -q tests/golden

rules: $(STAMP) ## run the tests that name a rule and write build/rules.md (ARGS='-k "not kafka"')
	PYTHONPATH=tests $(BIN)/python -m support.rules_page $(ARGS)

plans: setup ## write Spark's plan of every table and law to build/plans.md
	PYTHONPATH=tests $(BIN)/python -m support.plans

mutants: $(STAMP) ## break core and client in every small way, write build/mutation.md (ARGS=--help)
	$(BIN)/python tests/mutation/run.py $(ARGS)

law-mutants: $(STAMP) ## break the fold in 300 small ways and ask the audit's laws (ARGS=--help)
	$(BIN)/python tests/mutation/laws.py $(ARGS)

artifact: setup ## build/ledgermq-spark.tar.gz: what Spark jobs need on a cluster (docs/spark.md)
	$(BIN)/python infra/spark/artifact.py

lock: ## resolve requirements/*.in again into the locked files (needs uv)
	$(LOCK) requirements/development.in -o requirements/development.txt
	$(LOCK) -c requirements/development.txt requirements/build.in -o requirements/build.txt
	$(LOCK) -c requirements/development.txt requirements/runtime.in -o requirements/runtime.txt
	$(LOCK) -c requirements/development.txt requirements/spark.in -o requirements/spark.txt

clean: ## remove what was built here; the jar cache stays
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	    .import_linter_cache mutants spark-warehouse metastore_db derby.log
	find services spark_jobs benchmarks examples tests infra -name __pycache__ -type d -prune -exec rm -rf {} +
