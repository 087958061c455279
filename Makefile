# Two commands on a fresh clone with Python and Rust: `make demo` and `make test`.
# Stamps inside .venv say what was done, so nothing is built or installed twice.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet install
RUST := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml)
SIZE ?= 2GiB

# Requirements of pyproject.toml: the runtime's, or those of one extra.
requirements = $$($(BIN)/python -c 'import sys, tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	print("\n".join(p["optional-dependencies"][sys.argv[1]] if sys.argv[1:] else p["dependencies"]))' $(1) \
	> $(VENV)/requirements.txt && echo $(VENV)/requirements.txt)

.PHONY: demo test test-rust test-python test-large test-eightfold lint bench bench-tilepack bench-speed bench-matmul bench-transpose \
	bench-overhead bench-nas bench-sort bench-algorithms bench-learning bench-sparse bench-sparse-ingest \
	bench-solve bench-solve-dense bench-loops bench-loop-versions bench-loop-speed bench-loop-polybench bench-loop-disk \
	bench-loop-seconds bench-graph bench-graph-programs bench-raw-io bench-page-cache bench-climatology bench-formats build clean fuzz miri

demo: build
	$(BIN)/python -m outcore demo --size $(SIZE)

build: $(VENV)/.core

# Packages are fetched while the core is compiled.
test:
	$(MAKE) -j 2 $(VENV)/.core $(VENV)/.test
	$(MAKE) -j 1 lint test-rust test-python

# The bindings have no tests here, but are counted in; so only crates with tests of their own are compiled a second time. Examples
# are left to clippy, and no comment has code to test.
test-rust:
	cargo test --release --workspace --exclude outcore-fuzz --tests

# Three at a time on two cores: most tests wait for a disk or work in one thread. Each takes neighbours, which share inputs.
test-python: $(VENV)/.core $(VENV)/.test
	$(BIN)/python -m pytest -n 3 --dist worksteal

# The full size of all that `make test` does some of: 10⁶ files, every call that may fail, a hundred kills of work on 300 MB,
# and so on. Takes hours, and some 10 GB of disk.
test-large: $(VENV)/.core $(VENV)/.test
	OUTCORE_LARGE=1 $(BIN)/python -m pytest -s tests/test_many_chunks.py tests/test_few_rows.py
	OUTCORE_LARGE=1 OUTCORE_TEST_KILLS=130 $(BIN)/python -m pytest -s tests/test_resume.py
	OUTCORE_LARGE=1 $(BIN)/python -m pytest -n 2 --dist worksteal $$(grep -lE 'support\.sizes|KILLS|LARGE' tests/test_*.py \
		| grep -vE 'many_chunks|few_rows|test_resume\.py')

# Each format and each method of xarray over data eight times as large as the memory, in real groups (it needs root).
test-eightfold: $(VENV)/.core $(VENV)/.test
	$(BIN)/python -m benchmarks.eightfold $(BENCH_FLAGS)

# A subcommand of cargo that a machine with Rust alone lacks.
if-installed = if cargo $(1) --version > /dev/null 2>&1; then cargo $(1) $(2); \
	else echo "cargo-$(1) is not installed: passed over (cargo install cargo-$(1))"; fi

lint: $(VENV)/.core $(VENV)/.test
	cargo fmt --all --check
	CUSTOM_LIBFUZZER_PATH=/dev/null cargo clippy --release --workspace --all-targets -- -D warnings
	@$(call if-installed,deny,check bans licenses sources)
	@$(call if-installed,machete,crates)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict python/outcore
	$(BIN)/python -m pytest -q tests/test_stub.py

bench: bench-speed bench-matmul bench-transpose bench-overhead bench-tilepack bench-nas bench-sort bench-algorithms bench-learning \
	bench-sparse bench-sparse-ingest bench-solve bench-solve-dense bench-loops bench-graph bench-graph-programs bench-raw-io bench-page-cache \
	bench-climatology bench-formats

