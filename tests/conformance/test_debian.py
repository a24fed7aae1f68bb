"""Programs and MPI libraries of Debian's packages, where they are installed: run as their user would, twice the same.

Nothing but `apenet run -n RANKS -- PROGRAM`: Open MPI 4.1 below Fortran, C++ and Python, and MPICH with UCX alone.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

TRIPLET = Path("/usr/lib/x86_64-linux-gnu")
PETSC = Path("/usr/lib/petscdir/petsc3.18/x86_64-linux-gnu-real")
PYTHON = "/usr/bin/python3"
SOURCES = Path(__file__).parent / "c"

MELT = """
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 4 0 4 0 4
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
thermo 10
run 10
"""

# ScaLAPACK's LU, on process grids of 1x4 and 2x2.
LU = """'ScaLAPACK, LU factorization input file'
'MPI Machine'
'LU.out' output file name
6 device out
1 number of problems sizes
13 values of M
13 values of N
1 number of NB's
3 values of NB
1 number of NRHS's
2 values of NRHS
1 Number of NBRHS's
3 values of NBRHS
2 number of process grids
1 2 values of P
4 2 values of Q
1.0 threshold
F (T or F) Test Cond. Est. and Iter. Ref. Routines
"""

SOLVE = """
import sys, petsc4py
petsc4py.init(sys.argv)
from petsc4py import PETSc
n = 40
matrix = PETSc.Mat().createAIJ([n, n], nnz=3, comm=PETSC_COMM)
first, last = matrix.getOwnershipRange()
for i in range(first, last):
    for j, value in ((i - 1, -1.0), (i, 2.0), (i + 1, -1.0)):
        if 0 <= j < n:
            matrix[i, j] = value
matrix.assemble()
x, y = matrix.createVecs()
y.set(1.0)
solver = PETSc.KSP().create()
solver.setOperators(matrix)
solver.setType("cg")
solver.getPC().setType("jacobi")
solver.solve(y, x)
rest = y.duplicate()
matrix.mult(x, rest)
rest.axpy(-1, y)
PETSc.Sys.Print(PETSc.COMM_WORLD.size, "ranks", rest.norm() < 1e-3)
""".replace("PETSC_COMM", "PETSc.COMM_WORLD")

WAVES = """
import meep as mp
guide = mp.Block(mp.Vector3(mp.inf, 1, mp.inf), material=mp.Medium(epsilon=12))
source = mp.Source(mp.ContinuousSource(frequency=0.15), component=mp.Ez, center=mp.Vector3(-1, 0))
waves = mp.Simulation(cell_size=mp.Vector3(4, 4, 0), geometry=[guide], sources=[source], resolution=4)
waves.run(until=2)
if mp.am_master():
    print(mp.count_processors(), "processes")
"""

SUM = """
from mpi4py import MPI
world = MPI.COMM_WORLD
total = world.allreduce(world.rank)
if world.rank == 0:
    print(world.size, total)
"""


def needs(program: str | Path, module: str | None = None) -> None:
    """Skips the test if the program, or this module of Debian's Python, is not installed."""
    is_found = shutil.which(str(program)) is not None
    if is_found and module is not None:
        # A removed package may leave a folder, which imports as a module without a file.
        code = f"import {module}; assert {module}.__file__"
        asked = subprocess.run([program, "-c", code], capture_output=True, check=False)
        is_found = asked.returncode == 0
    if not is_found:
        pytest.skip(f"{module or program} is not installed")


