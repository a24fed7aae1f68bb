"""Finds what a run needs on the host: this package's libraries, programs, a compiler for MPI programs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath

from apenet import _core
from apenet.base.errors import HostError, InputError
from apenet.base.infiles import other_kind
from apenet.host.caching import cached, is_whole, make_cache, seal

PACKAGE = Path(_core.__file__).parent
LIBRARIES = PACKAGE / "lib"
SHIM = LIBRARIES / "libapenet-shim.so"
SOCKETS = LIBRARIES / "libapenet-sockets.so"
PROVIDER = LIBRARIES / "libapenet-fi.so"
MPICH_NAME = LIBRARIES / "mpich" / "libmpich.so.12"  # MPICH's library under Debian's name for it
LAUNCHER_NAMES = LIBRARIES / "libapenet-launcher.so"  # gives Open MPI's launcher the host's names
CUDA = LIBRARIES / "libapenet-cuda.so"
SUPERVISOR = LIBRARIES / "apenet-supervisor"
INCLUDE = PACKAGE / "include"
PKG_CONFIG = LIBRARIES / "pkgconfig"

_LAUNCHERS = frozenset(
    (
        "mpiexec",
        "mpirun",
        "mpiexec.hydra",
        "mpiexec.mpich",
        "mpiexec.openmpi",
        "mpirun.mpich",
        "mpirun.openmpi",
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
    path = Path(found or name)
    kind = other_kind(path) if found is not None or "/" in name else None
    if found is not None and kind is None:
        return path.absolute()
    if kind is not None:
        raise InputError("program", name, f"an executable file, not {kind}")
    if os.path.isfile(path):  # noqa: PTH113 (which raises for names that are too long)
        hint = f": python {name}" if path.suffix == ".py" else f"; try ./{name}" if "/" not in name else ""
        raise InputError("program", name, f"an executable file (this one is not executable or not in PATH){hint}")
    raise InputError("program", name, "a program in PATH, or the path of one")


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
    """A program made from these files and from what `of` says, compiled unless the user's cache folder has it.

    A damaged one is compiled again.
    """
    content = b"\0".join([*(source.read_bytes() for source in sources), of, bytes(PACKAGE)])
    target = cached(f"{name}-{hashlib.sha256(content).hexdigest()[:16]}")
    if is_whole(target):
        return target
    make_cache()
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        compile_to(partial)
        seal(partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target
