"""Replays the traces of several jobs together, each alone, and in pairs."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apenet import _core
from apenet.base.errors import InputError
from apenet.base.numbers import checked_seed
from apenet.machine import ENGINES, Machine
from apenet.machine import machine as read_machine
from apenet.machine.mapping import Mapping, map_ranks
from apenet.machine.partition import Partition
from apenet.machine.partition_links import CheckedPartition, PartitionCheck, require_apart
from apenet.run.limits import virtual_time_ps
from apenet.run.long_runs import require_soon
from apenet.run.replay import read_trace
from apenet.run.results import PS_PER_US, Result, common_results

MOST_JOBS = 128
"""All pairs of them are simulated."""


@dataclass(frozen=True)
class Job:
    """A trace in the GOAL format with ranks of its own, on a partition or on nodes of its own.

    `map` places its ranks as in `apenet.replay`, within the `partition` if there is one. None of them acts before
    `start`, in seconds or as `10us`.
    """

    name: str
    trace: str | Path
    partition: str | None = None
    start: str | float = 0
    map: Mapping = "linear"
    ranks_per_node: int = 1


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """What a job took; times in virtual microseconds, `finish_us` with the end of each rank since time zero.

    `time_us` is from the job's start to its last rank's end, and `alone_us` the same with no other job on the machine:
    None if the job deadlocks, which `deadlock` describes. `shared` has the links that this job and each other one take
    when they run alone.
    """

    name: str
    trace: str
    nodes: tuple[int, ...]
    start_us: float
    finish_us: NDArray[np.float64] = field(repr=False)
    time_us: float | None
    alone_us: float | None
    deadlock: str
    links: tuple[str, ...] = field(repr=False)
    shared: dict[str, tuple[str, ...]] = field(repr=False)
    warnings: tuple[str, ...]

    @property
    def slowdown(self) -> float | None:
        """The time among the others over the time alone; None without such times."""
        return _ratio(self.time_us, self.alone_us)

    def to_json(self) -> dict[str, Any]:
        """The object of this job in what `apenet cluster run --json` prints."""
        return {
            "name": self.name,
            "trace": self.trace,
            "nodes": list(self.nodes),
            "start_us": self.start_us,
            "time_us": self.time_us,
            "alone_us": self.alone_us,
            "slowdown": self.slowdown,
            "deadlock": self.deadlock,
            "finish_us": self.finish_us.tolist(),
            "shared": {name: list(links) for name, links in self.shared.items()},
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, kw_only=True)
class ClusterResult(Result):
    """The result of jobs that ran together; everything but the wall time repeats exactly.

    `interference` has a row for each job: its slowdown if only the job of the column runs beside it. None if the pairs
    were not simulated.
    """

    jobs: tuple[JobResult, ...]
    interference: tuple[tuple[float | None, ...], ...] | None
    simulated: Machine = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet cluster run --json` prints."""
        return {
            "machine": self.machine,
            "settings": list(self.simulated.settings),
            "seed": self.seed,
            "version": self.version,
            "virtual_time_us": self.virtual_time_us,
            "messages": self.messages,
            "bytes": self.bytes,
            "trace_hash": self.trace_hash,
            "faults": vars(self.faults),
            "jobs": [job.to_json() for job in self.jobs],
            "interference": None if self.interference is None else [list(row) for row in self.interference],
            "links": [vars(link) for link in self.links if link.packets > 0],
            "warnings": list(self.warnings),
        }

    def check(self) -> PartitionCheck:
        """The jobs as partitions, for the picture of the machine."""
        parts = (CheckedPartition(Partition(one.name, one.nodes), one.links, (), ()) for one in self.jobs)
        pairs = itertools.combinations(range(len(self.jobs)), 2)
        shared = {(a, b): self.jobs[a].shared.get(self.jobs[b].name, ()) for a, b in pairs}
        return PartitionCheck(self.simulated, tuple(parts), {pair: links for pair, links in shared.items() if links})


@dataclass(frozen=True)
class _Planned:
    job: Job
    schedule: _core.GoalSchedule
    nodes: list[int]
    start_ps: int


