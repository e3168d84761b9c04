# Two commands are enough to begin with: `make demo` and `make test`.
# What they need is said in README.md, and looked at before anything is downloaded; everything else goes into .venv.

PYTHON ?= $(shell for python in python3.11 python3.12 python3.10 python3; do $$python -c "" 2>/dev/null && echo $$python && break; done)
VENV ?= .venv
TORCH ?= torch
BIN := $(VENV)/bin
# What is installed: for the demo; for the tests, too; and all, for what checks and builds the source.
DEMO := $(VENV)/.demo-installed
TEST := $(VENV)/.test-installed
READY := $(VENV)/.pipeprof-installed
MUTATIONS ?= 5000
RACES ?= 30
SBOM ?= sbom/pipeprof.cdx.json
WORKFLOWS := $(wildcard .github/workflows/*.yml examples/github/*.yml)
# Not empty: the versions of ci/constraints, with their hashes, and nothing else.
LOCKED ?=
# For `make test-together`: folders and files, in place of all.
ONLY ?=
# For `make baselines` and `make bench-gate`.
JOBS ?= 8
BASE ?= origin/main
# For `make test-duckdb`: the oldest that pyproject.toml takes, and the newest of each major version but the installed one.
DUCKDBS ?= 1.5.2 1.5.6
# For `make bench-tune`: pipelines (or their names, with commas), where to keep results, settings of each grid at most.
N ?= 10
FOLDER ?= tuned
MOST ?= 1000
# For `make fresh-machine`: options of the script.
FRESH ?=
# For `make timing`.
TIMES ?= 20
BUSY ?= 2
# Tests that start no training share the cores. Trainings run two at a time where a test asks what was recorded, or
# compares times in turn, and one after the other where it asks what a training was short of: they disturb each other.
TOGETHER := -n auto --dist loadfile --ignore tests/e2e
TWO := -n auto --maxprocesses 2
APART := (alone or measures)
ORDINARY := not slow and not real
TESTS = PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m pytest
# Each of several targets runs, whatever became of the one before; the exit code is of all of them.
EACH = $(MAKE) --no-print-directory --keep-going -j1

.PHONY: demo test test-together test-trainings test-alone test-slow slow-together slow-trainings slow-measures test-real test-torch test-duckdb fuzz mutations races label-real label-held-out timing check lint types floors docs pictures site bench bench-gate baselines bench-import bench-overhead bench-cost bench-memory bench-ascend bench-profile bench-causes bench-fleet bench-history bench-ranks bench-storage bench-timeline bench-tune wheel release-check fresh-machine test-wheel constraints sbom clean help

demo: $(DEMO)  ## profile a small real training, name its bottleneck, fix it, confirm the fix
	$(BIN)/pipeprof demo

test: $(TEST)  ## all tests but the slow ones, and those that want the machine for themselves
	$(EACH) test-together test-trainings

test-together: $(TEST)
	$(TESTS) -m "$(ORDINARY)" $(TOGETHER) $(ONLY)

test-trainings: $(TEST)
	$(TESTS) -m "$(ORDINARY) and not $(APART)" $(TWO) --dist loadfile tests/e2e

test-alone: $(TEST)
	$(TESTS) -m "$(ORDINARY) and alone" tests/e2e

test-slow: $(TEST)  ## the others: made-up input, servers, browsers, stress, fault injection, one training after the other
	$(EACH) slow-together slow-trainings slow-measures test-alone

slow-together: $(TEST)
	$(TESTS) -m slow $(TOGETHER) $(shell grep -rl --include='test_*.py' --exclude-dir=e2e 'mark\.slow' tests lab)

slow-trainings: $(TEST)
	$(TESTS) -m "slow and not $(APART)" $(TWO) --dist worksteal tests/e2e

slow-measures: $(TEST)
	$(TESTS) -m "slow and measures" $(TWO) --dist worksteal tests/e2e

test-real: $(TEST)  ## trainings with mindcv, mindyolo, mindone and of MindSpore's own kind (4 minutes)
	$(BIN)/python -m pip install --quiet -e ".[mindspore,test,real]"
	$(TESTS) -m real $(TWO) --dist loadgroup tests/e2e

test-torch: $(TEST)  ## trainings with the newest torch, and operator tables against it, or TORCH=torch==2.13.0; with CUDA it takes 5 GB of disk
	$(BIN)/python -m pip install --quiet -e ".[mindspore,test,torch]" "$(TORCH)"
	$(TESTS) tests/oracles/test_kineto_stacks.py tests/oracles/test_torch_flops.py -k "live or torch_flops"
	$(TESTS) tests/e2e/test_dataloader.py tests/e2e/test_torch_ops.py -k torch

test-duckdb: $(TEST)  # SQL that tries to write or to look outside of the run, on every DuckDB that we take (a minute)
	for version in $(DUCKDBS); do \
		$(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(VENV)/duckdb-$$version duckdb==$$version && \
		PYTHONPATH="$(abspath $(VENV))/duckdb-$$version" $(TESTS) tests/unit/query/test_attacks.py || exit 1; \
	done

fuzz: $(TEST)  ## the tests that make up their input, with new input and in a new order
	PIPEPROF_NEW_EXAMPLES=1 $(BIN)/python -m pytest --randomly-seed=default -m "not slow and not real and not mindspore" $(TOGETHER) tests/property tests/queries tests/oracles tests/unit

mutations: $(TEST)  ## MUTATIONS=5000 damaged inputs of every family through the real verbs (an hour)
	PIPEPROF_MUTATIONS=$(MUTATIONS) $(BIN)/python -m pytest --timeout 36000 -n auto tests/property/test_mutations.py

races: $(TEST)  # RACES=30 times two recordings race for one folder and are killed at random (3 minutes)
	PIPEPROF_RACES=$(RACES) $(TESTS) -m "not real" tests/e2e/test_races.py

label-real: $(TEST)  # label the real trainings by intervention, those without a label: 90 s each, on a quiet machine
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python lab/real_trainings/label.py

label-held-out: $(TEST)  # the third that is recorded when the rules are fixed
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python lab/real_trainings/label.py --held-out

timing: $(TEST)  ## the tests that compare times of real trainings, TIMES in a row beside BUSY busy loops (2 hours)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python tools/repeat_timing_tests.py --times $(TIMES) --busy $(BUSY)

check: lint types floors site test  ## what CI runs, but for the slow tests, the wheel and the libraries

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/sqlfluff lint --disable-progress-bar queries
	$(BIN)/python tools/make_docs.py --check
	$(BIN)/actionlint -no-color -shellcheck= -pyflakes= $(WORKFLOWS)
	$(BIN)/zizmor --offline --no-config --no-progress --quiet .github ci/action.yml examples/github

types: $(READY)
	$(BIN)/mypy

floors: $(READY)
	$(BIN)/lint-imports
	$(BIN)/python tools/ratchet.py

docs: $(READY)  ## write anew what the program says in docs/: the reference pages, and the outputs that pages show
	$(BIN)/python tools/make_docs.py
	$(BIN)/python tests/docs/play.py --write

pictures: $(READY)  ## draw the pictures of the README anew, from a stored run; needs Chromium
	$(BIN)/python tools/pictures.py

site: $(READY)  ## docs/ as a site in site/; a broken link, a page outside the navigation, or a script from elsewhere fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file tools/mkdocs.yml
	! grep -rlE '<(script|link|img|iframe)[^>]+(src|href)="?https?:' site --include='*.html'

bench: $(TEST)  ## pytest-benchmark: query and conversion time
	$(TESTS) tests/benchmarks --benchmark-enable

bench-gate: $(TEST)  # make bench, judged: the benchmarks of BASE=origin/main and of this tree in turn (20 minutes)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python tools/bench_gate.py --base "$(BASE)"

baselines: $(TEST)  ## record our own workloads JOBS=8 times and append them to baselines/ (15 minutes on a quiet machine)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python tools/record_baselines.py --jobs "$(JOBS)"

bench-overhead: $(TEST)  # what profiling costs a training: alternating profiled and unprofiled runs (about 25 minutes)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python lab/benchmarks/overhead.py

bench-cost: $(TEST)  # what the hooks cost, in CPU time of threads, taken out and put back block by block (about 6 minutes)
	PATH="$(abspath $(BIN)):$$PATH" OMP_NUM_THREADS=1 $(BIN)/python lab/benchmarks/cost.py --threads

bench-import: $(TEST)  # reading big foreign profiles: CPU time and peak memory, beside json.load (about 5 minutes)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python lab/benchmarks/import_bench.py
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python lab/benchmarks/kineto_bench.py

bench-memory: $(TEST)  # growth of memory over 100,000 steps, profiled and not (about 5 minutes)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python lab/benchmarks/overhead.py --kinds --memory-steps 100000

bench-ascend: $(TEST)  # kernel_details, trace_view and communication of 200 MB and 1 GB (about 6 minutes, 2 GB of disk)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python lab/benchmarks/ascend_bench.py --megabytes 200 --and 1000 --repeat 2 --check

bench-causes: $(TEST)  # causes across ranks on 1,000 drawn distributed trainings whose cause is known (about 10 minutes)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python lab/accuracy/fleet_score.py --jobs 1000 --seed 100000

bench-profile: $(TEST)  # what pipeprof.profile costs: waiting (fails when it can be seen) and recording (about 12 minutes)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python lab/benchmarks/inprocess.py --kinds steps cycles --triples 3000 --pairs 200 --check
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python lab/benchmarks/inprocess.py --kinds cycles --width 64 --pixels 64

bench-history: .venv-history/.installed  # change points beside apache-otava, mozdetect and ruptures, which need a NumPy of their own (2 hours)
	.venv-history/bin/python lab/gate/history_bench.py

.venv-history/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-history
	.venv-history/bin/python -m pip install --quiet -e ".[history,bench-history]"
	touch $@

bench-ranks: $(TEST)  # reports on 64, 256 and 1,024 ranks, as recorded and compacted: CPU time and peak memory (about 3 minutes)
	$(BIN)/python lab/benchmarks/ranks_cost.py --ranks 64 256 1024

bench-fleet: $(TEST)  # questions over 10,000 runs of known truth: CPU time and peak memory (about 15 minutes)
	$(BIN)/python lab/benchmarks/fleet_cost.py --runs 10000

bench-tune: $(TEST)  # `tune` against the grid of settings of N=10 pipelines, in FOLDER, where it goes on
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python lab/accuracy/tune_bench.py $(FOLDER) --pipelines $(N) --most $(MOST)

bench-storage: $(TEST)  # the advice on storage and caches against special runs of ten pipelines (about 15 minutes)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python lab/benchmarks/storage_advice.py

bench-timeline: $(TEST)  # a timeline of an hour with 50 million events: CPU time and peak memory (about 6 minutes, 4 GB of disk)
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python lab/benchmarks/timeline_bench.py --events 50000000 --check

fresh-machine:  # these two commands on a bare Debian 12: all of the demo, some of the tests; needs root, debootstrap, network
	bash tools/fresh_machine.sh $(FRESH)

wheel: $(READY)
	rm -rf dist
	$(BIN)/python -m build

release-check: wheel  ## sdist and wheel as a release needs them: TAG=v1.2.3 when there is a tag
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tools/check_release.py dist $(if $(TAG),--tag "$(TAG)")

test-wheel: release-check  # end-to-end tests on the installed wheel, without the source tree
	bash tests/e2e/on_wheel.sh "$(abspath $(VENV))" "$(abspath dist)"

clean:
	rm -rf $(VENV) .venv-history dist site .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

help:  # the targets of every day; what a single target does is said beside it, above
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

constraints: $(READY)  # lock anew, with hashes, what CI and the comment on pull requests install; needs the network
	$(BIN)/python -m pip install --quiet -e ".[supply]"
	$(BIN)/python tools/lock.py

sbom: $(READY)  # what pipeprof needs to run, with versions and hashes, as CycloneDX: SBOM=FILE
	mkdir -p $(dir $(SBOM))
	$(BIN)/python -m cyclonedx_py requirements --pyproject pyproject.toml --output-reproducible --output-format JSON --output-file $(SBOM) ci/constraints/gate.txt

# Each of them installs into the same environment.
.NOTPARALLEL:
$(DEMO): PURPOSE := demo
$(DEMO): EXTRAS := mindspore
$(DEMO): STAMPS := $(DEMO)
$(TEST): PURPOSE := test
$(TEST): EXTRAS := mindspore,test
$(TEST): STAMPS := $(DEMO) $(TEST)
$(READY): PURPOSE := check
$(READY): EXTRAS := mindspore,test,dev,docs
$(READY): STAMPS := $(DEMO) $(TEST) $(READY)
ifdef LOCKED
$(DEMO) $(TEST): PURPOSE := check
$(DEMO) $(TEST): STAMPS := $(DEMO) $(TEST) $(READY)
endif

$(DEMO) $(TEST) $(READY): pyproject.toml pipeprof/collect/probe/_hooks.c $(if $(LOCKED),ci/constraints/dev.txt)
	@command -v "$(PYTHON)" >/dev/null || { echo "error: no Python was found, 3.10 to 3.12 is needed" >&2; exit 1; }
	@"$(PYTHON)" tools/preflight.py $(PURPOSE) --venv "$(VENV)"
	"$(PYTHON)" -m venv $(VENV)
ifdef LOCKED
	$(BIN)/python -m pip install --quiet --require-hashes -r ci/constraints/dev.txt
	$(BIN)/python -m pip install --quiet --no-index --no-deps --no-build-isolation -e .
else
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e ".[$(EXTRAS)]"
endif
	touch $(STAMPS)
