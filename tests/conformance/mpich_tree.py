"""Runs the tests of an MPICH source tree, unmodified, on simulated machines, as the tree's lists of tests say.

    python tests/conformance/mpich_tree.py FOLDER [--only PATTERN...] [--sample N [--seed S]] [--results FILE]
      [--time-limit SECONDS] [--lists NAME...]

FOLDER is test/mpi of a tree of MPICH 5.0, configured with the MPICH of this environment:
`./autogen.sh && ./configure --with-mpi=PREFIX --enable-fortran=no && make -C util && make -C dtpools`. In a checkout
whose main tree is not configured, before that: `cp -r ../../confdb . && export MPICH_CONFDB=$PWD/confdb`.

A test is named by its folder and program, the
number of ranks, its arguments and its variables. With --results, tests of which FILE holds a result are not run again.
mpich_expected.toml lists the tests that do not pass, with the reasons. The exit status is 1 if another one does
not, and 2 if no test is run.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

EXPECTED = Path(__file__).with_name("mpich_expected.toml")
# The smallest one that has a node for each rank.
MACHINES = {16: "ape16", 128: "ape128"}
LISTS = ("testlist", "testlist.dtp", "testlist.collalgo")
KEYS = {"arg", "env", "mpiexecarg", "timeLimit", "resultTest", "mem", "hasgpu", "xfail", "strict", "lock", "init"}
TIME_LIMIT_S = 180
MEMORY_GB = 4
ENDING_S = 20
LOOK_EVERY_S = 0.5
HANG_FACTOR = 5  # wall time over the processor time that a test may take, so that other load does not matter
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_NO_ERRORS = re.compile(r"\s*No [Ee]rrors\s*")
_SKIPPED = re.compile(r"\s*Test Skipped\s*")
_WARNING = re.compile(r"MPICH: |WARNING: |(Abort.*)?application called MPI_Abort")
_OURS = re.compile(r"apenet: ")


@dataclass(frozen=True)
class Test:
    """A line of a list of tests."""

    folder: str
    program: str
    ranks: int
    arguments: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    launcher_arguments: tuple[str, ...] = ()
    time_limit_s: float | None = None
    judge: str = "TestNormal"
    memory_gb: float = 0
    is_for_gpus: bool = False
    expected_failure: str = ""

    @property
    def name(self) -> str:
        """What tells it from all others."""
        return " ".join((f"{self.folder}/{self.program}", str(self.ranks), *self.arguments, *self.environment))

    @property
    def obstacle(self) -> str:
        """Why it is not run, as the tree's own script would not run it; empty if it is."""
        if self.expected_failure:
            return f"the tree expects a failure: {self.expected_failure}"
        if self.is_for_gpus:
            return "needs a GPU"
        if self.memory_gb > MEMORY_GB:
            return f"needs {self.memory_gb:g} GB of memory"
        if self.launcher_arguments:
            return f"needs an option of MPICH's mpiexec: {' '.join(self.launcher_arguments)}"
        return ""


@dataclass(frozen=True)
class Result:
    """What became of a test. `outcome`: passed, failed, over time, skipped or not built."""

    name: str
    outcome: str
    detail: str = ""
    cpu_s: float = 0
    report: Sequence[str] = field(default_factory=tuple)


@dataclass(frozen=True)
class Expectation:
    """Tests that do not pass. Each of `tests` is a test's name with wildcards."""

    tests: tuple[str, ...]
    outcome: str
    reason: str

    def holds_for(self, name: str) -> bool:
        """Whether a test of this name is meant."""
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.tests)


def expectations() -> list[Expectation]:
    """Those of mpich_expected.toml."""
    entries = tomllib.loads(EXPECTED.read_text(encoding="utf-8"))["expected"]
    return [Expectation(tuple(entry["tests"]), entry["outcome"], entry["reason"]) for entry in entries]


def listed(root: Path, lists: Sequence[str], folder: str = ".") -> Iterator[Test]:
    """The tests of the lists in a folder and in the folders that any of the tree's lists name."""
    for name in dict.fromkeys((*LISTS, *lists)):
        path = root / folder / name
        if not path.exists():
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            words = line.partition("#")[0].split()
            if not words or words[0].startswith("!"):
                continue
            if (root / folder / words[0]).is_dir():
                yield from listed(root, lists, os.path.normpath(f"{folder}/{words[0]}"))
            elif name in lists:
                yield test_of(folder, words, str(path))


