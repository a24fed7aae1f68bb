"""Which MPI library a program gets, as the loader binds it, and what that means for a run."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from apenet.base.errors import HostError, InputError
from apenet.host import inherited
from apenet.host.elf import contains, read_elf
from apenet.host.loading import Library, bound_libraries, interpreters
from apenet.host.toolchain import MPICH_NAME, environment_bin, search_path

MpiChoice = Literal["auto", "mpich", "openmpi", "intel"]
Family = Literal["mpich", "openmpi", "intel"]

_MPICH_SONAME = "libmpi.so.12"
_OF_INTEL = b"Intel(R) MPI Library"
_OF_OPENMPI = b"ompi_mpi_comm_world"
# The library of the C interface; those of Fortran and C++ lead to it.
_MPI_NAME = re.compile(r"lib(mpi|mpich|mpi_abi|mpi_(cray|gnu|intel)(_[0-9]+)?)\.so(\.[0-9]+)*")
_PRRTE_RELEASE = 5  # its launcher and library exchange other variables than those before
_FABRIC_NAME = re.compile(r"libfabric\.so(\.[0-9]+)*")


@dataclass(frozen=True)
class BoundMpi:
    """An MPI library that the loader binds to a program."""

    name: str
    """Its name in the program or in another library."""
    path: Path
    family: Family
    uses_libfabric: bool


def loader_variables(mpi: MpiChoice) -> dict[str, str]:
    """LD_LIBRARY_PATH of the ranks.

    Programs built with this environment's mpicc, or for MPICH under Debian's name, find this environment's MPICH
    unless they or the user lead elsewhere; with `mpi` = mpich unless the program's RPATH does.
    """
    theirs = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if folder]
    folder = environment_bin().parent / "lib"
    ours = [str(folder), str(MPICH_NAME.parent)]
    if mpi == "intel":
        theirs.insert(0, str(find_intel()))
    if mpi == "mpich":  # its wheel has a libfabric of its own
        ours.insert(1, str(folder / "mpich"))
    return {"LD_LIBRARY_PATH": os.pathsep.join([*ours, *theirs] if mpi == "mpich" else [*theirs, *ours])}


def refused_progress_threads(family: Family | None) -> dict[str, str]:
    """The variables of the user that start a progress thread in Intel MPI, with their values.

    While such a thread runs, the calls of Intel MPI wait by reading memory, which the order of threads cannot see.
    """
    if family != "intel":
        return {}
    values = {name: os.environ.get(name, "") for name in ("I_MPI_ASYNC_PROGRESS", "MPIR_CVAR_ASYNC_PROGRESS")}
    off = ("", "0", "no", "off", "false", "disable")
    return {name: value for name, value in values.items() if value.lower() not in off}


def bound_mpi(program: Path, variables: Mapping[str, str]) -> list[BoundMpi]:
    """The MPI libraries that the loader binds to this program, the one that serves its calls first.

    Empty for interpreters that load MPI later, and for what the loader of this host does not load.
    """
    libraries: list[Library] = []
    for file in interpreters(program, search_path()):
        libraries = bound_libraries(file, variables)
    return bound_among(libraries)


def bound_among(libraries: list[Library]) -> list[BoundMpi]:
    """The MPI libraries among these."""
    has_fabric = any(_FABRIC_NAME.fullmatch(library.name) for library in libraries)
    found = []
    for library in libraries:
        # Under Debian's name, the library of this package needs another one, which follows.
        if library.path is None or _MPI_NAME.fullmatch(library.name) is None or library.path == MPICH_NAME:
            continue
        family = _family(library.path)
        uses = has_fabric or family == "intel" or _has_fabric(library.path, family)
        found.append(BoundMpi(library.name, library.path, family, uses))
    return found


def _family(library: Path) -> Family:
    if contains(library, _OF_OPENMPI):
        return "openmpi"
    return "intel" if contains(library, _OF_INTEL) else "mpich"


def _has_fabric(library: Path, family: Family) -> bool:
    """Whether libfabric is a part of the library, or a component of Open MPI needs it."""
    if contains(library, b"\0fi_getinfo\0"):
        return True
    folder = library.resolve().parent
    patterns = ("openmpi*/mca_mtl_ofi.so", "openmpi*/lib/openmpi*/mca_mtl_ofi.so")
    return family == "openmpi" and any(next(folder.glob(pattern), None) is not None for pattern in patterns)


def choose_mpi(mpi: MpiChoice, program: Path, ranks: int) -> Family:
    """The MPI of a run: the asked one, or the one whose library the loader binds.

    MPICH for interpreters, scripts and unknown programs; Intel MPI, which has MPICH's ABI, if LD_LIBRARY_PATH finds
    it first. Raises InputError if the loader binds another one than asked, or one that has no libfabric.
    """
    try:
        bound = bound_mpi(program, _asked_variables(mpi))
    except HostError:  # the asked library is not there; it may not be the program's, either
        _refuse_other(mpi, program, bound_mpi(program, _asked_variables("auto")))
        raise
    if not bound:
        return (_first_in_path() or "mpich") if mpi == "auto" else mpi
    _refuse_other(mpi, program, bound)
    first = bound[0]
    if first.family == "mpich" and not first.uses_libfabric and ranks > 1:
        raise InputError("program", str(program), f"an MPI library with libfabric: {_no_fabric(first, mpi)}")
    return first.family if mpi == "auto" else mpi


def _refuse_other(mpi: MpiChoice, program: Path, bound: list[BoundMpi]) -> None:
    if bound and mpi != "auto" and (mpi == "openmpi") != (bound[0].family == "openmpi"):
        raise InputError("mpi", mpi, f"{bound[0].family}: the loader binds {program} to {bound[0].path}")


def _asked_variables(mpi: MpiChoice) -> dict[str, str]:
    preloaded = os.environ.get("LD_PRELOAD")
    return loader_variables(mpi) | ({} if preloaded is None else {"LD_PRELOAD": preloaded})


def _no_fabric(bound: BoundMpi, mpi: MpiChoice) -> str:
    what = f"the loader binds {bound.path}, whose messages would bypass the simulated network (MPICH with UCX alone)"
    if mpi != "mpich":
        return f"{what}; --mpi mpich puts this environment's MPICH in its place"
    return f"{what}; its RPATH leads there: link the program without it, or build it with this environment's mpicc"


def _library_path() -> list[Path]:
    return [Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if folder]


def _first_in_path() -> Family | None:
    first = next((folder for folder in _library_path() if (folder / _MPICH_SONAME).exists()), None)
    return "intel" if first is not None and _is_intel(first) else None


def _is_intel(folder: Path) -> bool:
    """Whether the library with MPICH's name in this folder is Intel MPI's."""
    return contains(folder / _MPICH_SONAME, _OF_INTEL)


def find_intel() -> Path:
    """The folder of Intel MPI's library: of I_MPI_ROOT, or in LD_LIBRARY_PATH."""
    root = os.environ.get("I_MPI_ROOT")
    of_root = [Path(root) / "lib", Path(root) / "lib" / "release"] if root else []
    found = next(filter(_is_intel, [*of_root, *_library_path()]), None)
    if found is None:
        raise HostError(
            f"Intel MPI: no folder of I_MPI_ROOT or LD_LIBRARY_PATH has its {_MPICH_SONAME}; install it (pip install "
            "impi-rt, in a separate environment) and let I_MPI_ROOT name that environment"
        )
    return found


