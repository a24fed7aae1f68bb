"""Fortran's modules of the libraries, and of MPI: the wheel of MPICH has none, so mpif.h, mpi and mpi_f08 are written.

All are built once, into the user's cache folder. What is there depends on its sources and on the compiler, whose .mod
files only the same version reads.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from apenet.base.errors import HostError
from apenet.host.caching import cached, is_whole_folder, make_cache, seal_folder
from apenet.host.fortran_modules import module_mpi, module_mpi_f08, mpif_h
from apenet.host.fortran_shims import shims
from apenet.host.mpi_header import read_constants, read_prototypes
from apenet.host.toolchain import find_mpicc

_LIBRARY = "apenet-mpifort"
# Programs pass buffers of several types to one call, which gfortran would refuse where mpif.h has no interfaces.
_RELAXED = "-fallow-argument-mismatch"
_OPTIONS = ("-O2", "-w", "-fPIC", "-ffree-line-length-none")


def fortran_flags(gfortran: str) -> tuple[list[str], list[str]]:
    """The options of this compiler and its linker for MPI. Builds the missing library.

    Raises HostError if MPICH is missing, or if its headers are not understood.
    """
    mpicc = find_mpicc()
    including, linking = _mpi_flags(mpicc)
    folder = _built(gfortran, mpicc, including)
    return [_RELAXED, f"-I{folder}", *including], [f"-L{folder}", f"-l{_LIBRARY}", *linking]


def _mpi_flags(mpicc: Path) -> tuple[list[str], list[str]]:
    shown = subprocess.run([mpicc, "-show"], capture_output=True, text=True, check=False)
    flags = shlex.split(shown.stdout)[1:]
    including = [flag for flag in flags if flag.startswith("-I")]
    if shown.returncode != 0 or not any((Path(flag[2:]) / "mpi_proto.h").exists() for flag in including):
        raise HostError(f"{mpicc}: expected the compiler of MPICH 4.3 or later: Fortran is built for its headers")
    return including, [flag for flag in flags if flag not in including]


def module_flags(gfortran: str, source: Path) -> tuple[list[str], list[str]]:
    """The options of this compiler and its linker for the module in this file. Builds it if it is missing."""
    name = f"apenet-{source.stem}-module"

    def build(folder: Path) -> None:
        _make([gfortran, *_OPTIONS, "-std=f2008", "-c", str(source), "-o", "module.o"], folder)
        _make(["ar", "crs", f"lib{name}.a", "module.o"], folder)

    folder = _once([_version(gfortran), source.read_bytes()], build)
    return [f"-I{folder}"], [f"-L{folder}", f"-l{name}"]


def _built(gfortran: str, mpicc: Path, including: Sequence[str]) -> Path:
    """The folder with mpif.h, the modules and the library."""
    headers = next(path for flag in including if (path := Path(flag[2:]), (path / "mpi_proto.h").exists())[1])

    def build(folder: Path) -> None:
        prototypes = read_prototypes(headers / "mpi_proto.h")
        constants = read_constants(headers / "mpi.h", mpicc)
        texts = {
            "mpif.h": mpif_h(constants),
            "shims.c": shims(prototypes),
            "mpi.f90": module_mpi(prototypes, constants),
            "mpi_f08.f90": module_mpi_f08(prototypes, constants),
        }
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        _make([str(mpicc), "-O2", "-w", "-fPIC", "-c", "shims.c"], folder)
        for name in ("mpi", "mpi_f08"):
            _make([gfortran, *_OPTIONS, "-c", f"{name}.f90"], folder)
        _make(["ar", "crs", f"lib{_LIBRARY}.a", "shims.o", "mpi.o", "mpi_f08.o"], folder)

    sources = [Path(__file__).with_name(f"{name}.py") for name in _SOURCES]
    sources += [headers / name for name in ("mpi.h", "mpi_proto.h")]
    return _once([_version(gfortran), *(source.read_bytes() for source in sources)], build)


def _version(gfortran: str) -> bytes:
    return subprocess.run([gfortran, "--version"], capture_output=True, check=False).stdout


def _once(content: Sequence[bytes], build: Callable[[Path], None]) -> Path:
    """A folder of the cache that `build` has filled; the name depends on what it is made of.

    A damaged folder is replaced.
    """
    digest = hashlib.sha256(b"\0".join(content)).hexdigest()
    target = cached(f"fortran-{digest[:16]}")
    if is_whole_folder(target):
        return target
    make_cache()
    folder = Path(tempfile.mkdtemp(prefix=".fortran-", dir=target.parent))
    try:
        build(folder)
        seal_folder(folder)
        if not is_whole_folder(target):  # another process may have been faster: its folder has the same content
            damaged = folder.with_name(f"{folder.name}.damaged")
            with suppress(OSError):
                os.rename(target, damaged)  # noqa: PTH104 (of a folder)
            with suppress(OSError):
                os.rename(folder, target)  # noqa: PTH104 (which must not replace a folder)
            shutil.rmtree(damaged, ignore_errors=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return target


_SOURCES = ("mpi_header", "fortran_shims", "fortran_modules", "fortran")


def _make(command: list[str], folder: Path) -> None:
    made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise HostError(f"a module of Fortran could not be built: {shlex.join(command)}\n{made.stderr.strip()[:4000]}")
