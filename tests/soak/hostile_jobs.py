"""Runs 16 jobs of 8 ranks on one network in hostile surroundings: stdout, stderr, status and files must be equal.

    .venv/bin/python tests/soak/hostile_jobs.py [--repeats 6]

The jobs' nodes are drawn, so that they share links. Each repeat is five hostile runs. The status is 1 if any differs
from the plain one before.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from cases import BIN, CONFORMANCE, CORES, ROOT, Outcome, Surroundings, first_difference, outcome_of

SURROUNDINGS = (
    Surroundings("load", burners=2 * CORES),
    Surroundings("one core", prefix=("taskset", "-c", "0"), burners=1),
    Surroundings("stopped", stops=True),
    Surroundings("nice", prefix=("nice", "-n", "19"), burners=CORES),
    Surroundings("stopped under load", burners=CORES, stops=True),
)
# Source, what compiles it, arguments.
MPI = (BIN / "mpicc", "-O1", "-pthread", "-fopenmp")
PROGRAMS = (
    (ROOT / "docs" / "howto" / "ring.c", MPI, ("200",)),
    (CONFORMANCE / "threads" / "all_receive.c", MPI, ()),
    (ROOT / "examples" / "10_halo_apelib_c" / "halo.c", (BIN / "apenet", "cc", "--apelib", "-O1"), ()),
    (ROOT / "docs" / "howto" / "ring.c", MPI, ("3000",)),
)
JOBS = 16
RANKS = 8


def write_jobs(folder: Path) -> Path:
    """The jobs' file, of the whole of ape128."""
    nodes = list(range(JOBS * RANKS))
    random.Random(7).shuffle(nodes)
    lines = ['machine = "ape128"']
    for job in range(JOBS):
        source, compiler, arguments = PROGRAMS[job % len(PROGRAMS)]
        program = folder / source.stem
        if not program.exists():
            subprocess.run([*compiler, source, "-o", program], check=True)
        lines += [
            f"[job.j{job}]",
            f"command = {json.dumps([str(program), *arguments])}",
            f"ranks = {RANKS}",
            f"map = {nodes[RANKS * job : RANKS * (job + 1)]}",
            f'start = "{13 * job % 40}us"',
            f'out = "{folder}/out/j{job}"',
        ]
    file = folder / "jobs.toml"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def run_jobs(file: Path, around: Surroundings) -> Outcome:
    """All jobs together, and each alone."""
    command = [str(BIN / "apenet"), "cluster", "run", str(file), "--no-matrix"]
    return outcome_of(command, file.parent / "out", file.parent, around)


def main() -> int:
    """Reads the options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=6)
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        file = write_jobs(Path(folder))
        plain = run_jobs(file, Surroundings("plain"))
        if plain.status != 0:
            raise SystemExit(plain.stderr)
        for repeat in range(options.repeats):
            for around in SURROUNDINGS:
                hostile = run_jobs(file, around)
                for part in (parts := plain.differences(hostile)):
                    ours, theirs = (outcome.text_of(part) for outcome in (plain, hostile))
                    detail = first_difference(ours, theirs)
                    sys.stdout.write(f"{around.name}, run {repeat + 1}: {part} differs: {detail}\n")
                wrong += bool(parts)
    sys.stdout.write(f"{options.repeats * len(SURROUNDINGS)} hostile runs, {wrong} differ\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
