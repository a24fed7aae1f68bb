"""A limit of time ends a run well: its files are there, and nothing looks like a complete run."""

import json
import sys

import pytest

import apenet as package
from apenet.base.errors import InputError
from apenet.run.limits import wall_time_s

WAITS = "import time; from mpi4py import MPI; MPI.COMM_WORLD.barrier(); print('begun', flush=True)\nwhile True: pass"
PROGRAM = [sys.executable, "-c", WAITS]
COUNTS = """
import time
from mpi4py import MPI
world = MPI.COMM_WORLD
for number in range(LAST):
    world.barrier()
    time.sleep(0.001)
    if world.rank == 0:
        print(number, flush=True)
"""


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


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), 1e10, True, "5 s", "1d", "-1s", "nan", ""])
def test_what_is_no_time_is_refused(limit):
    with pytest.raises(InputError, match="limit_wall = "):
        package.run(["true"], n=1, machine="ideal", limit_wall=limit)


@pytest.mark.parametrize(("given", "seconds"), [("90", 90), ("90s", 90), ("2min", 120), ("1.5h", 5400), ("50ms", 0.05)])
def test_a_wall_time_may_have_a_unit(given, seconds):
    assert wall_time_s("limit_wall", given, 0.001, 1e9) == seconds


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


def counting(last, **options):
    program = [sys.executable, "-c", COUNTS.replace("LAST", str(last))]
    return package.run(program, n=3, machine="ideal", capture=True, check=False, **options)


def test_a_run_ends_at_its_virtual_time_and_repeats():
    """A pass takes a millisecond and some microseconds: the tenth begins before the limit and ends after it."""
    first, second = (counting(10**6, limit_virtual="10ms") for _ in range(2))
    assert (first.outcome, first.exit_status) == ("limit", 124)
    assert first.message == "ended at the limit of virtual time"
    assert first.stdout.split() == [str(number).encode() for number in range(10)]
    assert 1e4 < first.virtual_time_us < 1.1e4
    assert (first.stdout, first.to_json()) == (second.stdout, second.to_json())


@pytest.mark.parametrize("limit", ["1s", 1, 0.5])
def test_a_program_that_ends_before_is_as_without_a_limit(limit):
    with_limit, without = (counting(5, limit_virtual=each) for each in (limit, None))
    assert with_limit.ok
    assert (with_limit.stdout, with_limit.to_json()) == (without.stdout, without.to_json())


def test_a_deadlock_before_the_limit_is_one():
    program = "from mpi4py import MPI; MPI.COMM_WORLD.recv(source=1 - MPI.COMM_WORLD.rank)"
    result = package.run(
        [sys.executable, "-c", program], n=2, machine="ideal", limit_virtual="1s", capture=True, check=False
    )
    assert result.outcome == "deadlock"


def test_the_command_line_has_the_virtual_limit(apenet, tmp_path):
    program = [sys.executable, "-c", COUNTS.replace("LAST", "10**6")]
    arguments = ["-n", "2", "-m", "ideal", "--limit-virtual", "2.5ms", "--out", tmp_path / "run"]
    done = apenet("run", *arguments, "--", *program)
    assert done.returncode == 124
    assert done.stdout.split() == ["0", "1", "2"]
    assert "ended without success after" in done.stderr
    assert json.loads((tmp_path / "run" / "run.json").read_text())["outcome"] == "limit"


@pytest.mark.parametrize(
    "limit", [0, -1, "0ms", "10", "10 ms", "1h", "ms", float("nan"), float("inf"), 1e8, True, "1e-9ns"]
)
def test_what_is_no_virtual_time_is_refused(limit):
    with pytest.raises(InputError, match="limit_virtual = "):
        package.run(["true"], n=1, machine="ideal", limit_virtual=limit)