bench-tilepack bench-speed bench-matmul bench-transpose bench-overhead bench-nas bench-sort bench-algorithms bench-learning \
	bench-sparse bench-sparse-ingest bench-solve bench-solve-dense bench-loops bench-loop-versions bench-loop-speed bench-loop-polybench bench-loop-disk \
	bench-loop-seconds bench-graph bench-graph-programs bench-raw-io bench-page-cache bench-climatology bench-formats: bench-%: $(VENV)/.core $(VENV)/.bench
	$(BIN)/python -m benchmarks.$(subst -,_,$*) $(BENCH_FLAGS)

bench-loops: bench-loop-versions bench-loop-speed bench-loop-polybench # the paper's versions, numba, and PolyBench beside bounds

# Needs cargo-fuzz. Ten minutes for each parser, from the fixtures as seeds.
FUZZ_SECONDS ?= 600
fuzz:
	mkdir -p fuzz/corpus/npy_header fuzz/corpus/zarr_json fuzz/corpus/sparse fuzz/corpus/lines fuzz/corpus/graph fuzz/corpus/hdf5 fuzz/corpus/hdf5_chunk fuzz/corpus/netcdf3_header fuzz/corpus/listed_chunk fuzz/corpus/parquet_pages
	cp crates/store/tests/fixtures/*.ocs fuzz/corpus/sparse/
	cp crates/store/tests/fixtures/*.ocg fuzz/corpus/graph/
	cp crates/store/tests/fixtures/*.npy fuzz/corpus/npy_header/
	cp crates/store/tests/fixtures/*.nc fuzz/corpus/netcdf3_header/
	cp fuzz/seeds/parquet_pages/* fuzz/corpus/parquet_pages/
	cp crates/hdf5/tests/data/*.h5 crates/hdf5/tests/data/*.nc fuzz/corpus/hdf5/
	for file in crates/store/tests/fixtures/*.zarr; do \
		cp $$file/zarr.json fuzz/corpus/zarr_json/$$(basename $$file).json; done
	printf ' 1 2 0.5\n# a\n3,4;-inf\n' > fuzz/corpus/lines/edges
	for target in npy_header zarr_json sparse lines graph hdf5 hdf5_chunk netcdf3_header listed_chunk parquet_pages; do \
		RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none $$target -- -max_total_time=$(FUZZ_SECONDS) -max_len=65536; done

# Needs the nightly toolchain with miri. Fences that call the system (mappings, rings) cannot run there; lists and tiles can.
miri:
	cargo +nightly miri test -p outcore-coding

clean:
	rm -rf $(VENV) target data python/outcore/*.so .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml | $(VENV)/bin/python
	$(PIP) 'maturin>=1.7,<2' -r $(call requirements)
	@touch $@

# While pip works, Debian's browser is installed, if root can; else tests/test_pages.py says what it lacks and is passed over. Lists
# of packages that are missing or old are fetched. What stands on a disk in time is of no matter here, so dpkg need not wait for it.
APT := timeout 300 env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=60 -o Dpkg::Options::=--force-unsafe-io
BROWSER := $(APT) install -y --no-install-recommends chromium
$(VENV)/.test: pyproject.toml | $(VENV)/.runtime
	@if command -v chromium > /dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then :; \
	else { $(BROWSER) || { $(APT) update && $(BROWSER); }; } > $(VENV)/chromium.log 2>&1 < /dev/null \
		|| echo "chromium was not installed ($(VENV)/chromium.log says why): tests of pages are passed over"; fi & \
	$(PIP) -r $(call requirements,test); installed=$$?; wait; exit $$installed
	@touch $@

$(VENV)/.bench: pyproject.toml | $(VENV)/.runtime
	$(PIP) -r $(call requirements,bench)
	@touch $@

$(VENV)/.core: $(RUST) $(VENV)/.runtime
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --quiet --features pyo3/extension-module
	@touch $@
