"""Which MPI a program gets: what the loader binds decides, not the program's own text."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from apenet.base.errors import HostError, InputError
from apenet.host.loading import bound_libraries, interpreters
from apenet.host.mpi_library import bound_mpi, choose_mpi, find_launcher, loader_variables
from apenet.host.toolchain import MPICH_NAME


def compile_to(target: Path, text: str, *options: str | Path) -> Path:
    source = target.with_suffix(".c")
    source.write_text(text, encoding="utf-8")
    subprocess.run(["cc", source, "-o", target, *options], check=True)
    return target


def library(folder: Path, name: str, text: str, *options: str | Path) -> Path:
    folder.mkdir(exist_ok=True)
    return compile_to(folder / name, text, "-shared", "-fPIC", f"-Wl,-soname,{name}", *options)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Stand-ins for MPI libraries, each in a folder of its own, and programs that reach them through a library."""
    folder = tmp_path_factory.mktemp("made")
    first = library(folder / "openmpi", "libmpi.so.40", "int ompi_mpi_comm_world, MPI_Init;")
    ucx = library(folder / "ucx", "libmpich.so.12", "int MPI_Init;")
    own = library(folder / "own", "libmpi.so.12", "int fi_getinfo(void) { return 0; } int MPI_Init;")
    calls = "extern int MPI_Init; int solve(void) { return MPI_Init; }"
    main = "int solve(void); int main(void) { return solve(); }"
    for name, target in (("openmpi", first), ("ucx", ucx), ("own", own)):
        solver = library(folder / f"{name}-solver", f"lib{name}solver.so", calls, target)
        search = ["-Wl,-rpath," + str(solver.parent), "-Wl,-rpath-link," + str(target.parent)]
        compile_to(folder / f"{name}-program", main, solver, *search)
    rpath = ["-Wl,--disable-new-dtags", f"-Wl,-rpath,{ucx.parent}:{folder / 'ucx-solver'}"]
    compile_to(folder / "ucx-rpath", main, folder / "ucx-solver" / "libucxsolver.so", *rpath)
    return folder


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    for name in ("LD_LIBRARY_PATH", "LD_PRELOAD", "I_MPI_ROOT"):
        monkeypatch.delenv(name, raising=False)


def lead(monkeypatch, *folders: Path) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", os.pathsep.join(map(str, folders)))


def test_a_library_between_leads_to_open_mpi(made, monkeypatch):
    lead(monkeypatch, made / "openmpi")
    program = made / "openmpi-program"
    assert b"libmpi.so" not in program.read_bytes()
    assert choose_mpi("auto", program, 4) == "openmpi"
    assert choose_mpi("openmpi", program, 4) == "openmpi"
    with pytest.raises(InputError, match=r'mpi = "mpich": expected openmpi: the loader binds .*libmpi\.so\.40'):
        choose_mpi("mpich", program, 4)


def test_the_first_line_of_a_script_leads_on(made, monkeypatch, tmp_path):
    lead(monkeypatch, made / "openmpi")
    script = tmp_path / "script"
    script.write_text(f"#!{made / 'openmpi-program'} -x\nanything\n", encoding="utf-8")
    assert choose_mpi("auto", script, 4) == "openmpi"
    for line, names in (
        ("#!/usr/bin/env sh", ["script", "sh"]),
        ("#! /usr/bin/env -S A=b sh -e", ["script", "sh"]),
        ("#!/no/such/program", ["script", "program"]),
        (f"#!{script}", ["script"] * 5),
        ("no script", ["script"]),
    ):
        script.write_text(line + "\n", encoding="utf-8")
        assert [file.name for file in interpreters(script, os.defpath)] == names, line


def test_an_mpi_without_libfabric_is_refused_with_the_remedy(made, monkeypatch):
    program = made / "ucx-program"
    assert choose_mpi("auto", program, 4) == "mpich"  # this environment's, under Debian's name
    lead(monkeypatch, made / "ucx")
    with pytest.raises(InputError, match=r"libmpich\.so\.12, whose messages would bypass .* --mpi mpich puts"):
        choose_mpi("auto", program, 4)
    assert choose_mpi("auto", program, 1) == "mpich"
    assert choose_mpi("mpich", program, 4) == "mpich"
    for mpi in ("auto", "mpich"):
        with pytest.raises(InputError, match=r"bypass"):
            choose_mpi(mpi, made / "ucx-rpath", 4)


