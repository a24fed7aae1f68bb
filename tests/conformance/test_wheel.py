"""The package for other hosts: built by `make wheel`, installed in an environment of its own. Only with --whole.

That for aarch64 is built and read, but not run.
"""

import functools
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
OLDEST = (2, 28)
MACHINES = {"x86_64": 62, "aarch64": 183}  # the numbers of <elf.h>


@functools.cache
def made_for(processor):
    for old in (ROOT / "dist").glob(f"apenet-*_{processor}.whl"):
        old.unlink()
    subprocess.run(["make", "wheel", f"PROCESSOR={processor}"], cwd=ROOT, check=True)
    (made,) = (ROOT / "dist").glob(f"apenet-*manylinux_2_28_{processor}.whl")
    return made


@pytest.fixture(scope="module")
def wheel():
    return made_for("x86_64")


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", with_pip=True)
    subprocess.run([folder / "venv/bin/pip", "install", "--quiet", wheel], check=True, cwd=folder)
    return folder


@pytest.fixture(scope="module", params=MACHINES)
def processor(request):
    return request.param


@pytest.fixture(scope="module")
def libraries(processor, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(made_for(processor)) as packed:
        packed.extractall(folder)
    return sorted(path for path in folder.rglob("*") if ".so" in path.name or path.parent.name in ("bin", "lib"))


def symbols(library, *options):
    listed = subprocess.run(["nm", "--dynamic", *options, library], capture_output=True, text=True, check=True)
    return [line.split()[-1] for line in listed.stdout.splitlines()]


def compiled(libraries):
    return [path for path in libraries if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]


def test_every_library_is_for_the_processor(libraries, processor):
    assert {int.from_bytes(path.read_bytes()[18:20], "little") for path in compiled(libraries)} == {MACHINES[processor]}


def test_no_library_needs_a_newer_c_library(libraries):
    programs = compiled(libraries)
    assert len(programs) > 10
    for program in programs:
        for symbol in symbols(program, "--undefined-only"):
            _, at, version = symbol.partition("@GLIBC_")
            assert not at or tuple(map(int, version.split(".")[:2])) <= OLDEST, (program.name, symbol)


def test_no_library_replaces_what_a_program_has_of_the_c_plus_plus_library(libraries):
    """Its allocation and exceptions would be the whole program's. The shim means to be asked for guards of statics."""
    hidden = ("_Zn", "_Zd", "__cxa", "_Unwind", "_ZNSt")
    meant = {"libapenet-shim.so": {"__cxa_guard_abort", "__cxa_guard_acquire", "__cxa_guard_release"}}
    for library in (path for path in libraries if ".so" in path.name and not path.name.startswith("_core")):
        found = {name for name in symbols(library, "--defined-only") if name.startswith(hidden)}
        assert found == meant.get(library.name, set()), library.name


def test_programs_run_as_with_the_package_of_this_host(installed, apenet, build):
    program = build(ROOT / "examples/01_pingpong/pingpong.c")
    here = apenet("run", "-n", "2", "--machine", "ape128", "--", program)
    command = [installed / "venv/bin/apenet", "run", "-n", "2", "--machine", "ape128", "--", program]
    there = subprocess.run(command, capture_output=True, text=True, cwd=installed, check=True)
    assert there.stdout == here.stdout
    assert there.stderr.splitlines()[0] == here.stderr.splitlines()[0]


def test_examples_run_where_they_were_copied(installed):
    tools = installed / "venv/bin"
    subprocess.run([tools / "apenet", "examples", "copy", "02"], cwd=installed, check=True)
    command = [tools / "apenet", "run", "-n", "16", "-m", "ape16", "--", "python", "examples/02_jacobi/jacobi.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=installed, check=True)
    assert "largest value              2.724242e-03" in done.stdout


@pytest.mark.parametrize("case", ["cancel", "jump"])
def test_threads_that_leave_a_sleep_are_unwound(installed, build, case):
    """The C library unwinds a cancelled thread through the shim's frames."""
    program = build(ROOT / "tests/conformance/threads/sleeping.c")
    done = subprocess.run(
        [installed / "venv/bin/apenet", "run", "-n", "2", "--", program, case], cwd=installed, check=False
    )
    assert done.returncode == 0


@pytest.mark.skipif(shutil.which("cargo") is None, reason="the stack is compiled by cargo")
def test_it_has_the_sockets_of_the_nodes(installed):
    python = shutil.which("python3", path="/usr/bin") or sys.executable
    serve = "import socket; print(socket.create_server(('', 70)).accept()[0].recv(9))"
    ask = "import socket, time; time.sleep(1); socket.create_connection(('node0', 70)).send(b'hello')"
    command = ["run", "--ip", "-n", "1", "--", python, "-c", serve, ":", "-n", "1", python, "-c", ask]
    done = subprocess.run(
        [installed / "venv/bin/apenet", *command], cwd=installed, check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, "b'hello'\n"), done.stderr