def find_launcher(library: Path, folders: list[Path], begin_ns: int) -> Path:
    """The launcher that belongs to this library of Open MPI, or else the first of Open MPI in the folders.

    Debian has both MPICH's and Open MPI's in one folder, under names of their own. A rank names the library, so it
    chooses where the launcher is sought. Only a file that has stood there since before `begin_ns`, when no rank had
    started, is executed: no rank of this run has written it. Raises HostError if there is no launcher, or a later one.
    """
    above = [folder / "bin" for path in (library.resolve(), library) for folder in path.parents[:4] if folder.name]
    elf = read_elf(library)
    is_old = None if elf is None else any(name.startswith("libopen-rte.") for name in elf.needed)
    for folder in (*above, *folders):
        for name in ("mpirun", "mpirun.openmpi"):
            if _has_changed_since(folder / name, begin_ns):
                raise HostError(
                    f"Open MPI: {folder / name} was written after the run had begun, perhaps by a rank, and is not "
                    f"executed; expected the launcher of {library} as it was before the run"
                )
            release = openmpi_release(folder / name)
            if release is not None and is_old in (None, release < _PRRTE_RELEASE):
                return folder / name
    raise HostError(
        f"Open MPI: the mpirun of its release is neither with {library} nor in PATH; install it (Debian: openmpi-bin) "
        "and put its folder into PATH"
    )


def _has_changed_since(file: Path, begin_ns: int) -> bool:
    """Whether the file, or the link to it, got its content or its name later. Programs cannot set this time back."""
    try:
        return max(file.lstat().st_ctime_ns, file.stat().st_ctime_ns) >= begin_ns
    except OSError:  # there is no such file
        return False


@functools.lru_cache
def openmpi_release(mpirun: Path) -> int | None:
    """The release of Open MPI, its first number, whose launcher this is; None for another program or none."""
    if not mpirun.is_file():
        return None
    command = [str(mpirun), "--version"]
    asked = subprocess.run(command, env=inherited.environment(), capture_output=True, text=True, check=False)
    found = re.search(r"\(Open(?: MPI|RTE)\) ([0-9]+)\.", asked.stdout)
    return None if found is None else int(found[1])
