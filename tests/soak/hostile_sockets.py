"""Runs programs with sockets in hostile surroundings: stdout, stderr, status and files must be equal.

    .venv/bin/python tests/soak/hostile_sockets.py [--minutes 60] [--repeats 4] [--only NAME ...]

Each repeat is a plain run and five hostile ones, so the default gives 20 hostile runs of each program. Programs in Go
need its compiler.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from cases import CONFORMANCE, ROOT, Case, chosen
from hostile_threads import SURROUNDINGS

from soak import soak

SOCKETS = ROOT / "tests" / "native" / "sockets"
PYTHON = shutil.which("python3", path="/usr/bin") or sys.executable
GO = shutil.which("go")


def python(name: str, program: str, *arguments: str, ranks: int = 2, machine: str = "ape16") -> Case:
    """A program for the system's Python: that of an environment is a shell script's child."""
    return Case(name, ranks, Path(PYTHON), (str(SOCKETS / program), *arguments), ("--ip",), machine=machine)


def of_several(name: str, program: Path, first: tuple[str, ...], others: tuple[str, ...], count: int) -> Case:
    """Rank 0 with its arguments, and `count` further ranks of the same program with others."""
    arguments = (*first, ":", "-n", str(count), str(program), *others)
    return Case(name, 1, program, arguments, ("--ip",), machine="my-cluster")


def cases(folder: Path) -> list[Case]:
    """All cases; compiles their programs into the folder."""
    for source in ("stream.c", "readiness.c", "all_to_all.c"):
        subprocess.run(["gcc", "-O1", "-o", folder / source[:-2], SOCKETS / source], check=True)
    found = [
        *(
            Case(f"stream-{m}", 2, folder / "stream", ("300000",), ("--ip",), machine=m)
            for m in ("ape16", "my-cluster")
        ),
        *(Case(f"readiness-{m}", 2, folder / "readiness", (), ("--ip",), machine=m) for m in ("ape16", "my-cluster")),
        *(
            Case(f"all-to-all-{ranks}", ranks, folder / "all_to_all", (size,), ("--ip",), machine="ape128")
            for ranks, size in ((2, "100000"), (16, "10000"), (64, "1000"))
        ),
        Case("lossy", 4, folder / "all_to_all", ("100000",), ("--ip", "--set", "software.ip.loss_probability=0.01")),
        python("web", "web.py"),
        python("asyncio-2", "many.py", "100"),
        python("asyncio-300", "many.py", "300", machine="my-cluster"),
        python("interrupted", "interrupted.py", ranks=1),
        *(
            of_several(how, Path(PYTHON), *2 * ((str(SOCKETS / "forking.py"), how),), 2)
            for how in ("forks", "workers", "killed")
        ),
        of_several("heirs", Path(PYTHON), *2 * ((str(SOCKETS / "heirs.py"),),), 1),
        Case("openmpi", 4, CONFORMANCE / "c" / "requests.c", (), ("--ip",), openmpi=True),
        Case("mpi-beside", 2, SOCKETS / "beside_mpi.c", ("too",), ("--ip",)),
    ]
    if GO is not None:
        subprocess.run([GO, "build", "-o", folder / "web", SOCKETS / "web.go"], cwd=folder, check=True)
        found += [of_several(f"go-{count}", folder / "web", ("server",), ("client",), count) for count in (1, 3, 8, 15)]
    return found


def main() -> int:
    """Reads the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--only", nargs="*", default=[], help="names of cases")
    options = parser.parse_args()
    os.environ.update(OMPI_MCA_btl="tcp,self")  # MPI over sockets, too
    with tempfile.TemporaryDirectory() as folder:
        return (
            1 if soak(chosen(options.only, cases(Path(folder))), options.repeats, options.minutes, SURROUNDINGS) else 0
        )


if __name__ == "__main__":
    sys.exit(main())
