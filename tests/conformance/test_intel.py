"""Intel MPI, where I_MPI_ROOT names one. It has MPICH's ABI: LD_LIBRARY_PATH decides which library a program gets."""

import json
import os
from pathlib import Path

import pytest

ROOT = os.environ.get("I_MPI_ROOT")
PROGRAMS = Path(__file__).parent / "c"


@pytest.mark.skipif(ROOT is None, reason="I_MPI_ROOT names no Intel MPI")
@pytest.mark.parametrize(
    ("program", "ranks"), [("requests", 4), ("datatypes", 4), ("rma_active", 4), ("nonblocking_collectives", 16)]
)
def test_a_program_ends_and_repeats(apenet, build, tmp_path, program, ranks):
    environment = {**os.environ, "I_MPI_DEBUG": "1"}
    runs = []
    for label, words, variables in (
        ("recognised", (), {"LD_LIBRARY_PATH": f"{ROOT}/lib"}),
        ("asked-for", ("--mpi", "intel"), {}),
    ):
        out = tmp_path / label
        simulated = ("run", "-n", str(ranks), "--machine", "ape16", "--out", out, *words)
        run = apenet(*simulated, "--", build(PROGRAMS / f"{program}.c"), env={**environment, **variables})
        assert run.returncode == 0, run.stderr
        assert "Intel(R) MPI Library" in run.stdout
        content = json.loads((out / "run.json").read_text(encoding="utf-8"))
        assert all(rank["library"].startswith("Intel(R) MPI Library 2021.") for rank in content["ranks"])
        runs.append(content)
    assert runs[0] == runs[1]


@pytest.mark.skipif(ROOT is None, reason="I_MPI_ROOT names no Intel MPI")
def test_it_runs_without_its_progress_thread(apenet, build):
    """It would wait by reading memory. The run ends, says so, and prints the same as without the variable."""
    program = build(PROGRAMS.parent / "threads" / "all_receive.c")
    variables: tuple[dict[str, str], ...] = ({}, {"I_MPI_ASYNC_PROGRESS": "1"})
    runs = [
        apenet("run", "-n", "2", "--machine", "ape16", "--mpi", "intel", "--", program, env={**os.environ, **more})
        for more in variables
    ]
    assert runs[0].returncode == 0, runs[0].stderr
    assert runs[1].stdout == runs[0].stdout, runs[1].stderr
    assert ["I_MPI_ASYNC_PROGRESS = '1' is ignored" in run.stderr for run in runs] == [False, True]
