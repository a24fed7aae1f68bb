"""Compiles programs that use this package's libraries: the calls behind `apenet cc`."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from apenet.base.errors import HostError, InputError
from apenet.host.fortran import fortran_flags, module_flags
from apenet.host.toolchain import INCLUDE, LIBRARIES, PKG_CONFIG, search_path


@dataclass(frozen=True)
class Library:
    """A library that programs can link, as its pkg-config file describes it."""

    package: str
    """Its name for pkg-config, and that of its file."""
    summary: str
    definitions: tuple[str, ...]
    """The macros that its header requires."""


@cache
def libraries() -> dict[str, Library]:
    """The libraries by their names for `apenet cc`: those of their packages without `apenet-`."""
    found = {}
    for path in PKG_CONFIG.glob("*.pc"):
        lines = path.read_text(encoding="utf-8").splitlines()
        fields = dict(line.split(": ", maxsplit=1) for line in lines if ": " in line)
        definitions = tuple(flag for flag in fields["Cflags"].split() if flag.startswith("-D"))
        found[path.stem.removeprefix("apenet-")] = Library(path.stem, fields["Description"], definitions)
    return dict(sorted(found.items()))


# By the suffix of a source: the compiler, and MPI's wrapper of it.
_FORTRAN = "gfortran"
_COMPILERS = {
    **dict.fromkeys((".cpp", ".cc", ".cxx", ".C", ".c++"), ("c++", "mpicxx")),
    **dict.fromkeys((".f90", ".F90", ".f03", ".f08", ".f", ".F"), (_FORTRAN, _FORTRAN)),
}
_C = ("cc", "mpicc")


def flags(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options of compiler and linker for these libraries. Raises InputError for an unknown one."""
    known = libraries()
    for name in names:
        if name not in known:
            raise InputError("library", name, "one of " + ", ".join(known))
    linked = [f"-l{known[name].package}" for name in names]
    defined = [definition for name in names for definition in known[name].definitions]
    return [f"-I{INCLUDE}", *defined], [f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}", *linked] if linked else []


def command(
    arguments: Sequence[str], names: Sequence[str], *, mpi: bool = False, compiler: str | None = None
) -> list[str]:
    """The compiler's whole command for `arguments`, which are those of any C, C++ or Fortran compiler.

    The suffix of the first source decides the compiler; with `mpi` it is MPI's wrapper. What only compiles (-c) links
    nothing. gfortran gets the libraries' modules; with `mpi` mpif.h, mpi and mpi_f08.
    Raises InputError for an unknown library, HostError if there is no such compiler.
    """
    suffixes = [Path(argument).suffix for argument in arguments if not argument.startswith("-")]
    compilers = next((_COMPILERS[suffix] for suffix in suffixes if suffix in _COMPILERS), _C)
    wanted = compiler if compiler is not None else compilers[1 if mpi else 0]
    path = shutil.which(wanted, path=search_path())
    if path is None:
        hint = "; pip install mpich brings it" if compiler is None and mpi else ""
        raise HostError(f"{wanted}: no such compiler in PATH{hint}")
    compiling, linking = flags(names)
    if Path(wanted).name.startswith(_FORTRAN):
        files = [file for name in names if (file := INCLUDE / f"{name}.f90").exists()]
        parts = [module_flags(path, file) for file in files] + ([fortran_flags(path)] if mpi else [])
        for including, linked in parts:
            compiling, linking = [*including, *compiling], [*linked, *linking]
    if {"-c", "-S", "-E"} & set(arguments):
        return [path, *compiling, *arguments]
    return [path, *compiling, *arguments, *linking]


def compile_program(
    arguments: Sequence[str | Path], names: Sequence[str], *, mpi: bool = False, compiler: str | None = None
) -> None:
    """Runs the compiler. Raises HostError with what it said if it fails; otherwise as command()."""
    wanted = command([str(argument) for argument in arguments], names, mpi=mpi, compiler=compiler)
    made = subprocess.run(wanted, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise HostError(f"{' '.join(wanted)}\n{made.stderr.strip()}")
