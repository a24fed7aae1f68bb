"""Drawn calls of the machines' libraries under valgrind: no rank reads or writes memory that is not allocated.

Undefined values are not looked for, because the simulator writes into the memory of ranks, which valgrind does not see.
"""

import shutil
from pathlib import Path

import pytest

import apenet as package

pytestmark = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
FOUND = 97
SUPPRESSIONS = Path(__file__).with_name("memcheck.supp")
# The libraries bring some of the C++ library with them: its `new` is valgrind's then, and its `delete` the C library's.
CHECKS = ("--undef-value-errors=no", "--show-mismatched-frees=no", f"--suppressions={SUPPRESSIONS}")
VALGRIND = ("valgrind", "-q", f"--error-exitcode={FOUND}", *CHECKS)


def run_checked(program, *arguments, n, machine="ape16", **options):
    words = [*VALGRIND, program, *map(str, arguments)]
    return package.run(words, n=n, machine=machine, capture=True, check=False, **options)


@pytest.mark.parametrize(("how", "status"), [("overrun", FOUND), ("freed", FOUND), ("right", 0)])
def test_valgrind_sees_the_heap_of_a_rank(compile_native, how, status):
    program = compile_native("overrun.c", mpi=True)
    done = run_checked(program, how, n=1)
    assert done.exit_status == status
    assert b"unknown" not in done.stderr  # "sigprocmask: unknown 'how' field -1"


@pytest.mark.parametrize(
    ("machine", "conduit"),
    [("extoll-64", "extoll"), ("pax", "ibv"), ("pax", "udp"), ("ape16", "apelink"), ("ideal", "mpi")],
)
def test_drawn_calls_of_gasnet(compile_native, machine, conduit):
    program = compile_native("gasnet/fuzz.c", "gasnet-par")
    done = run_checked(program, 3, 6, n=3, machine=machine, environment={"GASNET_CONDUIT": conduit})
    assert (done.exit_status, done.stdout) == (0, b"passed\n"), done.stderr


def test_extoll_descriptors_of_random_bits(compile_native):
    done = run_checked(compile_native("extoll/descriptors.c", "extoll"), 1, 500, n=2, machine="extoll-64")
    assert done.exit_status == 0, done.stderr


def test_drawn_calls_of_apelib(compile_native):
    done = run_checked(compile_native("apelib/fuzz.c", "apelib"), 5, 60, n=3)
    assert done.exit_status == 0, done.stderr
