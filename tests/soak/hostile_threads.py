"""Runs programs with threads in hostile surroundings: stdout, stderr, status and files must be equal.

    .venv/bin/python tests/soak/hostile_threads.py [--minutes 60] [--repeats 4] [--only NAME ...]

Each repeat is a plain run and five hostile ones, so the default gives 20 hostile runs of each program, on 2 ranks and
on 16.
"""

from __future__ import annotations

import argparse
import sys

from cases import CONFORMANCE, CORES, Case, Surroundings, chosen

from soak import soak

# Name, program, arguments. threads/meetings.c tells what each of its cases is.
PROGRAMS = (
    ("all-receive", "threads/all_receive.c", ()),
    ("blocking-sends", "threads/blocking_sends.c", ("standard", "4", "10", "60000")),
    ("drawn-mix", "threads/drawn_mix.c", ("6", "4", "40")),
    ("consumers", "threads/sleeping.c", ("consume",)),
    ("pool", "threads/meetings.c", ("pool",)),
    ("readers", "threads/meetings.c", ("readers",)),
    ("heartbeat", "threads/meetings.c", ("heartbeat",)),
    ("log", "threads/meetings.c", ("log",)),
    ("timers", "threads/meetings.c", ("timers",)),
    ("printing", "threads/printing.c", ("mixed",)),
    ("openmp-tasks", "threads/openmp_tasks.c", ()),
    ("futures", "threads/futures.cpp", ()),
    ("threads-h", "threads/c11_threads.c", ()),
    ("python-threads", "threads/python_threads.py", ()),
    ("asyncio", "threads/executors.py", ()),
    ("twenty-children", "threads/twenty_children.py", ()),
    ("fed-children", "children/fed.c", ()),
    ("subprocesses", "children/communicates.py", ()),
    ("shared-locks", "children/shared_locks.c", ()),
    ("multiprocessing", "children/pools.py", ("fork",)),
    ("spawned", "children/pools.py", ("spawn",)),
)

CASES = tuple(
    Case(f"{name}-{ranks}", ranks, CONFORMANCE / program, arguments)
    for name, program, arguments in PROGRAMS
    for ranks in (2, 16)
)

SURROUNDINGS = (
    Surroundings("plain"),
    Surroundings("load", burners=2 * CORES),
    Surroundings("one core", prefix=("taskset", "-c", "0"), burners=1),
    Surroundings("stopped", stops=True),
    Surroundings("nice", prefix=("nice", "-n", "19"), burners=CORES),
    Surroundings("no-pin", options=("--no-pin",), burners=1),
)


def main() -> int:
    """Reads the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--repeats", type=int, default=4)
    parser.add_argument("--only", nargs="*", default=[], help="names of cases")
    options = parser.parse_args()
    return 1 if soak(chosen(options.only, CASES), options.repeats, options.minutes, SURROUNDINGS) else 0


if __name__ == "__main__":
    sys.exit(main())
