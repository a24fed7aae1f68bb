"""Where a program makes its MPI calls: from debug information, in programs, libraries and Fortran."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import apenet

BIN = Path(sys.executable).parent
pytestmark = pytest.mark.skipif(shutil.which("addr2line") is None, reason="no tool reads debug information")

PROGRAM = """#include <mpi.h>
static int value;
int main(int argc, char** argv) {
  int rank = 0;
  MPI_Request request;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 3; ++i) {
    if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (rank == 1) MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    MPI_Irecv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  return MPI_Finalize();
}
"""
OPERATIONS = {
    ("MPI_Send", "program.c:9"): 3,
    ("MPI_Recv", "program.c:10"): 3,
    ("MPI_Send", "program.c:12"): 1,
    ("MPI_Irecv", "program.c:14"): 1,
}
FORTRAN = """program lines
  use mpi
  integer :: rank, value, error
  value = 0
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  if (rank == 0) then
    call MPI_Send(value, 1, MPI_INTEGER, 1, 7, MPI_COMM_WORLD, error)
    call MPI_Send(value, 1, MPI_INTEGER, 1, 7, MPI_COMM_WORLD, error)
  else
    call MPI_Recv(value, 1, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    call MPI_Recv(value, 1, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  end if
  call MPI_Finalize(error)
end program
"""
LIBRARY = """#include <mpi.h>
void give(int* value, int to) {
  MPI_Send(value, 1, MPI_INT, to, 0, MPI_COMM_WORLD);
}
"""
CALLER = """#include <dlfcn.h>
#include <mpi.h>
int main(int argc, char** argv) {
  int rank = 0, value = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    void (*give)(int*, int) = (void (*)(int*, int))dlsym(dlopen(argv[1], RTLD_NOW), "give");
    give(&value, 1);
  } else {
    MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return MPI_Finalize();
}
"""


def made(folder, name, text, *options):
    """Compiles a program in `folder`."""
    (folder / name).write_text(text)
    program = folder / name.split(".")[0]
    compiler = [BIN / "apenet", "cc", "--mpi", "--compiler", "gfortran"] if name.endswith("f90") else [BIN / "mpicc"]
    command = [*compiler, "-O1", *options, "-o", program, name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return program


def recorded(command, folder, **options):
    apenet.run(command, n=2, out=folder / "run", record=folder / "run" / "recording.goal", capture=True, **options)
    return apenet.explain(folder / "run")


def operations(content):
    """How many operations the calls of each place have begun."""
    return {(row["call"], row["place"]): row["operations"] for row in content["calls"] if row["operations"]}


@pytest.mark.parametrize("options", [("-g", "-fPIE", "-pie"), ("-g", "-fno-pie", "-no-pie"), ("-g", "-static-libgcc")])
def test_each_call_has_its_line(tmp_path, options):
    content = recorded([made(tmp_path, "program.c", PROGRAM, *options)], tmp_path)
    assert operations(content) == OPERATIONS
    waits = {(row["call"], row["place"]) for row in content["waits"]["calls"]}
    assert {("MPI_Recv", "program.c:10"), ("MPI_Wait", "program.c:15")} <= waits
    text = [one["what"] for one in content["path"]["contributors"]]
    sent = "from MPI_Send (program.c:9), awaited in MPI_Recv (program.c:10)"
    assert any(sent in one for one in text), text
    cause = max(content["waits"]["causes"], key=lambda one: one["us"])["cause"]
    row = max((one for one in content["waits"]["calls"] if one["cause"] == cause), key=lambda one: one["us"])
    share = f"{100 * row['us'] / content['replay']['ranks_us']:.0f} %"
    assert f"; {share} in {row['call']} ({row['place']})." in content["verdict"]["text"]


NUMBERED = """#include <mpi.h>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size = 8;
  static char buffer[1 << 20];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 9; ++i) {
    size = i == 6 ? sizeof buffer : 8;
    if (rank == 0) MPI_Send(buffer, size, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    else MPI_Recv(buffer, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
}
"""


@pytest.mark.parametrize("options", ["-g", "-g0"])
def test_the_longest_part_names_the_number_of_its_calls(tmp_path, options):
    """The seventh of nine messages is a mebibyte, the others have eight bytes."""
    content = recorded([made(tmp_path, "numbered.c", NUMBERED, options)], tmp_path)
    first = content["path"]["contributors"][0]
    assert f"payload of {2**20} B" in first["what"]
    assert first["longest"]["us"] == first["us"]
    sent, awaited = first["longest"]["calls"]
    assert sent == {"rank": 0, "call": "MPI_Send", "number": 7}
    assert awaited in (sent, {"rank": 1, "call": "MPI_Recv", "number": 7})


def test_lines_are_those_of_the_program_that_ran(tmp_path):
    program = made(tmp_path, "program.c", PROGRAM, "-g")
    recorded([program], tmp_path)
    made(tmp_path, "program.c", "\n\n" + PROGRAM, "-g")
    assert operations(apenet.explain(tmp_path / "run")) == OPERATIONS


def test_without_debug_information_a_call_has_its_name(tmp_path):
    content = recorded([made(tmp_path, "program.c", PROGRAM, "-g0")], tmp_path)
    assert operations(content) == {("MPI_Send", ""): 4, ("MPI_Recv", ""): 3, ("MPI_Irecv", ""): 1}
    assert " in MPI_" not in content["verdict"]["text"]


def test_a_library_that_the_program_loads_has_lines(tmp_path):
    library = made(tmp_path, "library.c", LIBRARY, "-g", "-shared", "-fPIC")
    content = recorded([made(tmp_path, "caller.c", CALLER, "-g", "-ldl"), library], tmp_path)
    assert operations(content) == {("MPI_Send", "library.c:3"): 1, ("MPI_Recv", "caller.c:11"): 1}


def test_a_program_and_folder_with_odd_names(tmp_path):
    folder = tmp_path / "a b;$(c) 'd'"
    folder.mkdir()
    (folder / "x y@z.c").write_text(PROGRAM)
    subprocess.run([BIN / "mpicc", "-g", "-O1", "-o", "p q", "x y@z.c"], cwd=folder, check=True)
    content = recorded([folder / "p q"], folder)
    assert operations(content) == {
        (call, place.replace("program", "x?y@z")): count for (call, place), count in OPERATIONS.items()
    }


@pytest.mark.skipif(shutil.which("gfortran") is None, reason="no Fortran compiler")
def test_fortran_has_lines(tmp_path):
    """Its binding stands between the program and the library: the line is found on the stack."""
    folder = tmp_path / "fortran"
    folder.mkdir()
    content = recorded([made(folder, "lines.f90", FORTRAN, "-g")], tmp_path)
    assert operations(content) == {
        ("MPI_Send", "lines.f90:8"): 1,
        ("MPI_Send", "lines.f90:9"): 1,
        ("MPI_Recv", "lines.f90:11"): 1,
        ("MPI_Recv", "lines.f90:12"): 1,
    }


def test_calls_of_python_have_their_names(tmp_path):
    """The caller is mpi4py, whose wheel has no debug information."""
    pytest.importorskip("mpi4py")
    program = tmp_path / "program.py"
    program.write_text(
        "from mpi4py import MPI\n"
        "world = MPI.COMM_WORLD\n"
        "buffer = bytearray(8)\n"
        "world.Send(buffer, 1) if world.rank == 0 else world.Recv(buffer, 0)\n"
    )
    content = recorded([sys.executable, program], tmp_path)
    assert {("MPI_Send", ""), ("MPI_Recv", "")} <= set(operations(content))
