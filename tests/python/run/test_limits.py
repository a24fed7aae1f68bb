"""A limit of wall time ends a run well: its files are there, and nothing looks like a complete run."""

import json
import sys

import pytest

import apenet as package
from apenet.base.errors import InputError

WAITS = "import time; from mpi4py import MPI; MPI.COMM_WORLD.barrier(); print('begun', flush=True)\nwhile True: pass"
PROGRAM = [sys.executable, "-c", WAITS]


def test_a_run_ends_at_its_limit_and_keeps_what_was_measured(apenet, tmp_path):
    done = apenet("run", "-n", "2", "-m", "ideal", "--limit-wall", "4", "--out", tmp_path / "run", "--", *PROGRAM)
    assert done.returncode == 124
    assert "apenet: limit: ended after 4 s of wall time" in done.stderr
    content = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (content["outcome"], content["exit_status"], content["virtual_time_us"]) == ("limit", 124, None)


def test_from_python_it_is_no_success():
    with pytest.raises(package.RunError) as raised:
        package.run(PROGRAM, n=2, machine="ideal", limit_wall=2, capture=True)
    assert raised.value.exit_status == 124
    assert raised.value.result.outcome == "limit"


def test_a_run_that_ends_before_its_limit_knows_nothing_of_it():
    program = [sys.executable, "-c", "from mpi4py import MPI; MPI.COMM_WORLD.barrier()"]
    with_limit, without = (
        package.run(program, n=2, machine="ideal", limit_wall=limit, capture=True) for limit in (3600, None)
    )
    assert with_limit.to_json() == without.to_json()


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), 1e10, True, "5"])
def test_what_is_no_time_is_refused(limit):
    with pytest.raises(InputError, match="limit_wall = "):
        package.run(["true"], n=1, machine="ideal", limit_wall=limit)


def test_json_stands_alone_on_standard_output(apenet):
    done = apenet("run", "-n", "2", "-m", "ideal", "--json", "--", sys.executable, "-c", "print('of the program')")
    assert done.returncode == 0
    assert json.loads(done.stdout)["outcome"] == "completed"
    assert done.stderr.count("of the program") == 2


def test_json_of_a_failed_program_has_no_time(apenet):
    done = apenet("run", "-n", "2", "-m", "ideal", "--json", "--", "sh", "-c", "exit 3")
    assert done.returncode == 3
    content = json.loads(done.stdout)
    assert (content["outcome"], content["exit_status"], content["virtual_time_us"]) == ("failed", 3, None)
