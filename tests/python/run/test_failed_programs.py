"""A program that failed is an exception, and nowhere looks like a fast run."""

import json
import subprocess
import sys

import pytest

import apenet as package

FAILS = """
import sys
from mpi4py import MPI
world = MPI.COMM_WORLD
world.barrier()
if world.rank == 1:
    sys.stderr.write("first line\\nno such lattice: \\x1b[31m8x8\\n")
    sys.stderr.flush()
    world.Abort(7)
world.barrier()
"""
TELLS = "import sys; print('rank'); sys.stderr.write('some words'); raise SystemExit(3)"


def program(text):
    return [sys.executable, "-c", text]


def test_a_failed_program_raises_with_status_ranks_and_the_end_of_its_errors():
    with pytest.raises(package.RunError) as raised:
        package.run(program(FAILS), n=3, machine="ideal", capture=True)
    error = raised.value
    assert error.exit_status == 7
    assert 1 in error.ranks
    assert error.stderr.splitlines()[:2] == ["first line", "no such lattice: \x1b[31m8x8"]
    assert str(error).splitlines()[0] == "rank 1 called MPI_Abort(7)"
    assert "  stderr: no such lattice: \\x1b[31m8x8" in str(error).splitlines()
    assert not error.result.ok
    assert error.result.exit_status == 7


def test_each_rank_with_another_status_than_0_is_named():
    with pytest.raises(package.RunError) as raised:
        package.run(program("raise SystemExit(7)"), n=2, machine="ideal", capture=True)
    assert raised.value.ranks == (0, 1)
    assert "exited with status 7" in str(raised.value)


def test_the_end_of_errors_is_also_that_of_a_file(tmp_path):
    with pytest.raises(package.RunError) as raised:
        package.run(program(TELLS), n=1, machine="ideal", output=tmp_path / "said")
    assert (raised.value.exit_status, raised.value.stderr) == (3, "some words")


def test_long_errors_are_cut_at_their_begin():
    many = "import sys; sys.stderr.write(''.join(f'line {i}\\n' for i in range(1000))); raise SystemExit(1)"
    with pytest.raises(package.RunError) as raised:
        package.run(program(many), n=1, machine="ideal", capture=True)
    assert raised.value.stderr.splitlines() == [f"line {i}" for i in range(980, 1000)]


def test_without_check_it_is_a_result_that_says_so():
    result = package.run(program(FAILS), n=3, machine="ideal", capture=True, check=False)
    assert not result.ok
    assert (result.outcome, result.exit_status) == ("aborted", 7)
    assert result.virtual_time_us > 0
    content = result.to_json()
    assert content["virtual_time_us"] is None
    assert content["ended_at_us"] == result.virtual_time_us


def test_a_program_that_completes_has_both_times_in_its_file(tmp_path):
    result = package.run(program("from mpi4py import MPI"), n=2, machine="ideal", capture=True, out=tmp_path / "run")
    content = json.loads((tmp_path / "run" / "run.json").read_text())
    assert content["virtual_time_us"] == content["ended_at_us"] == result.virtual_time_us


def test_the_command_line_does_not_call_the_part_that_ran_a_time(apenet, tmp_path):
    done = apenet("run", "-n", "3", "-m", "ideal", "--out", tmp_path / "run", "--", *program(FAILS))
    assert done.returncode == 7
    assert "apenet: ideal, 3 ranks: ended without success after " in done.stderr
    content = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (content["outcome"], content["exit_status"], content["virtual_time_us"]) == ("aborted", 7, None)


def test_the_files_of_a_failed_program_are_kept_before_it_raises(tmp_path):
    with pytest.raises(package.RunError):
        package.run(program(FAILS), n=3, machine="ideal", capture=True, out=tmp_path / "run")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["exit_status"] == 7


def test_a_signal_is_no_result():
    """A script must not go on as if the program had ended."""
    script = (
        "import apenet, os, signal, sys\n"
        "from apenet.base.errors import Interrupted\n"
        "text = 'import os, signal, time; os.kill({}, signal.SIGINT); time.sleep(100000)'.format(os.getpid())\n"
        "try:\n"
        "    apenet.run([sys.executable, '-c', text], n=1, machine='ideal')\n"
        "except Interrupted:\n"
        "    print('interrupted')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == "interrupted\n", done.stderr
