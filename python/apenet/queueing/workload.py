"""Workloads: the jobs of a batch system, from a file in the Standard Workload Format (SWF, version 2).

Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers", JSSPP 1999: a line for each job
with 18 numbers, -1 where one is unknown, and comments that begin with a semicolon.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from apenet.base.errors import InputError
from apenet.base.infiles import UnreadableError, read_text

_FIELDS = 18
_MOST_FILE_BYTES = 2**28
MOST_JOBS = 1_000_000
_MOST = 1e15

_NUMBER, _SUBMITTED, _RUN, _ALLOCATED, _REQUESTED, _LIMIT = 0, 1, 3, 4, 7, 8


@dataclass(frozen=True)
class BatchJob:
    """A job: its processes, when it is submitted, how long it runs, and how long it asked for."""

    number: int
    submitted_s: float
    run_s: float
    limit_s: float
    processes: int


@dataclass(frozen=True)
class Workload:
    """Jobs in the order in which they are submitted, and how many lines were skipped, by reason."""

    name: str
    jobs: tuple[BatchJob, ...]
    skipped: dict[str, int]


def read_workload(path: Path, most_jobs: int | None = None) -> Workload:
    """The first jobs of a file, which gzip may have packed. Raises InputError naming the line."""
    try:
        text = read_text(path, _MOST_FILE_BYTES)
    except UnreadableError as error:
        raise InputError("workload", path, f"a file in the Standard Workload Format ({error})") from error
    jobs: list[BatchJob] = []
    skipped: Counter[str] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        content = line.partition(";")[0].split()
        if not content:
            continue
        job = _job_of(content, f"{path}, line {number}")
        reason = _why_skipped(job)
        if reason:
            skipped[reason] += 1
        else:
            jobs.append(job)
        if len(jobs) == (MOST_JOBS if most_jobs is None else most_jobs):
            break
    if not jobs:
        raise InputError("workload", path, "at least one job that has run")
    return Workload(path.name, tuple(sorted(jobs, key=lambda job: (job.submitted_s, job.number))), dict(skipped))


def _job_of(content: list[str], where: str) -> BatchJob:
    if len(content) != _FIELDS:
        raise InputError(
            "workload", where, f"{_FIELDS} numbers, as the Standard Workload Format has, not {len(content)}"
        )
    try:
        values = [float(text) for text in content]
    except ValueError as error:
        raise InputError("workload", where, f"numbers ({error})") from error
    if not all(math.isfinite(value) and abs(value) <= _MOST for value in values):
        raise InputError("workload", where, f"numbers of at most {_MOST:g}")
    run_s = values[_RUN]
    processes = values[_ALLOCATED] if values[_ALLOCATED] > 0 else values[_REQUESTED]
    limit_s = values[_LIMIT] if values[_LIMIT] > 0 else run_s
    return BatchJob(int(values[_NUMBER]), values[_SUBMITTED], run_s, max(limit_s, run_s), int(processes))


def _why_skipped(job: BatchJob) -> str:
    if job.submitted_s < 0:
        return "without a time of submission"
    if job.run_s <= 0:
        return "that never ran"
    if job.processes <= 0:
        return "without a number of processes"
    return ""