@pytest.fixture
def twice(apenet, tmp_path, monkeypatch):
    """Runs a command in a folder with this file, and again: the same run.json. Returns it, and what was printed."""
    monkeypatch.setenv("PETSC_DIR", str(PETSC))

    def run(ranks: int, *command: str | Path, name: str = "input", text: str = "") -> tuple[dict, str, str]:
        (tmp_path / name).write_text(text, encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        results = []
        for label in ("first", "second"):
            done = apenet("run", "-n", str(ranks), "--out", tmp_path / label, "--", *command)
            assert done.returncode == 0, done.stdout + done.stderr
            results.append(json.loads((tmp_path / label / "run.json").read_text(encoding="utf-8")))
        assert results[0] == results[1]
        assert results[0]["messages"] > 0
        return results[0], done.stdout, done.stderr

    return run


def libraries(result: dict) -> set[str]:
    return {rank["library"].split(",")[0] for rank in result["ranks"]}


def test_lammps(twice):
    needs("lmp")
    _, printed, _ = twice(4, "lmp", "-in", "in.melt", "-log", "none", name="in.melt", text=MELT)
    assert "Created 256 atoms" in printed
    assert "\n  1 by 2 by 2 MPI processor grid" in printed


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_scalapack(twice, mpi):
    program = TRIPLET / "scalapack" / f"{mpi}-tests" / "xdlu"
    needs(program)
    _, printed, _ = twice(4, program, name="LU.dat", text=LU)
    assert "2 tests completed and passed residual checks" in printed


@pytest.mark.parametrize("program", ["NPopenmpi", "NPmpich2"])
def test_netpipe(twice, program):
    needs(program)
    result, printed, reported = twice(2, program, "-u", "64", "-n", "5")
    if program == "NPmpich2":
        assert all(library.startswith("MPICH Version:") for library in libraries(result))
        assert "in place of the program's libmpich.so.12" in reported
    assert "1 bytes" in printed + reported


def test_petsc_by_petsc4py(twice):
    if not PETSC.exists():
        pytest.skip("petsc4py is not installed")
    _, printed, _ = twice(4, PYTHON, "solve.py", name="solve.py", text=SOLVE)
    assert printed.splitlines() == ["4 ranks True"]


def test_meep(twice):
    needs(PYTHON, "meep")
    _, printed, _ = twice(4, PYTHON, "waves.py", name="waves.py", text=WAVES)
    assert "4 processes" in printed.splitlines()


def test_mpi4py(twice):
    needs(PYTHON, "mpi4py")
    result, printed, _ = twice(4, PYTHON, "sum.py", name="sum.py", text=SUM)
    assert printed == "4 6\n"
    assert all(library.startswith("Open MPI v4.") for library in libraries(result))


def test_mpich_with_ucx_alone_is_refused_before_it_begins(apenet, monkeypatch):
    """mpi4py opens it by its name. The environment's libfabric may be in the process, too."""
    library = TRIPLET / "libmpich.so.12"
    if not library.exists():
        pytest.skip("Debian's MPICH is not installed")
    monkeypatch.setenv("MPI4PY_LIBMPI", str(library))
    done = apenet("run", "-n", "4", "--", "python", "-c", "from mpi4py import MPI")
    assert done.returncode == 2
    assert f"rank 0 was refused: the MPI library {library} does not use libfabric" in done.stderr
    assert "UCX" not in done.stderr


PENDING = """
#include <mpi.h>
int main(int argc, char** argv) {
  int rank = 0;
  static char data[100000];
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) MPI_Issend(data, sizeof data, MPI_CHAR, 1, 4, MPI_COMM_WORLD, &request);
  MPI_Finalize();
  return 0;
}
"""


def test_a_send_that_is_left_pending_reaches_the_network(twice, tmp_path):
    """Open MPI 4.1 leaves MPI_Finalize as soon as its process manager answers, before or after it."""
    needs("mpicc.openmpi")
    source = tmp_path / "pending.c"
    source.write_text(PENDING, encoding="utf-8")
    subprocess.run(["mpicc.openmpi", "-o", tmp_path / "pending", source], check=True)
    for _ in range(2):
        result, _, _ = twice(4, tmp_path / "pending")
        assert [link["packets"] for link in result["links"]] == [1]
        assert "1 message was never received: from rank 0 to rank 1" in result["warnings"][0]


def descendants(process: int) -> dict[int, str]:
    """The processes below this one, with their names."""
    found = {}
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        for child in children.read_text(encoding="ascii").split():
            found[int(child)] = Path(f"/proc/{child}/comm").read_text(encoding="utf-8").strip()
            found |= descendants(int(child))
    return found


def await_file(path: Path) -> None:
    give_up = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < give_up, path
        time.sleep(0.01)


def test_a_process_manager_that_is_silent_at_the_end_is_no_deadlock(start_apenet, tmp_path):
    """PMIx waits 2 s for it. The rank is the last one, so no other rank can end its wait."""
    needs("mpicc.openmpi")
    program = tmp_path / "manager_is_silent"
    source = Path(__file__).parent / "start" / "manager_is_silent.c"
    subprocess.run(["mpicc.openmpi", "-rdynamic", "-o", program, source, "-ldl"], check=True)
    run = start_apenet("run", "-n", "4", "--", program, cwd=tmp_path)
    await_file(tmp_path / "is_last")
    time.sleep(0.5)  # the others end
    (manager,) = [process for process, name in descendants(run.process.pid).items() if name.startswith("mpirun")]
    os.kill(manager, signal.SIGSTOP)
    (tmp_path / "is_stopped").touch()
    await_file(tmp_path / "has_waited")
    os.kill(manager, signal.SIGCONT)
    (tmp_path / "is_continued").touch()
    done = run.finish()
    assert done.returncode == 0, done.stderr
    assert "deadlock" not in done.stderr


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_programs_built_with_its_compilers(apenet, tmp_path, mpi):
    needs(f"mpicc.{mpi}")
    for name in ("communicators", "rma_active", "rma_dynamic", "nonblocking_collectives", "any_source"):
        program = tmp_path / name
        subprocess.run([f"mpicc.{mpi}", "-std=c11", "-O1", "-o", program, SOURCES / f"{name}.c"], check=True)
        done = apenet("run", "-n", "4", "--", program)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.splitlines().count("passed") == 1


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
@pytest.mark.parametrize("case", ["token", "token beside"])
def test_a_loop_of_probes_takes_the_time_of_its_messages(twice, tmp_path, mpi, case):
    """Twenty messages, one after the other, with and without a thread that sleeps beside them."""
    needs(f"mpicc.{mpi}")
    program = tmp_path / "sleeping"
    subprocess.run([f"mpicc.{mpi}", "-pthread", "-o", program, SOURCES.parent / "threads" / "sleeping.c"], check=True)
    _, printed, _ = twice(2, program, case)
    ends_us = [float(end) * 1e6 for end in re.findall(r"^rank \d: (\S+)$", printed, re.MULTILINE)]
    assert len(ends_us) == 2
    assert all(70 < end_us < 80 for end_us in ends_us)


REDUCE = """
program reduce
  use mpi
  integer :: error, rank, ranks, total
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  if (rank == 0) print '(i0, 1x, i0)', ranks, total
  call MPI_Finalize(error)
end program
"""


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_a_fortran_program_needs_no_option(twice, tmp_path, mpi):
    """The program is linked to MPI's library for Fortran alone."""
    needs(f"mpifort.{mpi}")
    source = tmp_path / "reduce.f90"
    source.write_text(REDUCE, encoding="utf-8")
    command = [f"mpifort.{mpi}", "-fallow-argument-mismatch", "-Wl,--as-needed", "-o", tmp_path / "reduce", source]
    subprocess.run(command, check=True)
    _, printed, _ = twice(4, tmp_path / "reduce")
    assert printed == "4 6\n"


CALIBRATES = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char** argv) {
  int rank, goes_on = 1;
  char byte = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (long turns = 1; goes_on; turns *= 2) {
    const double begin = MPI_Wtime();
    for (long i = 0; i < turns; ++i) {
      if (rank == 0) MPI_Send(&byte, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(&byte, 1, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    goes_on = MPI_Wtime() - begin < 0.001;
    MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0 && !goes_on) printf("%ld turns, %.1f us each\\n", turns, (MPI_Wtime() - begin) / turns * 1e6);
  }
  MPI_Finalize();
  return 0;
}
"""


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_a_ping_pong_that_doubles_its_turns_comes_to_an_end(twice, tmp_path, mpi):
    """As NetPIPE does, until the turns take a millisecond."""
    needs(f"mpicc.{mpi}")
    source = tmp_path / "calibrates.c"
    source.write_text(CALIBRATES, encoding="utf-8")
    subprocess.run([f"mpicc.{mpi}", "-o", tmp_path / "calibrates", source], check=True)
    _, printed, _ = twice(2, tmp_path / "calibrates")
    assert re.fullmatch(r"256 turns, 7\.[0-9] us each\n", printed)


@pytest.mark.parametrize("case", ["own-lock", "own-pipe", "join"])
def test_a_deadlock_in_the_host_is_reported_beside_helper_threads(apenet, tmp_path, case):
    """Open MPI 4.1 and its PMIx are made of plug-ins (mca_*.so), which their helper threads run."""
    needs("mpicc.openmpi")
    source, program = SOURCES.parent / "failing_runs" / "sleeps_in_host.c", tmp_path / "sleeps"
    subprocess.run(["mpicc.openmpi", "-pthread", "-o", program, source], check=True)
    done = apenet("run", "-n", "2", "--stall-timeout", "3s", "--", program, case, tmp_path, "all", timeout_s=100)
    assert done.returncode == 1, done.stderr
    assert "deadlock: every thread of the ranks waits, and none of them can wake another" in done.stderr
