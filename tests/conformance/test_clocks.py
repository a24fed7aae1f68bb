"""Less common clocks, and the messages of runs whose time depends on the host."""

import json
import platform
from pathlib import Path

import pytest

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


def test_a_run_says_that_threads_called_mpi(apenet, build, tmp_path):
    program = build(HERE / "c" / "threads.c")
    done = apenet("run", "-n", "6", "--machine", "ape16", "--out", tmp_path / "run", "--", program)
    assert done.returncode == 0, done.stderr
    assert f"warning: {WARNING}s 0, 1, 2, 3 and 2 more: " in done.stderr
    warnings = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["warnings"]
    assert any(warning.startswith(WARNING) for warning in warnings)


@pytest.mark.parametrize("what", ["mpi", "compute"])
def test_a_run_says_that_threads_acted_in_turn(apenet, build, tmp_path, what):
    program = build(HERE / "threads" / "in_turn.c")
    done = apenet("run", "-n", "2", "--machine", "ape16", "--out", tmp_path / "run", "--", program, what)
    assert done.returncode == 0, done.stderr
    assert f"warning: {WARNING}s 0, 1: the host determines their order, so this run may not repeat" in done.stderr
    warnings = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["warnings"]
    assert any(warning.startswith(WARNING) for warning in warnings)


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


def test_threads_that_wait_side_by_side_take_no_longer_than_one(apenet, build):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build(HERE / "threads" / "side_by_side.c"))
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stderr
