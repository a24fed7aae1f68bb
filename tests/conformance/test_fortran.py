"""MPI for Fortran: mpif.h, mpi and mpi_f08 of `apenet cc --mpi`."""

import shutil
from pathlib import Path

import pytest

from apenet.base.errors import HostError
from apenet.host.compiling import compile_program

SOURCES = Path(__file__).parent / "fortran"
PRINTED = {
    "ring_mpif.f": "   7.0   7.0 Invalid rank\n",
    "attributes_mpi.f90": "attributes, errors, strings, types, files\n",
    "ring_f08.f90": "   6.0 T T ape16-0-0-0 F\n",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fortran")

    def build(name: str) -> Path:
        program = folder / Path(name).stem
        options = ["-Wall", "-Wno-unused-dummy-argument", f"-J{folder}"]
        compile_program([*options, SOURCES / name, "-o", program], [], mpi=True)
        return program

    return build


@pytest.mark.parametrize(("name", "printed"), PRINTED.items())
def test_program(apenet, built, tmp_path, name, printed):
    runs = [apenet("run", "-n", "4", "--machine", "ape16", "--", built(name), cwd=tmp_path) for _ in range(2)]
    assert runs[0].returncode == 0, runs[0].stderr
    assert runs[0].stdout == printed
    assert runs[1].stdout == printed
    assert runs[0].stderr.splitlines()[0] == runs[1].stderr.splitlines()[0]


def test_objects_are_linked_by_the_compilers_name(apenet, tmp_path):
    """As a Makefile does it, with MPIFC="apenet cc --mpi --compiler gfortran"."""
    shutil.copy(SOURCES / "ring_f08.f90", tmp_path)
    for words in (["-c", "ring_f08.f90"], ["-o", "ring", "ring_f08.o"]):
        made = apenet("cc", "--mpi", "--compiler", "gfortran", *words, cwd=tmp_path)
        assert made.returncode == 0, made.stderr
    run = apenet("run", "-n", "2", "--machine", "pax", "--", tmp_path / "ring", cwd=tmp_path)
    assert run.returncode == 0, run.stderr


def test_a_wrong_argument_is_found_by_the_compiler(tmp_path):
    source = tmp_path / "wrong.f90"
    source.write_text("use mpi\ncall MPI_Barrier(1.5, 0)\nend\n", encoding="utf-8")
    with pytest.raises(HostError, match="Type mismatch"):
        compile_program(["-c", source, "-o", tmp_path / "wrong.o"], [], mpi=True)


def test_an_mpi_that_is_not_mpich_is_refused(tmp_path, monkeypatch):
    mpicc = tmp_path / "mpicc"
    mpicc.write_text("#!/bin/sh\necho gcc -I/nowhere -lmpi\n", encoding="utf-8")
    mpicc.chmod(0o755)
    monkeypatch.setattr("apenet.host.fortran.find_mpicc", lambda: mpicc)
    with pytest.raises(HostError, match=r"mpicc: expected the compiler of MPICH 4\.3 or later"):
        compile_program([SOURCES / "ring_f08.f90", "-o", tmp_path / "ring"], [], mpi=True)


@pytest.mark.parametrize("mode", ["thread", "openmp", "manager"])
def test_a_deadlock_among_threads_names_call_and_line(apenet, tmp_path, mode):
    source = SOURCES / "threads_wait.f90"
    program = tmp_path / "threads_wait"
    made = apenet("cc", "--mpi", "--compiler", "gfortran", "-g", "-O0", "-fopenmp", "-o", program, source)
    assert made.returncode == 0, made.stderr
    lines = source.read_text(encoding="utf-8").splitlines()
    waits = "nobody answers" if mode == "manager" else "MPI_Recv("
    line = 1 + next(number for number, text in enumerate(lines) if waits in text)
    done = apenet("run", "-n", "2", "--machine", "ape16", "--stall-timeout", "0.3", "--", program, mode)
    assert done.returncode == 1, done.stderr
    if mode == "manager":
        assert "deadlock: every thread of the ranks waits" in done.stderr
        assert f"ranks 0, 1: reads from a pipe (threads_wait.f90:{line})" in done.stderr
        return
    tag = 5 if mode == "thread" else 6
    for rank in range(2):
        assert f"rank {rank}: MPI_Recv from rank {1 - rank}, tag {tag} (threads_wait.f90:{line})" in done.stderr
    assert "in a cycle: rank 0 -> rank 1 -> rank 0" in done.stderr
