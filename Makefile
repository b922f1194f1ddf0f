# kernelcast: `make demo` shows it at work, `make test` proves it.
# Needs python3 (3.11 or newer) and make; everything else goes into .venv.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.kernelcast-installed
LOCK := requirements-ci.txt
# Set: exactly the versions of $(LOCK), checked by their hashes; empty: the newest that fit.
LOCKED ?=

# Extra words for the commands below, for example: make test PYTEST_ARGS="-k windows"
# Tests run in TEST_JOBS processes, one of which has all tests of devices; 0 for none but pytest's.
TEST_JOBS ?= 2
DEMO_ARGS ?=
PYTEST_ARGS ?=
BENCH_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help venv demo test lint wheel release docs lock bench clean distclean

help: ## show this list
	@echo "kernelcast predicts how long an OpenCL kernel takes on each device. Targets:"
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | \
		awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

venv: $(STAMP) ## make .venv with kernelcast, the embedded CPU device and the tools

demo: $(STAMP) ## list the devices; predict and measure every example on each of them
	$(BIN)/kernelcast devices
	$(BIN)/python examples/run_demo.py $(DEMO_ARGS)

test: $(STAMP) ## run the tests, those that need a device on every device found
	$(BIN)/python -m pytest -m "device or not device" -n $(TEST_JOBS) --dist loadscope $(PYTEST_ARGS)

lint: $(STAMP) ## ruff, mypy, the import contracts, lines per room
	@status=0; \
	for check in "ruff check ." "ruff format --check ." mypy lint-imports "python tests/size_budget.py"; do \
		echo "$(BIN)/$$check"; $(BIN)/$$check || status=1; \
	done; exit $$status

wheel: $(STAMP) ## build the wheel, install it into an empty environment, predict with it there
	rm -rf build/wheel
	$(BIN)/python -m pip --disable-pip-version-check wheel --quiet --no-deps -w build/wheel .
	$(BIN)/python -m venv --without-pip build/wheel/venv
	$(BIN)/python -m pip --disable-pip-version-check --python build/wheel/venv/bin/python \
		install --quiet "$$(ls build/wheel/*.whl)[cpu]"
	cd build/wheel && venv/bin/kernelcast --version && venv/bin/kernelcast estimate \
		../../examples/triad/triad.yaml --param N=4000000

release: $(STAMP) ## build what is published, and check it: dist/ (`.ci/release` publishes it)
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*

docs: $(STAMP) ## build the documentation site into build/site; a link that leads nowhere is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

lock: $(STAMP) ## write the versions that CI installs into requirements-ci.txt
	$(BIN)/python -m pip install --disable-pip-version-check --quiet uv
	@{ echo "# Written by \`make lock\`: what CI installs, on any Python from 3.11 on; do not edit."; \
		printf 'hatchling\neditables\n' | $(BIN)/uv pip compile --quiet --universal --generate-hashes \
			--python-version 3.11 --extra dev --extra cpu --no-emit-index-url --no-header \
			--no-annotate pyproject.toml -; } > $(LOCK).new
	@mv $(LOCK).new $(LOCK)

bench: $(STAMP) ## accuracy and cost of sampling per device, into benchmarks/results
	$(BIN)/python -m benchmarks accuracy $(BENCH_ARGS)
	$(BIN)/python -m benchmarks accuracy_report

clean: ## remove caches and build output
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## the same, and .venv
	rm -rf $(VENV)

$(STAMP): pyproject.toml $(if $(LOCKED),$(LOCK)) | $(BIN)/python
ifeq ($(LOCKED),)
	$(BIN)/python -m pip install --disable-pip-version-check -e '.[dev,cpu]'
else
	$(BIN)/python -m pip install --disable-pip-version-check --require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps --no-build-isolation -e .
endif
	@touch $@

# Debian and its relatives keep ensurepip in a package of its own (python3-venv). Without it, a
# pip or virtualenv of the system can still fill an environment.
$(BIN)/python:
	@command -v "$(PYTHON)" > /dev/null || { \
		echo "make: there is no '$(PYTHON)'; install Python 3.11 or newer," \
			"or name one: make venv PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "make: '$(PYTHON)' is $$("$(PYTHON)" --version 2>&1), kernelcast needs 3.11 or" \
			"newer; name one: make venv PYTHON=python3.12" >&2; exit 1; }
	@if "$(PYTHON)" -c 'import ensurepip, venv' 2> /dev/null; then \
		"$(PYTHON)" -m venv "$(VENV)"; \
	elif "$(PYTHON)" -c 'import pip, venv' 2> /dev/null; then \
		"$(PYTHON)" -m venv --without-pip "$(VENV)" && \
		"$(PYTHON)" -m pip --disable-pip-version-check --python "$@" install --quiet pip; \
	elif "$(PYTHON)" -c 'import virtualenv' 2> /dev/null; then \
		"$(PYTHON)" -m virtualenv --quiet "$(VENV)"; \
	else \
		echo "make: '$(PYTHON)' cannot make virtual environments; install what it lacks," \
			"on Debian and Ubuntu: apt-get install python3-venv" >&2; false; \
	fi || { rm -rf "$(VENV)"; exit 1; }
