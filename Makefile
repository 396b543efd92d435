# Everything a developer types. `make` alone lists the targets.

SHELL := /bin/bash
BIN := .venv/bin
STAMP := .venv/installed
# More arguments for pytest, for example: make test ARGS="-k lease -x"
ARGS ?=
# pyright and its node come from PyPI wheels; this keeps it from asking for newer ones.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.DEFAULT_GOAL := help
.PHONY: help install demo test test-fast test-long rehearse proof check format bench bench-guard clean

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

install: $(STAMP) ## Create .venv and install leasebook with its tools

# Repeated when pyproject.toml changes, or when the interpreter behind .venv is gone.
$(STAMP): pyproject.toml $(shell $(BIN)/python -c '' 2>/dev/null || echo absent)
	@.ci/venv .venv
	@touch $@

.PHONY: absent
absent:

demo: install ## Show a queue at work, with a crash in the middle
	@$(BIN)/leasebook demo

test: install ## Run all tests
	$(BIN)/pytest $(ARGS)

test-fast: install ## Run the tests that kill nothing
	$(BIN)/pytest -m "not fault" $(ARGS)

proof: install ## A million small worlds, a million histories of each state machine (hours)
	$(BIN)/python -m tests.simulation --jobs 2 --seeds 1000000 $(ARGS)
	$(BIN)/python -m tests.properties --jobs 2 --histories 1000000

test-long: install ## Claim beside 3,000,000 finished jobs
	LEASEBOOK_TEST_DONE=3000000 $(BIN)/pytest tests/postgres/test_long_queue.py --timeout=1200 $(ARGS)

rehearse: install ## Upgrade 2,000,000 rows under traffic; 60 s of everybody at one key; a rebuild of 1,000,000 jobs; pages in a browser
	LEASEBOOK_TEST_MIGRATION_ROWS=2000000 LEASEBOOK_TEST_CONTENTION_SECONDS=60 \
		LEASEBOOK_TEST_ORDER_SECONDS=60 LEASEBOOK_TEST_ORDER_EVERY=1 \
		LEASEBOOK_TEST_ORDER_DEEP=100000 $(BIN)/pytest \
		tests/postgres/test_online.py tests/postgres/test_key_contention.py tests/order \
		--timeout=1200 $(ARGS)
	LEASEBOOK_TEST_REBUILD_ROWS=1000000 $(BIN)/pytest tests/worker/test_shadow.py -s $(ARGS)
	.ci/chromium
	$(BIN)/python -m tests.browser

check: install ## Lint, formatting, types and the arrows between parts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports

format: install ## Format, and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install ## Measure speed beside other queues (bench/README.md); ARGS="--record" for docs/speed.md
	@bash bench/run.sh $(ARGS)

bench-guard: install ## Fail when leasebook has become slower beside others than last recorded
	@bash bench/run.sh --guard $(ARGS)

clean: ## Remove .venv, caches, builds and reports
	rm -rf .venv .bench build dist artifacts *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
