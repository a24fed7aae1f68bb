"""Runs every program repeatedly in changing surroundings: stdout, stderr, status and files must be equal.

    .venv/bin/python tests/soak/soak.py [--minutes 30] [--repeats 20] [--only NAME ...]

The first run of a program, in plain surroundings, is the reference. Ends after --minutes at the latest, and prints how
often each program ran. The status is 1 if any run differs or a program did not run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

from cases import CASES, SURROUNDINGS, Case, Outcome, Programs, Surroundings, chosen, first_difference, run


def compare(case: Case, reference: Outcome, outcome: Outcome) -> str:
    """The error of a run, in one line; empty without an error."""
    if outcome.status != case.status:
        return f"status {outcome.status}, expected {case.status}"
    parts = reference.differences(outcome)
    if not case.repeats:
        if "may not repeat" not in outcome.stderr:
            return "does not say that it may not repeat"
        parts = [part for part in parts if part == "stdout"]
    if not parts:
        return ""
    shown = next((part for part in parts if part in ("stdout", "stderr")), None)
    detail = f": {first_difference(getattr(reference, shown), getattr(outcome, shown))}" if shown else ""
    return f"{', '.join(parts)} differ{detail}"


def soak(cases: list[Case], repeats: int, minutes: float, surroundings: tuple[Surroundings, ...] = SURROUNDINGS) -> int:
    """Runs the cases in turn; returns the number of runs that differed."""
    ends = time.monotonic() + 60 * minutes
    runs = dict.fromkeys((case.name for case in cases), 0)
    wrong = dict.fromkeys(runs, 0)
    references: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(Path(folder))
        for repeat, around, case in product(range(repeats), surroundings, cases):
            if time.monotonic() > ends:
                break
            try:
                outcome = run(case, programs, around)
                fault = compare(case, references.setdefault(case.name, outcome), outcome)
            except subprocess.TimeoutExpired as hang:
                fault = f"hangs: ended after {hang.timeout:.0f} s"
            runs[case.name] += 1
            wrong[case.name] += bool(fault)
            if fault:
                sys.stdout.write(f"{case.name}, {around.name}, run {repeat + 1}: {fault}\n")
                sys.stdout.flush()
    for name, count in runs.items():
        sys.stdout.write(f"{name:24} {count:5} runs, {wrong[name]:5} differ\n")
    total = sum(wrong.values())
    sys.stdout.write(f"{sum(runs.values()) - total} passed, {total} failed\n")
    if not all(runs.values()):
        sys.stdout.write("not every program ran: the time was too short\n")
    return total + list(runs.values()).count(0)


def main() -> int:
    """Reads the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--only", nargs="*", default=[], help="names of cases")
    options = parser.parse_args()
    return 1 if soak(chosen(options.only, CASES), options.repeats, options.minutes) else 0


if __name__ == "__main__":
    sys.exit(main())