def test_of(folder: str, words: Sequence[str], where: str) -> Test:
    """The test of a line. A key that is unknown is said and ignored, as the tree's script does."""
    program = Path(folder) / words[0]
    given: dict[str, list[str]] = {}
    for word in words[2:]:
        key, _, value = word.partition("=")
        given.setdefault(key, []).append(value)
    for key in sorted(given.keys() - KEYS):
        print(f"{where}: {key}= in the line of {words[0]}: unknown, ignored", file=sys.stderr)
    limit = given.get("timeLimit", [""])[-1]
    return Test(
        folder=str(program.parent),
        program=program.name,
        ranks=int(words[1]) if len(words) > 1 else 2,
        arguments=tuple(given.get("arg", ())),
        environment=tuple(given.get("env", ())),
        launcher_arguments=tuple(given.get("mpiexecarg", ())),
        time_limit_s=float(limit) if limit.isdecimal() else None,
        judge=given.get("resultTest", ["TestNormal"])[-1],
        memory_gb=float(given.get("mem", ["0"])[-1]),
        is_for_gpus="hasgpu" in given,
        expected_failure=given.get("xfail", [""])[-1],
    )


def build(root: Path, test: Test) -> str:
    """Compiles a test by the tree's makefile. Returns why it failed, or nothing."""
    if (root / test.folder / test.program).exists():
        return ""
    command = ["make", "--silent", "-C", str(root / test.folder), test.program]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if made.returncode == 0 else (made.stderr.strip().splitlines() or ["make failed"])[-1]


