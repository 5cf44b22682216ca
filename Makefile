.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

help: ## Show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

setup: $(READY) ## Create .venv with pinned dependencies

demo: $(READY) ## Run the demo: a worker is killed in the middle of a refund, and a large one asks you
	$(BIN)/python -m examples.support.demo $(ARGS)

test: $(READY) ## Run the tests
	$(BIN)/python -m compileall -q perdure  # loaded by hundreds of processes and sandboxes
	$(BIN)/python -m pytest -n 2

again: $(READY) ## Run what failed last once more, one test at a time
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none

browser: ## Install Chromium, for the tests of the Web UI (Debian, as root)
	command -v chromium || { \
		export DEBIAN_FRONTEND=noninteractive; \
		apt-get update --quiet && apt-get install --quiet --yes --no-install-recommends chromium; \
	}

screenshot: $(READY) ## Make the picture of docs/approvals.md anew
	PERDURE_SCREENSHOT=docs/images/approval-web-ui.png $(BIN)/python -m pytest tests/test_web_ui.py

soak: $(READY) ## Run the properties with many examples, a roll-over after every event, a session of 200 turns
	PERDURE_EXAMPLES=2000 $(BIN)/python -m pytest tests/test_property.py
	PERDURE_SESSION_EXAMPLES=250 $(BIN)/python -m pytest tests/test_session_property.py
	PERDURE_ROLL_STEP=1 $(BIN)/python -m pytest tests/test_roll_over_everywhere.py
	PERDURE_SOAK_TURNS=200 $(BIN)/python -m pytest tests/test_session_soak.py -s

check: $(READY) ## Lint, types, import arrows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --warnings
	$(BIN)/python -m pytest tests/test_package.py -q

bench: $(READY) ## Compare speed and history size with Pydantic AI's own Temporal capability
	$(BIN)/python -m benchmarks.run

bench-sessions: $(READY) ## Measure long lives: 2,000 turns, 10,000 steps, a restart in 1,000 steps, the age of live text (an hour)
	$(BIN)/python -m benchmarks.sessions --turns 2000 --compact-above 20000
	$(BIN)/python -m benchmarks.sessions --steps 10000 --store --compact-above 20000
	$(BIN)/python -m benchmarks.sessions --steps 1000 --restart
	$(BIN)/python -m benchmarks.tail

histories: $(READY) ## Record tests/histories anew
	$(BIN)/python -m tests.record_histories
	$(BIN)/python -m tests.record_sessions
	$(BIN)/python -m tests.record_temporal

.PHONY: help setup demo test again browser screenshot soak check bench bench-sessions histories
