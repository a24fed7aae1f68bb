"""Compiles programs that use this package's libraries: the calls behind `apenet cc`."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from apenet.base.errors import HostError, InputError
from apenet.host.fortran import fortran_flags, module_flags
from apenet.host.toolchain import INCLUDE, LIBRARIES, search_path

PACKAGES = {
    "am": "apenet-am",
    "apelib": "apelib",
    "extoll": "apenet-extoll",
    "gasnet-par": "gasnet-par",
    "gasnet-parsync": "gasnet-parsync",
    "gasnet-seq": "gasnet-seq",
    "qmp": "qmp",
    "rdma": "apenet-rdma",
    "tnw": "apenet-tnw",
    "udp": "apenet-udp",
}
"""The libraries that programs can link, and their pkg-config packages, which are also the names of their files."""

# What a library's header must find defined.
_DEFINITIONS = {f"gasnet-{mode}": f"-DGASNET_{mode.upper()}" for mode in ("par", "parsync", "seq")}

# By the suffix of a source: the compiler, and MPI's wrapper of it.
_FORTRAN = "gfortran"
_COMPILERS = {
    **dict.fromkeys((".cpp", ".cc", ".cxx", ".C", ".c++"), ("c++", "mpicxx")),
    **dict.fromkeys((".f90", ".F90", ".f03", ".f08", ".f", ".F"), (_FORTRAN, _FORTRAN)),
}
_C = ("cc", "mpicc")
_FORTRAN_MODULES = {"apelib": "apelib.f90"}


def flags(libraries: Sequence[str]) -> tuple[list[str], list[str]]:
    """What a compiler and a linker need for these libraries. Raises InputError for an unknown one."""
    for library in libraries:
        if library not in PACKAGES:
            raise InputError("library", library, "one of " + ", ".join(PACKAGES))
    linked = [f"-l{PACKAGES[library]}" for library in libraries]
    defined = [_DEFINITIONS[library] for library in libraries if library in _DEFINITIONS]
    return [f"-I{INCLUDE}", *defined], [f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}", *linked] if linked else []


def command(
    arguments: Sequence[str], libraries: Sequence[str], *, mpi: bool = False, compiler: str | None = None
) -> list[str]:
    """The compiler's whole command for `arguments`, which are those of any C, C++ or Fortran compiler.

    The suffix of the first source decides the compiler; with `mpi` it is MPI's wrapper. What only compiles (-c) links
    nothing. gfortran gets the libraries' modules; with `mpi` mpif.h, mpi and mpi_f08.
    Raises InputError for an unknown library, HostError if there is no such compiler.
    """
    suffixes = [Path(argument).suffix for argument in arguments if not argument.startswith("-")]
    names = next((_COMPILERS[suffix] for suffix in suffixes if suffix in _COMPILERS), _C)
    wanted = compiler if compiler is not None else names[1 if mpi else 0]
    path = shutil.which(wanted, path=search_path())
    if path is None:
        hint = "; pip install mpich brings it" if compiler is None and mpi else ""
        raise HostError(f"{wanted}: no such compiler in PATH{hint}")
    compiling, linking = flags(libraries)
    if Path(wanted).name.startswith(_FORTRAN):
        files = [INCLUDE / _FORTRAN_MODULES[name] for name in libraries if name in _FORTRAN_MODULES]
        parts = [module_flags(path, file) for file in files] + ([fortran_flags(path)] if mpi else [])
        for including, linked in parts:
            compiling, linking = [*including, *compiling], [*linked, *linking]
    if {"-c", "-S", "-E"} & set(arguments):
        return [path, *compiling, *arguments]
    return [path, *compiling, *arguments, *linking]


def compile_program(
    arguments: Sequence[str | Path], libraries: Sequence[str], *, mpi: bool = False, compiler: str | None = None
) -> None:
    """Runs the compiler. Raises HostError with what it said if it fails; otherwise as command()."""
    wanted = command([str(argument) for argument in arguments], libraries, mpi=mpi, compiler=compiler)
    made = subprocess.run(wanted, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise HostError(f"{' '.join(wanted)}\n{made.stderr.strip()}")