def test_the_users_mpich_with_libfabric_stays(made, monkeypatch):
    lead(monkeypatch, made / "own")
    (bound,) = bound_mpi(made / "own-program", loader_variables("auto"))
    assert (bound.family, bound.uses_libfabric, bound.path) == ("mpich", True, made / "own" / "libmpi.so.12")
    (asked,) = bound_mpi(made / "own-program", loader_variables("mpich"))
    assert asked.path != bound.path


def test_what_the_loader_does_not_load_has_no_library(tmp_path):
    for content in (b"", b"\x7fELF\x02\x01" + b"\xff" * 100, b"text"):
        file = tmp_path / "file"
        file.write_bytes(content)
        assert bound_libraries(file, {}) == []
    static = compile_to(tmp_path / "static", "int main(void) { return 0; }", "-static")
    assert bound_libraries(static, {}) == []
    foreign = compile_to(tmp_path / "foreign", "int main(void) { return 0; }", "-Wl,--dynamic-linker,/bin/false")
    assert bound_libraries(foreign, {}) == []
    assert MPICH_NAME.exists()


def test_the_launcher_of_the_library_comes_first(tmp_path):
    """Debian installs both MPICH's and Open MPI's launcher, and either may be called mpirun."""
    shown = {
        "mpich": "HYDRA build details",
        "other": "mpirun (Open MPI) 5.0.1",
        "mine": "mpirun.openmpi (OpenRTE) 4.1.4",
    }
    for prefix, name, text in (
        ("debian", "mpirun", shown["mpich"]),
        ("debian", "mpirun.openmpi", shown["mine"]),
        ("other", "mpirun", shown["other"]),
    ):
        launcher = tmp_path / prefix / "bin" / name
        launcher.parent.mkdir(parents=True, exist_ok=True)
        launcher.write_text(f"#!/bin/sh\necho '{text}'\n", encoding="utf-8")
        launcher.chmod(0o755)
    inside = tmp_path / "debian" / "lib" / "triplet" / "libmpi.so.40"
    inside.parent.mkdir(parents=True)
    inside.touch()
    folders = [tmp_path / "other" / "bin"]
    now_ns = time.time_ns()
    assert find_launcher(inside, folders, now_ns) == tmp_path / "debian" / "bin" / "mpirun.openmpi"
    assert find_launcher(tmp_path / "libmpi.so.40", folders, now_ns) == tmp_path / "other" / "bin" / "mpirun"
    with pytest.raises(HostError, match="Open MPI: the mpirun of its release is neither"):
        find_launcher(tmp_path / "libmpi.so.40", [tmp_path], now_ns)


@pytest.mark.parametrize("way", ["written", "linked", "named", "renamed"])
def test_a_launcher_that_is_younger_than_the_run_is_not_executed(tmp_path, way):
    began, folder = tmp_path / "executed", tmp_path / "bin"
    folder.mkdir()
    text = f"#!/bin/sh\ntouch {began}\necho 'mpirun (Open MPI) 5.0.10'\n"
    launcher, old = folder / "mpirun", tmp_path / "old"
    old.write_text(text, encoding="utf-8")
    old.chmod(0o755)
    begin_ns = time.time_ns()
    while time.time_ns() < begin_ns + 20_000_000:  # the clock of files goes in steps of up to 10 ms
        time.sleep(0.01)
    if way == "written":
        launcher.write_text(text, encoding="utf-8")
        launcher.chmod(0o755)
        os.utime(launcher, (0, 0))
    elif way == "linked":
        launcher.symlink_to(old)
    elif way == "named":
        launcher.hardlink_to(old)
    else:
        old.rename(launcher)
    with pytest.raises(HostError, match="bin/mpirun was written after the run had begun"):
        find_launcher(tmp_path / "lib" / "libmpi.so.40", [], begin_ns)
    assert not began.exists()
