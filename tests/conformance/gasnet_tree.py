"""Runs the test programs of a GASNet-1 source tree over this package's libgasnet, unmodified.

    python tests/conformance/gasnet_tree.py SOURCE BUILD

SOURCE is a tree of GASNet 1.x; BUILD the folder in which it was configured (any conduit), with libgasnet_tools-seq.a
and libgasnet_tools-par.a made. The exit status is 1 if a program fails, ends by a signal or not within its time.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from apenet.base.errors import HostError
from apenet.host.compiling import compile_program

MACHINE = "extoll-64"
RANKS = 2
TIME_LIMIT_S = 240


@dataclass(frozen=True)
class Program:
    """A test program: its arguments, the builds in which it exists, and options of `apenet run`."""

    name: str
    arguments: tuple[str, ...] = ()
    modes: tuple[str, ...] = ("seq", "par")
    options: tuple[str, ...] = ()


PROGRAMS = (
    Program("testhello"),
    Program("testalign"),
    Program("testcore1", ("20",)),
    Program("testcore2", ("2", "65536")),
    Program("testcore3"),
    Program("testcore4", ("2", "65536")),
    Program("testam", ("20", "8192")),
    Program("testbarrier", ("20",)),
    Program("testbarrierconf"),
    # It calibrates a delay by the clock.
    Program("testbarrierlate", ("20",), options=("--compute", "measured")),
    Program("testenv", ("GASNet", "is", "Global Address Space Networking")),
    Program("testhsl", ("0",)),
    Program("testlarge", ("20", "8192")),
    Program("testlogGP", ("20", "1", "8", "1024"), options=("--compute", "measured")),
    Program("testmemset", ("20",)),
    Program("testmisc", ("20",)),
    Program("testnbr", ("2", "1")),
    Program("testqueue", ("20", "16", "1024")),
    Program("testrand", ("20",)),
    Program("testslice"),
    Program("testsmall", ("20", "8192")),
    Program("testval", ("20",)),
    Program("testthreads", ("-i", "5", "2"), ("par",)),
    Program("testcontend", ("2", "20"), ("par",)),
    Program("testlockcontend", ("2", "20"), ("par",)),
)


def build(program: Program, mode: str, source: Path, built: Path, folder: Path) -> Path:
    """Compiles a test. Raises HostError."""
    target = folder / f"{program.name}-{mode}"
    tests = source / "tests"
    compile_program(
        [
            *("-std=gnu99", "-w", "-O2", "-D_GNU_SOURCE"),
            *(f"-I{path}" for path in (tests, built, source, source / "other")),
            *(tests / f"{program.name}.c", tests / "delay.c", built / f"libgasnet_tools-{mode}.a"),
            *("-o", target, "-lm", "-lpthread"),
        ],
        [f"gasnet-{mode}"],
    )
    return target


def run(program: Program, executable: Path) -> str:
    """Runs it. Returns why it failed, or nothing."""
    command = ["apenet", "run", "-n", str(RANKS), "--machine", MACHINE, *program.options, "--", executable]
    environment = {**os.environ, "GASNET_DUMMY": "GASNet dummy value"}
    try:
        done = subprocess.run(
            [*command, *program.arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=TIME_LIMIT_S,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return f"no end within {TIME_LIMIT_S} s"
    said = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line or "FATAL" in line]
    if done.returncode == 0 and not said:
        return ""
    return (said or done.stderr.splitlines() or [f"status {done.returncode}"])[0][:120]


def main() -> int:
    """Builds and runs all programs, and prints a line for each."""
    parser = argparse.ArgumentParser(description="Runs the tests of a GASNet-1 tree over this package's libgasnet")
    parser.add_argument("source", type=Path)
    parser.add_argument("build", type=Path)
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="apenet-") as folder:
        for program in PROGRAMS:
            for mode in program.modes:
                try:
                    why = run(program, build(program, mode, arguments.source, arguments.build, Path(folder)))
                except HostError as error:
                    why = f"does not compile: {str(error).splitlines()[-1]}"
                failed += why != ""
                print(f"{program.name:<16} {mode:<4} {'failed: ' + why if why else 'passed'}", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
