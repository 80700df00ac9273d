# Everything starts with the machine's own Python; annotator/launch/install.py makes .venv and goes on inside it.
PYTHON ?= python3
# -I: neither this folder nor the caller's PYTHONPATH may stand in for a module of Python's own.
BOOTSTRAP = $(PYTHON) -I annotator/launch/install.py

.PHONY: run test test-readers check lock format messages vendor bench

run:  ## the whole product on http://127.0.0.1:8000 (PORT), its state in var/ (VAR_DIR)
	@$(BOOTSTRAP) run

test:  ## every test, browser included; ARGS goes to pytest
	@$(BOOTSTRAP) test $(ARGS)

test-readers:  ## what other software reads of ours, and real data (SHARED_DATA); takes minutes and a network
	@$(BOOTSTRAP) test-readers $(ARGS)

check:  ## ruff, mypy, migrations, documentation; whether the lock resolves on every platform
	@$(BOOTSTRAP) check

lock:  ## requirements/ anew from pyproject.toml; ARGS=--upgrade takes the newest versions
	@$(BOOTSTRAP) lock $(ARGS)

format:  ## the layout and the fixes that ruff knows
	@$(BOOTSTRAP) format

messages:  ## the translations: gathers new strings, compiles what is translated
	@$(BOOTSTRAP) messages

vendor:  ## static/vendor anew from npm, each package by its version and hash
	@$(BOOTSTRAP) vendor

bench:  ## every benchmark but those beside other products
	@$(BOOTSTRAP) bench

bench-%:  ## benchmarks/bench_NAME.py, whose first lines say what it measures and which ARGS it takes
	@$(BOOTSTRAP) bench $* $(ARGS)
