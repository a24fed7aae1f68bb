"""Findings of `apenet doctor -- PROGRAM`: the libraries that the loader binds, and how a run will treat them."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from apenet.base.errors import ApenetError
from apenet.host.elf import Elf, contains, read_elf
from apenet.host.loading import Library, bound_libraries, interpreters
from apenet.host.mpi_library import BoundMpi, bound_among, choose_mpi, find_launcher, loader_variables
from apenet.host.toolchain import MPICH_NAME, PROVIDER, environment_bin, find_program, search_path
from apenet.run.doctor import Diagnosis, Finding

_PATIENCE_S = 20
_RANKS = 2  # a run of one rank sends nothing

_PYTHON = re.compile(r"python[0-9.]*t?")
_SANITIZER = re.compile(r"lib(asan|hwasan|lsan|tsan|ubsan|clang_rt\.)")
_LANGUAGES = (
    ("Fortran", re.compile(r"lib(gfortran|mpi_mpifh|mpi_usempi\w*|mpifort|mpichfort|ifcore\w*|flang\w*)(-[\w]+)?\.so")),
    ("C++", re.compile(r"lib(stdc\+\+|c\+\+|mpi_cxx|mpicxx|mpichcxx)\.so")),
    ("Python", re.compile(r"libpython[0-9.]+t?\.so")),
    ("Java", re.compile(r"lib(jli|jvm)\.so")),
)
_THREADS = re.compile(r"lib(gomp|omp|iomp5|tbb)\.so")

_ASK_VERSION = """
import ctypes, sys
text, length = ctypes.create_string_buffer(1 << 14), ctypes.c_int()
ctypes.CDLL(sys.argv[1]).MPI_Get_library_version(text, ctypes.byref(length))
print(" ".join(text.value.decode("utf-8", "replace").splitlines()[0].split()))
"""

# The extension modules of mpi4py that an interpreter finds; it does not import them.
_ASK_MPI4PY = """
import importlib.util, pathlib
found = importlib.util.find_spec("mpi4py")
for folder in (found.submodule_search_locations if found else ()):
    for file in sorted(pathlib.Path(folder).glob("MPI.*so")):
        print(file)
