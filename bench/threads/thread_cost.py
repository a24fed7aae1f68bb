"""Measures what the threads of a rank cost, as ratios of CPU seconds (user and system) of alternating runs.

    .venv/bin/python bench/threads/thread_cost.py [--runs 9] [--against OTHER/bin/apenet] [--json]

Each value is the median over the runs, less that of a run without work, so the start of the simulator does not count.
`--against` names the command of an older build, whose MPI must be the same: messages of single-threaded ranks are
compared with it. The command's own environment has the compiler.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

BIN = Path(sys.executable).parent
HERE = Path(__file__).resolve().parent
MESSAGES = 20_000
HALOS = 400
# Steps of some 100 us and 10 ms for each of two threads on a core of today, and some 0.5 s in all.
SHORT_REGIONS, SHORT_STEPS = 5_000, 100
LONG_REGIONS, LONG_STEPS = 50, 10_000


@dataclass(frozen=True)
class Work:
    """A command whose work is measured, and the same one without work."""

    command: tuple[str, ...]
    idle: tuple[str, ...]


@dataclass(frozen=True)
class Ratio:
    """Two works, and the bar that the ratio of their costs should keep."""

    name: str
    work: Work
    base: Work
    at_most: float


def cpu_seconds(command: Sequence[str]) -> float:
    """User and system time of the command and of all that it has started."""
    before = os.times()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: status {done.returncode}: {done.stderr}")
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def measured(ratio: Ratio, runs: int) -> dict[str, float]:
    """Medians of alternating runs."""
    commands = (ratio.work.command, ratio.work.idle, ratio.base.command, ratio.base.idle)
    seconds: list[list[float]] = [[] for _ in commands]
    for run in range(runs):
        order = range(len(commands)) if run % 2 == 0 else reversed(range(len(commands)))
        for i in order:
            seconds[i].append(cpu_seconds(commands[i]))
    work, idle, base, base_idle = map(statistics.median, seconds)
    return {"ratio": (work - idle) / (base - base_idle), "work_s": work - idle, "base_s": base - base_idle}


def compiled(source: Path, folder: Path) -> str:
    """The program of a source."""
    program = folder / source.stem
    subprocess.run([BIN / "mpicc", "-O2", "-fopenmp", "-pthread", "-o", program, source], check=True)
    return str(program)


def ratios(folder: Path, against: str | None) -> list[Ratio]:
    """All that is measured."""
    apenet = str(BIN / "apenet")
    threads = compiled(HERE / "thread_work.c", folder)
    rate = compiled(HERE.parent / "mpi" / "message_rate.c", folder)

    def simulated(ranks: int, *words: object, command: str = apenet) -> tuple[str, ...]:
        return (command, "run", "-n", str(ranks), "--machine", "ape16", "--no-pin", "--", *map(str, words))

    one = Work(simulated(2, threads, "messages", 1, MESSAGES), simulated(2, threads, "messages", 1, 0))
    two = Work(simulated(2, threads, "messages", 2, MESSAGES), simulated(2, threads, "messages", 2, 0))
    beside = Work(simulated(2, threads, "beside", MESSAGES), simulated(2, threads, "beside", 0))
    found = [
        Ratio("message of a rank whose two threads send, to that of one thread", two, one, 1.3),
        Ratio("message of a rank with a second thread that waits, to that of one thread", beside, one, 1.3),
    ]
    for name, regions, steps in (("100 us", SHORT_REGIONS, SHORT_STEPS), ("10 ms", LONG_REGIONS, LONG_STEPS)):
        here = Work(simulated(1, threads, "regions", regions, steps), simulated(1, threads, "regions", 0, steps))
        native = Work((threads, "regions", str(regions), str(steps)), (threads, "regions", "0", str(steps)))
        found.append(Ratio(f"OpenMP regions of {name}, to native", here, native, 1 / 0.97))
    if against is not None:
        for test, ranks, repetitions in (("pingpong", 2, MESSAGES // 2), ("halo", 16, HALOS)):
            now, then = (
                Work(
                    simulated(ranks, rate, test, repetitions, command=command),
                    simulated(ranks, rate, test, 1, command=command),
                )
                for command in (apenet, against)
            )
            found.append(Ratio(f"{test} of single-threaded ranks, to the older build", now, then, 1.03))
    return found


def main() -> None:
    """Reads the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--against", metavar="COMMAND", help="the apenet of an older build")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for ratio in ratios(Path(folder), options.against):
            results[ratio.name] = {**measured(ratio, options.runs), "at_most": ratio.at_most}
            if not options.json:
                values = results[ratio.name]
                print(
                    f"{ratio.name}: {values['ratio']:.3f} (at most {ratio.at_most:.2f}; "
                    f"{values['work_s']:.2f} s and {values['base_s']:.2f} s)",
                    flush=True,
                )
    if options.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
