"""Programs that bring an MPI for one process: n of them are no program of n ranks."""

import shutil
import subprocess

import pytest

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


def test_programs_without_mpi_are_not_refused(apenet, tmp_path, build):
    weak = compiled(tmp_path, "gcc", "c", WEAK)
    source = tmp_path / "version.c"
    source.write_text(VERSION, encoding="utf-8")
    for command in ([weak], ["hostname"], [build(source), "--version"]):
        done = apenet("run", "-n", "4", "--", *command)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == 4
        assert "no rank opened an endpoint" in done.stderr