"""


def examine_program(command: Sequence[str]) -> Diagnosis:
    """Examines a program without running it. The diagnosis is healthy if a run is expected to work."""
    try:
        program = find_program(command[0])
    except ApenetError as error:
        return Diagnosis((Finding("bad", "program", str(error)),))
    *scripts, last = interpreters(program, search_path())
    findings = [Finding("ok", "program", " -> ".join(map(str, (*scripts, last)))), *_rights(program)]
    elf = read_elf(last)
    refused = _refused(last, elf)
    if elf is None or refused is not None:
        return Diagnosis((*findings, Finding("bad", "kind", refused or "")))
    libraries = bound_libraries(last, _variables(), elf)
    findings.append(Finding("ok", "kind", f"{elf.machine}, dynamic, loaded by {elf.interpreter}"))
    findings += _missing(libraries)
    findings += _language(last, libraries)
    findings += _threads(last, libraries)
    findings += _search(elf)
    findings += _mpi(program, last, bound_among(libraries), libraries)
    return Diagnosis(tuple(findings))


def _variables() -> dict[str, str]:
    preloaded = os.environ.get("LD_PRELOAD")
    return loader_variables("auto") | ({} if preloaded is None else {"LD_PRELOAD": preloaded})


def _rights(program: Path) -> Iterator[Finding]:
    status = program.stat()
    changes_user = status.st_mode & stat.S_ISUID and status.st_uid != os.geteuid()
    changes_group = status.st_mode & stat.S_ISGID and status.st_gid != os.getegid()
    has_capability = "security.capability" in os.listxattr(program)
    if changes_user or changes_group or has_capability:
        yield Finding("bad", "rights", "setuid, setgid or file capabilities: the loader ignores LD_PRELOAD, so no shim")


def _refused(file: Path, elf: Elf | None) -> str | None:
    """Why no run of this file can work."""
    if elf is None:
        return f"{file}: neither a 64-bit program of this kind of host nor a script whose interpreter was found"
    own = read_elf(PROVIDER)
    if own is not None and elf.machine != own.machine:
        return f"for {elf.machine}, but this host's libraries are for {own.machine}"
    if elf.interpreter is None:
        return "linked statically: nothing can be preloaded into it; link it dynamically"
    if not Path(elf.interpreter).exists():
        return f"its loader {elf.interpreter} is missing on this host"
    if "musl" in elf.interpreter:
        return f"its loader {elf.interpreter} is musl's; the shim needs the GNU C library"
    return None


def _missing(libraries: Sequence[Library]) -> Iterator[Finding]:
    missing = [library.name for library in libraries if library.path is None]
    if missing:
        yield Finding("bad", "libraries", f"the loader does not find {', '.join(missing)}: see LD_LIBRARY_PATH")


def _language(file: Path, libraries: Sequence[Library]) -> Iterator[Finding]:
    if contains(file, b"Go build ID: ") or contains(file, b"\xff Go buildinf:"):
        text = "Go: its runtime asks the kernel for the time, and starts programs, by system calls past the shim"
        yield Finding("bad", "language", text)
        return
    found = [name for name, pattern in _LANGUAGES if any(pattern.match(library.name) for library in libraries)]
    if _PYTHON.fullmatch(file.name) and "Python" not in found:
        found.append("Python")
    yield Finding("ok", "language", ", ".join(found) or "C, or one that needs no library of its own")


def _threads(file: Path, libraries: Sequence[Library]) -> Iterator[Finding]:
    openmp = [library.name for library in libraries if _THREADS.match(library.name)]
    if openmp:
        yield Finding("note", "threads", f"{', '.join(openmp)}: one thread a rank unless OMP_NUM_THREADS is set")
    if contains(file, b"\0MPI_Init_thread\0"):
        yield Finding(
            "note",
            "threads",
            "may ask for threads in MPI; threads that tell each other by memory alone need not repeat",
        )
    sanitizers = [library.name for library in libraries if _SANITIZER.match(library.name)]
    if sanitizers:
        yield Finding("note", "sanitizer", f"{', '.join(sanitizers)}: loaded before the shim")


def _search(elf: Elf) -> Iterator[Finding]:
    if elf.rpath and not elf.runpath:
        yield Finding("note", "RPATH", f"{elf.rpath}: searched before LD_LIBRARY_PATH, also for MPI")


def _mpi(program: Path, file: Path, bound: list[BoundMpi], libraries: Sequence[Library]) -> Iterator[Finding]:
    if not bound and _PYTHON.fullmatch(file.name):
        yield from _mpi4py(file)
    if not bound:
        yield Finding(
            "note",
            "MPI library",
            "none is bound at the start; a run serves the one whose MPI_Init is called, if that is a library",
        )
        return
    for library in bound:
        yield Finding("ok", "MPI library", f"{library.name}: {library.path}, {_version(library.path)}")
    if len({library.path for library in bound}) > 1:
        yield Finding("bad", "MPI library", f"several in one process: {bound[0].path} serves the calls of all")
    try:
        choose_mpi("auto", program, _RANKS)
    except ApenetError as error:
        yield Finding("bad", "network", str(error))
        return
    yield _network(libraries, bound[0])
    yield from _done(bound[0], libraries)


def _network(libraries: Sequence[Library], bound: BoundMpi) -> Finding:
    fabric = next((str(library.path) for library in libraries if library.name.startswith("libfabric.so")), None)
    if fabric is not None:
        return Finding("ok", "network", f"{fabric}, with the provider apenet")
    if bound.uses_libfabric:
        return Finding("ok", "network", "libfabric by a part of the MPI library, with the provider apenet")
    return Finding("bad", "network", "this MPI library has no libfabric: its messages would bypass the network")


def _done(bound: BoundMpi, libraries: Sequence[Library]) -> Iterator[Finding]:
    """The treatment of this library by a run."""
    if bound.family == "openmpi":
        folders = [environment_bin(), *map(Path, search_path().split(os.pathsep))]
        try:
            launcher = find_launcher(bound.path, folders, time.time_ns())
            yield Finding("ok", "apenet run", f"starts {launcher} for MPI_Init")
        except ApenetError as error:
            yield Finding("bad", "apenet run", str(error))
    elif any(library.path == MPICH_NAME for library in libraries):
        yield Finding("note", "apenet run", f"puts {bound.path} in the place of libmpich.so.12 (the same ABI)")
    else:
        yield Finding("ok", "apenet run", f"is its process manager (PMI-1), as for --mpi {bound.family}")


def _version(library: Path) -> str:
    """The library's own version text. Loads it in another process."""
    return _asked([sys.executable, "-c", _ASK_VERSION, str(library)], loader_variables("auto")) or "version unknown"


def _mpi4py(interpreter: Path) -> Iterator[Finding]:
    modules = _asked([str(interpreter), "-c", _ASK_MPI4PY], {}).splitlines()
    if not modules:
        yield Finding("note", "mpi4py", f"{interpreter} finds none")
    for module in modules:
        bound = bound_among(bound_libraries(Path(module), _variables()))
        leads = ", ".join(str(library.path) for library in bound) or "opens its MPI library when it is imported"
        yield Finding("ok", "mpi4py", f"{module}: {leads}")


def _asked(command: list[str], variables: dict[str, str]) -> str:
    if shutil.which(command[0]) is None:
        return ""
    try:
        done = subprocess.run(
            command, env={**os.environ, **variables}, capture_output=True, check=False, timeout=_PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace").strip()