def run(
    jobs: Iterable[Job],
    *,
    machine: Machine | str,
    engine: str = "packet",
    seed: int = 1,
    matrix: bool = True,
    allow_long: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> ClusterResult:
    """Replays the traces of all jobs together, then each alone from the same start, then each pair.

    `matrix`: false leaves the pairs out. A job that deadlocks ends alone. Raises InputError for jobs that do not fit
    the machine or share a node, and for what would take hours unless `allow_long`; PartitionError if faults leave no
    path.
    """
    began = time.monotonic()
    chosen = read_machine(machine) if isinstance(machine, str) else machine
    chosen.require_whole("a cluster")
    if engine not in ENGINES:
        raise InputError("engine", engine, " or ".join(ENGINES))
    seed = checked_seed(seed)
    plans = _planned(chosen, list(jobs))
    description = chosen.description(seed, engine)
    if not allow_long:
        times = len(plans) + 1 if matrix else 2
        hops = sum(_core.count_goal_packet_hops(description, one.nodes, one.schedule).all for one in plans)
        require_soon(times * hops, "all replays", "jobs", str(len(plans)), "shorter traces or --no-matrix")

    def replayed(*members: int) -> _core.JobsReport:
        progress(" and ".join(plans[member].job.name for member in members[:3]))
        schedules = [plans[member].schedule for member in members]
        nodes = [plans[member].nodes for member in members]
        try:
            return _core.replay_jobs(description, schedules, nodes, [plans[member].start_ps for member in members])
        except ValueError as error:
            raise chosen.refused(error) from error

    together = replayed(*range(len(plans)))
    alone = [replayed(member) for member in range(len(plans))]
    results = _results(plans, together, alone)
    interference = _interference(plans, results, replayed) if matrix else None
    virtual_ps = max(int(report.finish_ps.max()) for report in together.jobs)
    return ClusterResult(
        jobs=results,
        interference=interference,
        simulated=chosen,
        **common_results(chosen, seed, together, virtual_ps, began),
    )


def _planned(machine: Machine, jobs: Sequence[Job]) -> list[_Planned]:
    if not 1 <= len(jobs) <= MOST_JOBS:
        raise InputError("jobs", len(jobs), f"1 to {MOST_JOBS} jobs")
    names = [job.name for job in jobs]
    for name in names:
        if names.count(name) > 1:
            raise InputError("jobs", name, "a name for each job")
    plans, places = [], []
    for job in jobs:
        try:
            on = machine.with_partition(job.partition)
            schedule = read_trace(job.trace)
            nodes = map_ranks(on, schedule.rank_count, job.ranks_per_node, job.map)
            plans.append(_Planned(job, schedule, nodes, virtual_time_ps("start", job.start)))
        except InputError as error:
            raise InputError(f"job {job.name}: {error.name}", error.value, error.expected) from error
        own = tuple(dict.fromkeys(nodes)) if on.partition is None else on.partition.nodes
        places.append(Partition(job.name, own))
    require_apart(places)
    return plans


def _results(
    plans: Sequence[_Planned], together: _core.JobsReport, alone: Sequence[_core.JobsReport]
) -> tuple[JobResult, ...]:
    taken = [tuple(link.name for link in report.links if link.packets > 0) for report in alone]
    results = []
    for place, (plan, report) in enumerate(zip(plans, together.jobs, strict=True)):
        shared = {
            other.job.name: tuple(link for link in taken[place] if link in set(taken[number]))
            for number, other in enumerate(plans)
            if number != place
        }
        results.append(
            JobResult(
                name=plan.job.name,
                trace=str(plan.job.trace),
                nodes=tuple(plan.nodes),
                start_us=plan.start_ps / PS_PER_US,
                finish_us=report.finish_ps / PS_PER_US,
                time_us=_time_us(report, plan),
                alone_us=_time_us(alone[place].jobs[0], plan),
                deadlock=report.deadlock,
                links=taken[place],
                shared={name: links for name, links in shared.items() if links},
                warnings=tuple(report.warnings),
            )
        )
    return tuple(results)


def _interference(
    plans: Sequence[_Planned], results: Sequence[JobResult], replayed: Callable[[int, int], _core.JobsReport]
) -> tuple[tuple[float | None, ...], ...]:
    """The rows of the matrix."""
    alone = [result.alone_us for result in results]
    rows: list[list[float | None]] = [[_ratio(one, one) for _ in results] for one in alone]
    for pair in itertools.combinations(range(len(plans)), 2):
        report = replayed(*pair)
        for (member, other), job in zip((pair, pair[::-1]), report.jobs, strict=True):
            rows[member][other] = _ratio(_time_us(job, plans[member]), alone[member])
    return tuple(map(tuple, rows))


def _time_us(report: _core.JobReport, plan: _Planned) -> float | None:
    return None if report.deadlock else (int(report.finish_ps.max()) - plan.start_ps) / PS_PER_US


def _ratio(time_us: float | None, alone_us: float | None) -> float | None:
    if time_us is None or alone_us is None:
        return None
    return 1.0 if time_us == alone_us else time_us / alone_us
