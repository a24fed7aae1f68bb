"""Less common clocks, and the messages of runs whose time depends on the host."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

import apenet as apenet_package

HERE = Path(__file__).parent
WARNING = "several threads called MPI, slept or read the clock in rank"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="a counter of x86-64")
def test_the_cycle_counter_is_virtual(apenet, build):
    program = build(HERE / "c" / "cycle_counter.c")
    command = ("run", "-n", "2", "--machine", "ape16", "--trap-tsc", "--", program, "trapped")
    first, second = apenet(*command), apenet(*command)
    assert first.returncode == 0, first.stderr
    assert first.stdout.endswith("passed\n")
    assert first.stdout == second.stdout


@pytest.mark.parametrize("ranks", [1, 2, 6])
def test_threads_that_call_mpi_give_the_same_bytes(apenet, build, tmp_path, ranks):
    program = build(HERE / "c" / "threads.c")
    runs = []
    for number in range(3):
        folder = tmp_path / f"run{number}"
        done = apenet("run", "-n", str(ranks), "--machine", "ape16", "--out", folder, "--", program)
        assert done.returncode == 0, done.stderr
        assert WARNING not in done.stderr
        runs.append((folder / "run.json").read_bytes())
    assert runs[0] == runs[1] == runs[2]


def test_no_library_of_ours_waits_for_its_static_variables_by_calls_that_the_shim_answers():
    """Two threads that made the first call of a function at once acted once more, and their order changed."""
    libraries = sorted((Path(apenet_package.__file__).parent / "lib").glob("libapenet-*.so"))
    assert libraries
    for library in libraries:
        command = ["nm", "-D", "--undefined-only", library]
        symbols = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        assert "__cxa_guard_" not in symbols, library


@pytest.mark.parametrize("what", ["mpi", "compute"])
def test_threads_that_act_one_after_the_other_give_no_warning(apenet, build, what):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build(HERE / "threads" / "in_turn.c"), what)
    assert done.returncode == 0, done.stderr
    assert WARNING not in done.stderr


@pytest.mark.parametrize("what", ["nothing", "wtime", "clock", "sleep"])
def test_a_thread_in_its_own_time_gives_no_warning(apenet, build, what):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build(HERE / "threads" / "in_turn.c"), what)
    assert done.returncode == 0, done.stderr
    assert WARNING not in done.stderr


@pytest.mark.parametrize("name", ["clocks", "requests"])
def test_threads_that_do_not_call_mpi_give_no_warning(apenet, build, name):
    """The first program makes threads that only wait for each other."""
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build(HERE / "c" / f"{name}.c"))
    assert done.returncode == 0, done.stderr
    assert WARNING not in done.stderr
    assert "futexes" not in done.stderr


def test_threads_that_wait_side_by_side_take_no_longer_than_one(apenet, build):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build(HERE / "threads" / "side_by_side.c"))
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stderr


@pytest.mark.parametrize("what", ["static", "once", "call_once", "throws", "sleeps"])
@pytest.mark.parametrize("first", ["0", "1"])
def test_the_first_use_of_a_variable_is_in_the_order_of_threads(apenet, build, what, first):
    """However late the host lets the other thread come: it waits for the first, or finds the variable complete."""
    program = build(HERE / "threads" / "first_uses.cpp", "mpicxx")
    soon, late = (
        apenet("run", "-n", "6", "--no-pin", "--machine", "ape16", "--", program, what, first, delay) for delay in "01"
    )
    assert soon.returncode == 0, soon.stderr
    assert (late.returncode, late.stdout) == (0, soon.stdout), late.stderr
    assert "warning" not in soon.stderr + late.stderr
    one_us, two_us = (float(part) * 1e6 for part in soon.stdout.split()[:2])
    assert one_us == two_us
    assert (one_us > 1000) == (what == "sleeps")


def test_a_lock_that_waits_by_its_own_futex_gives_a_warning(apenet, build):
    """Nobody knows the order in which threads take it; a futex call of a single thread is its own matter."""
    program = build(HERE / "threads" / "own_lock.cpp", "mpicxx")
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", program, "two")
    assert done.returncode == 0, done.stderr
    assert "threads wait for each other in ranks 0, 1 by futexes of their own" in done.stderr
    alone = apenet("run", "-n", "2", "--machine", "ape16", "--", program, "one")
    assert alone.returncode == 0, alone.stderr
    assert "warning" not in alone.stderr


def test_a_thread_that_a_library_starts_behind_its_own_function_is_in_the_order(apenet, tmp_path):
    """Its sleeps of 10 s were the rank's, whenever the host let it come to them."""
    library, program = tmp_path / "libown_create.so", tmp_path / "beside"
    sources = HERE / "threads"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", sources / "own_create.c", "-o", library], check=True)
    linked = ["-O1", sources / "beside_own_create.c", library, f"-Wl,-rpath,{tmp_path}"]
    subprocess.run([Path(sys.executable).with_name("mpicc"), *linked, "-o", program], check=True)
    runs = [apenet("run", "-n", "2", "-m", "ape16", "--", program) for _ in range(2)]
    for done in runs:
        assert (done.returncode, done.stdout) == (0, "1 added, in time\n"), done.stderr
        assert WARNING not in done.stderr
