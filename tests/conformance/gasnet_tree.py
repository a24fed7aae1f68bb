"""Runs the test programs of a GASNet-1 source tree, unmodified, over libgasnet and over the tree's own GASNet.

    python tests/conformance/gasnet_tree.py SOURCE BUILD [--only NAME...] [--over libgasnet|conduit]
      [--modes seq|par|parsync]

SOURCE is a tree of GASNet 1.x; BUILD the folder in which it was configured (any conduit), with libgasnet_tools-seq.a
and libgasnet_tools-par.a made. The tree's own GASNet is built with src/api/gasnet/extoll-conduit. The exit status is 1
if a program fails, ends by a signal or not within its time.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from apenet.base.errors import HostError
from apenet.host.compiling import compile_program, flags

MACHINE = "extoll-64"
RANKS = 2
TIME_LIMIT_S = 240
CONDUIT = Path(__file__).parents[2] / "src" / "api" / "gasnet" / "extoll-conduit"
OVER = ("libgasnet", "conduit")
MODES = ("seq", "par", "parsync")
# gasnett_backtrace_user is defined by testgasnet and by the tools, which old compilers let pass.
COMMON = ("-std=gnu99", "-w", "-O2", "-D_GNU_SOURCE", "-Wl,--allow-multiple-definition")
LIBRARIES = ("-lm", "-lpthread")


@dataclass(frozen=True)
class Program:
    """A test program: its arguments, the builds in which it exists, options of `apenet run`, and the wanted status."""

    name: str
    arguments: tuple[str, ...] = ()
    modes: tuple[str, ...] = MODES
    options: tuple[str, ...] = ()
    status: int = 0

    def over(self, library: str) -> Program:
        """The program for libgasnet or the conduit: some are much slower over Active Messages alone."""
        arguments = CONDUIT_ARGUMENTS.get(self.name, self.arguments) if library == "conduit" else self.arguments
        return replace(self, arguments=arguments)


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
    Program("testgasnet"),
    *(
        Program("testexit", (str(number),), modes=("seq",), status=number)
        for number in (1, 2, 3, 6, 7, 8, 10, 11, 12, 13)
    ),
    *(Program("testexit", (str(number),), modes=("par",), status=number) for number in (14, 15, 17, 18)),
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


# Where every put and get of extended-ref is a message, or many, fewer of them do.
CONDUIT_ARGUMENTS = {
    "testalign": ("20", "8192"),
    "testqueue": ("5", "8", "512"),
    "testrand": ("5",),
}


@dataclass(frozen=True)
class Tree:
    """A source tree, the folder in which it was configured, and the one of what is built here."""

    source: Path
    built: Path
    target: Path

    def build_conduit(self) -> None:
        """Builds GASNet over extoll-conduit. Raises HostError."""
        variables = [f"GASNET_SRC={self.source}", f"GASNET_BUILD={self.built}", f"OUT={self.target}"]
        done = subprocess.run(["make", "-C", CONDUIT, *variables], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise HostError(f"extoll-conduit does not compile: {(done.stderr.splitlines() or ['?'])[-1]}")

    def build(self, program: Program, mode: str, over: str) -> Path:
        """Compiles a test. Raises HostError."""
        target = self.target / f"{program.name}-{mode}-{over}"
        if target.exists():
            return target
        tests = self.source / "tests"
        sources = [tests / f"{program.name}.c", tests / "delay.c"]
        folders = [tests, self.built, self.source, self.source / "other"]
        if over == "conduit":
            self._compile_with_conduit(mode, sources, folders, target)
        else:
            includes = [f"-I{folder}" for folder in folders]
            tools = self.built / f"libgasnet_tools-{'seq' if mode == 'seq' else 'par'}.a"  # there is no third one
            compile_program([*COMMON, *includes, *sources, tools, "-o", target, *LIBRARIES], [f"gasnet-{mode}"])
        return target

    def _compile_with_conduit(self, mode: str, sources: list[Path], folders: list[Path], target: Path) -> None:
        """The headers of the tree come before those of libgasnet, so this is not `apenet cc`."""
        headers, library = flags(["am"])
        includes = [f"-I{folder}" for folder in (CONDUIT, *folders, self.source / "extended-ref")]
        defines = [f"-DGASNET_{mode.upper()}", *([] if mode == "seq" else ["-D_REENTRANT"])]
        gasnet = self.target / f"libgasnet-extoll-{mode}.a"
        command = ["cc", *COMMON, *defines, *includes, *headers, *sources, gasnet, "-o", target, *library, *LIBRARIES]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise HostError(done.stderr)


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
    if done.returncode == program.status and not said:
        return ""
    return (said or done.stderr.splitlines() or [f"status {done.returncode}"])[0][:120]


def main() -> int:
    """Builds and runs all programs, and prints a line for each."""
    parser = argparse.ArgumentParser(description="Runs the tests of a GASNet-1 tree over libgasnet and extoll-conduit")
    parser.add_argument("source", type=Path)
    parser.add_argument("build", type=Path)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--over", nargs="+", choices=OVER, default=OVER)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    arguments = parser.parse_args()
    names = {program.name for program in PROGRAMS if set(program.modes) & set(arguments.modes)}
    for name in arguments.only:
        if name not in names:
            parser.error(f"--only {name}: expected one of {', '.join(sorted(names))}")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="apenet-") as folder:
        tree = Tree(arguments.source.resolve(), arguments.build.resolve(), Path(folder))
        if "conduit" in arguments.over:
            tree.build_conduit()
        for over in arguments.over:
            for program in (program.over(over) for program in PROGRAMS if program.name in (arguments.only or names)):
                for mode in (mode for mode in program.modes if mode in arguments.modes):
                    try:
                        why = run(program, tree.build(program, mode, over))
                    except HostError as error:
                        why = f"does not compile: {str(error).splitlines()[-1]}"
                    failed += why != ""
                    name = f"{program.name} {program.arguments[0]}" if program.status else program.name
                    print(f"{over:<9} {name:<16} {mode:<4} {'failed: ' + why if why else 'passed'}", flush=True)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
