# Everything starts with the machine's own Python; annotator/launch/install.py makes .venv and goes on inside it.
PYTHON ?= python3
# -I: neither this folder nor the caller's PYTHONPATH may stand in for a module of Python's own.
BOOTSTRAP = $(PYTHON) -I annotator/launch/install.py

.PHONY: run test check lock format messages vendor bench bench-agreement bench-aligning bench-annotation bench-evidence bench-growth bench-io bench-learning bench-memory bench-pages bench-pii bench-scoring bench-segmenting bench-segments bench-snapshot bench-training

run:  ## the whole product on http://127.0.0.1:8000 (PORT), its state in var/ (VAR_DIR)
	@$(BOOTSTRAP) run

test:  ## every test, browser included; ARGS goes to pytest
	@$(BOOTSTRAP) test $(ARGS)

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

bench:  ## every benchmark
	@$(BOOTSTRAP) bench

bench-agreement:  ## the agreement page at a million annotations; ARGS: a number of annotations
	@$(BOOTSTRAP) bench agreement $(ARGS)

bench-aligning:  ## the methods of alignment in a world of known truth, and DPO beside TRL's; ARGS: world, speed, --seeds, --pairs, ...
	@$(BOOTSTRAP) bench aligning $(ARGS)

bench-annotation:  ## annotations a second over HTTP, beside a peer where BENCH_PEER names one; ARGS: --tasks, --annotators, --seconds, --soak
	@$(BOOTSTRAP) bench annotation $(ARGS)

bench-evidence:  ## whether the gate and the learning curve keep their word, on real labels; ARGS: --quick, --seed, --features
	@$(BOOTSTRAP) bench evidence $(ARGS)

bench-growth:  ## what a claim and a submission cost as the tasks grow; ARGS: numbers of tasks
	@$(BOOTSTRAP) bench growth $(ARGS)

bench-io:  ## data in and out over HTTP, beside Label Studio where LABEL_STUDIO names it; ARGS: --tasks, --annotations, --layouts, --formats, --peer-tasks, --keep
	@$(BOOTSTRAP) bench io $(ARGS)

bench-learning:  ## whether anything is learnt, on real pairs and ratings; ARGS: pairs, ratings
	@$(BOOTSTRAP) bench learning $(ARGS)

bench-memory:  ## what each process holds of a model of a billion parameters; ARGS: --processes, --layers
	@$(BOOTSTRAP) bench memory $(ARGS)

bench-pages:  ## the rating page, and every page of the workspace at a million annotations; ARGS: rating or workspace, --keep
	@$(BOOTSTRAP) bench pages $(ARGS)

bench-pii:  ## what is found of personal information, and how fast; ARGS names the file of texts
	@$(BOOTSTRAP) bench pii $(ARGS)

bench-scoring:  ## scoring beside plain transformers, its rows, small requests; ARGS: model, rows, requests, --size, ...
	@$(BOOTSTRAP) bench scoring $(ARGS)

bench-segmenting:  ## how well and how fast texts are cut into sentences; ARGS names libraries to compare with
	@$(BOOTSTRAP) bench segmenting $(ARGS)

bench-segments:  ## submissions of 40 rated segments a response beside plain ones; ARGS: --tasks, --seconds, --rounds
	@$(BOOTSTRAP) bench segments $(ARGS)

bench-snapshot:  ## a snapshot of a million labels: seconds and memory; ARGS: a number of labels
	@$(BOOTSTRAP) bench snapshot $(ARGS)

bench-training:  ## pairwise training beside TRL's; ARGS: --size, --pairs, --repeats, --kinds
	@$(BOOTSTRAP) bench training $(ARGS)
