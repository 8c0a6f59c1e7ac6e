# make demo   a compiled network trains a model on handwritten digits
# make test   lint, types, and all tests but the nightly ones: what .ci/run calls
# make check  the same
# make test-quick  for the edit loop: lint and, of the rooms that changed, the tests that are not slow; says what it
#   leaves out and why
# make test-all  lint, types and all tests
# make docs   the site, with every example run, into docs/_build/html
# make bench  speed against peers, into benchmarks/results
# make dist   the archives of a release, built twice and compared, and the wheels of prebuilt kernels, into dist
# make release-check  what a release needs, a line each
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SITE := docs/_build/html
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt
# Tests compile by three NVRTCs: the environment's newest, 13.0 as torch for CUDA 13.0 brings it, and one of CUDA 12.
INSTALL_NVRTC := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade

# Tests and pages start a hundred processes that import torch: keep compiled modules, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE
# Two workers have the cores: threads of OpenMP that wait for work sleep instead of taking a core from the other.
test check test-quick test-all: export OMP_WAIT_POLICY := passive

# Headers and their unit tests.
CXX_FILES := $(shell find library tests/library tests/cuda/ptx -name '*.h' -o -name '*.cpp')

.PHONY: demo docs test test-quick test-all check types pytest bench dist release-check clean

demo: $(VENV)/examples.stamp
	$(BIN)/python -m examples.digits

test check test-all: $(VENV)/test.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)
	$(MAKE) --jobs 2 types pytest ALL=$(filter test-all,$@)

# Types are checked in one process, for a minute on a fresh clone: the tests begin beside it.
types:
	$(BIN)/mypy
	$(BIN)/mypy experiments examples benchmarks/__main__.py benchmarks/gpu/__main__.py \
		tests/typed_calls.py tools

# Compilers that tests call would warn of the pipe by which make shares out its jobs.
pytest:
	MAKEFLAGS= $(BIN)/python -m pytest -n 2 --dist worksteal $(if $(ALL),,--daily)

test-quick: $(VENV)/test.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)
	$(BIN)/python -m pytest -n 2 --dist worksteal --quick

docs: $(VENV)/docs.stamp
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --jobs 2 --quiet --conf-dir docs . $(SITE)
	@echo "$(SITE)/index.html"

bench: $(VENV)/bench.stamp
	$(BIN)/python -m benchmarks

dist: $(VENV)/test.stamp
	$(BIN)/python tools/release.py build
	$(BIN)/python tools/release.py kernels

release-check: $(VENV)/test.stamp
	$(BIN)/python tools/release.py check

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# The explorer's tests need a browser, which pip does not install. Where this cannot, they say what to install.
BROWSERS := chromium chromium-browser google-chrome
INSTALL_BROWSER := for browser in $(BROWSERS); do command -v $$browser && exit; done; \
	if [ "$$(id -u)" = 0 ]; then apt-get update --quiet && apt-get install --yes --quiet chromium; fi
# So do tests of other languages need compilers and simulators.
LANGUAGES := verilator yosys ghdl rustc rustfmt
INSTALL_LANGUAGES := missing=; for package in $(LANGUAGES); do \
	command -v $$package > /dev/null || missing="$$missing $$package"; done; \
	if [ "$$missing" ] && [ "$$(id -u)" = 0 ]; then \
	apt-get update --quiet && apt-get install --yes --quiet --no-install-recommends $$missing; fi

# An unfinished install leaves no stamp, so it is done again.
$(VENV)/examples.stamp: $(BIN)/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[examples]'
	touch $@

$(VENV)/test.stamp: $(BIN)/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[examples,test]'
	$(INSTALL_NVRTC) --target $(VENV)/nvrtc-13.0 nvidia-cuda-nvrtc==13.0.88
	$(INSTALL_NVRTC) --target $(VENV)/nvrtc-12.4 nvidia-cuda-nvrtc-cu12==12.4.127
	-$(INSTALL_BROWSER)
	-$(INSTALL_LANGUAGES)
	touch $@

$(VENV)/docs.stamp: $(BIN)/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[docs]'
	touch $@

$(VENV)/bench.stamp: $(BIN)/python pyproject.toml constraints.txt
	$(INSTALL) -e '.[bench]'
	touch $@

clean:
	rm -rf $(VENV) build dist docs/_build tests/output *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