def run(root: Path, test: Test, time_limit_s: float | None) -> Result:
    """Builds and runs a test, and judges its output as the tree's script does."""
    if test.obstacle:
        return Result(test.name, "skipped", test.obstacle)
    machine = next((name for ranks, name in MACHINES.items() if test.ranks <= ranks), None)
    if machine is None:
        return Result(test.name, "failed", f"{test.ranks} ranks: the largest machine has {max(MACHINES)} nodes")
    why = build(root, test)
    if why:
        return Result(test.name, "not built", why)
    command = [Path(sys.executable).with_name("apenet"), "run", "-n", str(test.ranks), "--machine", machine]
    if "threads" in test.folder:
        command.append("--no-pin")  # their threads spin while they wait for each other, which needs more than one core
    limit_s = time_limit_s or test.time_limit_s or TIME_LIMIT_S
    before_s = used_seconds()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [*command, "--", f"./{test.program}", *test.arguments],
            cwd=root / test.folder,
            env={**os.environ, **dict(each.split("=", 1) for each in test.environment)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
        is_over = not ends_within(process, limit_s)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace").splitlines())
    cpu_s = round(used_seconds() - before_s, 2)
    report = [line for line in texts[1] if _OURS.match(line)]
    said = texts[0] + [line for line in texts[1] if not _OURS.match(line)]
    if is_over:
        return Result(test.name, "over time", f"{limit_s:g} s; it said: {' | '.join(said[-3:])}", cpu_s, report)
    outcome, detail = judged(test.judge, process.returncode, said)
    return Result(test.name, outcome, detail, cpu_s, report)


def ends_within(process: subprocess.Popen[bytes], limit_s: float) -> bool:
    """Waits for the end of a run; one that takes more processor time, or hangs, is interrupted and then killed."""
    give_up = time.monotonic() + HANG_FACTOR * limit_s
    while True:
        try:
            process.wait(LOOK_EVERY_S)
        except subprocess.TimeoutExpired:
            if cpu_seconds(process.pid) < limit_s and time.monotonic() < give_up:
                continue
            process.terminate()
            try:
                process.wait(ENDING_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            return False
        return True


def used_seconds() -> float:
    """Processor time of everything that has run so far."""
    used = os.times()
    return used.children_user + used.children_system


def cpu_seconds(process_id: int) -> float:
    """Processor time of a process and of its descendants, also of those that it has waited for."""
    try:
        entry = Path(f"/proc/{process_id}")
        fields = (entry / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        children = (entry / "task" / str(process_id) / "children").read_text(encoding="ascii").split()
    except OSError:
        return 0  # it has ended
    return sum(map(int, fields[11:15])) / TICKS_PER_S + sum(cpu_seconds(int(child)) for child in children)


def judged(judge: str, status: int, said: Sequence[str]) -> tuple[str, str]:
    """Outcome and detail, by the rules of the tree's script `runtests`."""
    if judge in ("TestStatus", "TestErrFatal"):
        return ("passed", "") if status != 0 else ("failed", "status 0")
    if judge == "TestBench":
        return ("passed", "") if status == 0 else ("failed", f"status {status}: {' | '.join(said[-3:])}")
    has_no_errors = any(map(_NO_ERRORS.fullmatch, said))
    is_skipped = any(map(_SKIPPED.fullmatch, said))
    stray = [line for line in said if not _NO_ERRORS.fullmatch(line) and not _SKIPPED.fullmatch(line)]
    if judge != "TestNormal":
        stray = [line for line in stray if not _WARNING.match(line)]
    is_good = status != 0 if judge == "TestStatusNoErrors" else status == 0
    if not is_good or stray or not (has_no_errors or is_skipped):
        return "failed", f"status {status}: {' | '.join(stray[:3]) or 'no output'}"
    return ("skipped", "the program says so") if is_skipped else ("passed", "")


def known_results(path: Path | None) -> dict[str, Result]:
    """Those of an earlier run, by the test's name."""
    if path is None or not path.exists():
        return {}
    found = [Result(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    return {result.name: result for result in found}


def keep(path: Path | None, result: Result) -> None:
    """Appends a result to the file, if there is one."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")


def verdict(result: Result, expected: Sequence[Expectation]) -> tuple[bool, str]:
    """Whether the result is no surprise, and a line about it."""
    entry = next((each for each in expected if each.holds_for(result.name)), None)
    line = (
        f"{result.outcome:9} {result.cpu_s:7.1f} s  {result.name}{': ' if result.detail else ''}{result.detail[:200]}"
    )
    if entry is None:
        return result.outcome in ("passed", "skipped"), line
    if result.outcome == entry.outcome:
        return True, f"{line} (expected: {entry.reason})"
    if result.outcome == "passed":
        return True, f"{line} (expected: {entry.outcome}, {entry.reason}; is the entry still needed?)"
    return result.outcome == "skipped", line


def chosen(tests: Sequence[Test], arguments: argparse.Namespace) -> list[Test]:
    """The tests that the options ask for, each once."""
    unique = list({test.name: test for test in tests}.values())
    if arguments.only:
        unique = [test for test in unique if any(fnmatch.fnmatchcase(test.name, each) for each in arguments.only)]
    if arguments.sample is not None and arguments.sample < len(unique):
        drawn = set(random.Random(arguments.seed).sample(range(len(unique)), arguments.sample))
        unique = [test for i, test in enumerate(unique) if i in drawn]
    return unique


def main() -> int:
    """Runs the tests, and prints a line for each and the number of each outcome."""
    parser = argparse.ArgumentParser(description="Runs the tests of an MPICH tree on simulated machines")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+", default=[], metavar="PATTERN", help="names with wildcards")
    parser.add_argument("--sample", type=int, help="run only so many, drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, help="a file of results, which is continued")
    parser.add_argument("--time-limit", type=float, help="seconds of processor time, instead of the lists' own")
    parser.add_argument("--lists", nargs="+", default=LISTS)
    arguments = parser.parse_args()
    root = arguments.folder.resolve()
    if not (root / "testlist").exists():
        parser.error(f"{root}: no file testlist; expected the configured folder test/mpi of a tree of MPICH")
    tests = chosen(list(listed(root, arguments.lists)), arguments)
    if not tests:
        parser.error(f"no test of {', '.join(arguments.lists)} in {root} is chosen: there is nothing to run")
    known, expected = known_results(arguments.results), expectations()
    outcomes: Counter[str] = Counter()
    surprises = 0
    for test in tests:
        if test.name in known:
            result = known[test.name]
        else:
            result = run(root, test, arguments.time_limit)
            keep(arguments.results, result)
        is_no_surprise, line = verdict(result, expected)
        surprises += not is_no_surprise
        outcomes[result.outcome] += 1
        if test.name not in known or not is_no_surprise:
            print(line if is_no_surprise else f"{line} (not expected)", flush=True)
    print(
        ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()),
        f"; {surprises} not expected",
        sep="",
    )
    if outcomes.keys() == {"skipped"}:
        print("every test was skipped: none was run", file=sys.stderr)
        return 2
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
