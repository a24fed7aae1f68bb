"""Runs the programs, traces and workloads of several jobs: together, each alone, and in pairs."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apenet import _core
from apenet.base.errors import InputError
from apenet.base.numbers import checked_seed
from apenet.cluster.programs import PlannedProgram, plan_program, run_programs
from apenet.cluster.workloads import plan_workload
from apenet.host.mpi_library import MpiChoice
from apenet.machine import ENGINES, Machine
from apenet.machine import machine as read_machine
from apenet.machine.mapping import Mapping as RankMapping
from apenet.machine.mapping import map_ranks
from apenet.machine.partition import Partition
from apenet.machine.partition_links import CheckedPartition, PartitionCheck, require_apart
from apenet.run.limits import virtual_time_ps
from apenet.run.long_runs import require_soon
from apenet.run.program_result import RunResult
from apenet.run.replay import read_trace
from apenet.run.results import PS_PER_US, Result, Totals, common_results, show_time

MOST_JOBS = 128
"""All pairs of them are simulated."""


@dataclass(frozen=True)
class Job:
    """A program, a GOAL trace or a workload, with ranks of its own, on a partition or on nodes of its own.

    `trace`: the file of a trace. `workload`: a test of `apenet bench` with its options, such as `{"test": "halo",
    "sizes": "4K"}`; its ranks are on all nodes of the partition, or on its option `nodes`. `command`: a program and its
    arguments, with `ranks` ranks, and the MPI library `mpi` as in `apenet.run`; so are `compute`, `size`, `environment`
    and `limit_virtual`, which counts from `start`. Its ranks begin in `directory`. `out` is the run's folder, `output`
    one for what the ranks print. `map` places the ranks as in `apenet.run`, within the `partition` if there is one.
    None of them acts before `start`, in seconds or as `10us`.
    """

    name: str
    trace: str | Path | None = None
    partition: str | None = None
    start: str | float = 0
    map: RankMapping = "linear"
    ranks_per_node: int = 1
    command: Sequence[str] | None = None
    ranks: int | None = None
    mpi: MpiChoice = "auto"
    compute: str = "none"
    size: str | None = None
    environment: dict[str, str] | None = None
    directory: str | Path | None = None
    limit_virtual: str | float | None = None
    out: str | Path | None = None
    output: str | Path | None = None
    workload: Mapping[str, object] | None = None


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """What a job took; times in virtual microseconds, `finish_us` with the end of each rank since time zero.

    `outcome` is that of `apenet.RunResult`, and `message` describes one that is not `completed`; `deadlock` is that
    message for a deadlock. `time_us` is from the job's start to its last rank's end, and `alone_us` the same with no
    other job on the machine: None if the job did not complete. `shared` has the links that this job and each other one
    take when they run alone. `stdout` and `stderr`: what a program printed.
    """

    name: str
    trace: str | None
    command: tuple[str, ...] | None
    workload: dict[str, object] | None
    outcome: str
    message: str
    nodes: tuple[int, ...]
    start_us: float
    finish_us: NDArray[np.float64] = field(repr=False)
    time_us: float | None
    alone_us: float | None
    links: tuple[str, ...] = field(repr=False)
    shared: dict[str, tuple[str, ...]] = field(repr=False)
    warnings: tuple[str, ...]
    stdout: bytes = field(repr=False, default=b"")
    stderr: bytes = field(repr=False, default=b"")

    @property
    def deadlock(self) -> str:
        """What waits; empty if the job has not ended in a deadlock."""
        return self.message if self.outcome == "deadlock" else ""

    @property
    def slowdown(self) -> float | None:
        """The time among the others over the time alone; None without such times."""
        return _ratio(self.time_us, self.alone_us)

    def to_json(self) -> dict[str, Any]:
        """The object of this job in what `apenet cluster run --json` prints."""
        return {
            "name": self.name,
            "trace": self.trace,
            "command": None if self.command is None else list(self.command),
            "workload": self.workload,
            "outcome": self.outcome,
            "message": self.message,
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
    """A job on its nodes; it has a schedule or a program."""

    job: Job
    nodes: list[int]
    start_ps: int
    schedule: _core.GoalSchedule | None = None
    program: PlannedProgram | None = None


@dataclass(frozen=True)
class _JobRun:
    """What a job did in one simulation."""

    finish_ps: NDArray[np.int64]
    outcome: str
    message: str
    warnings: tuple[str, ...]
    stdout: bytes = b""
    stderr: bytes = b""


@dataclass(frozen=True)
class _Simulated:
    """One simulation of some of the jobs."""

    jobs: list[_JobRun]
    totals: _core.JobsReport | Totals


def run(
    jobs: Iterable[Job],
    *,
    machine: Machine | str,
    engine: str = "packet",
    seed: int = 1,
    matrix: bool = True,
    joins: bool = False,
    allow_long: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> ClusterResult:
    """Runs all jobs together, then each alone from the same start, then each pair.

    `matrix`: false leaves the pairs out. `joins`: as on the shared network of `apenet cluster up`, programs begin on a
    network that has carried nothing of theirs before, and several may use a node, one after the other: a job that
    begins on a node before another one has ended there has a warning. A job that fails or deadlocks ends alone. Raises
    InputError for jobs that do not fit the machine or share a node, and for traces and workloads that would take hours
    unless `allow_long`; PartitionError if faults leave no path of a trace.
    """
    began = time.monotonic()
    chosen = read_machine(machine) if isinstance(machine, str) else machine
    chosen.require_whole("a cluster")
    if engine not in ENGINES:
        raise InputError("engine", engine, " or ".join(ENGINES))
    seed = checked_seed(seed)
    plans = _planned(chosen, list(jobs), engine, seed, allow_long, joins=joins)
    open_to = max(max(Counter(one.nodes).values()) for one in plans) if joins else 0
    description = chosen.description(seed, engine)
    if not allow_long:
        times = len(plans) + 1 if matrix else 2
        traces = [(one.nodes, one.schedule) for one in plans if one.schedule is not None]
        hops = sum(_core.count_goal_packet_hops(description, nodes, schedule).all for nodes, schedule in traces)
        require_soon(times * hops, "all replays", "jobs", str(len(plans)), "shorter traces or --no-matrix")

    def simulated(*members: int, is_kept: bool = False) -> _Simulated:
        progress(" and ".join(plans[member].job.name for member in members[:3]))
        return _simulated(chosen, description, [plans[member] for member in members], is_kept, open_to)

    together = simulated(*range(len(plans)), is_kept=True)
    alone = [simulated(member) for member in range(len(plans))]
    results = _results(plans, _with_overlaps(plans, together), alone)
    interference = _interference(plans, results, simulated) if matrix else None
    virtual_ps = max(int(report.finish_ps.max()) for report in together.jobs)
    return ClusterResult(
        jobs=results,
        interference=interference,
        simulated=chosen,
        **common_results(chosen, seed, together.totals, virtual_ps, began),
    )


def _simulated(
    machine: Machine, description: _core.MachineDescription, plans: Sequence[_Planned], is_kept: bool, open_to: int
) -> _Simulated:
    traces = [_core.GoalJob(one.schedule, one.nodes, one.start_ps) for one in plans if one.schedule is not None]
    programs = [one.program for one in plans if one.program is not None]
    totals: _core.JobsReport | Totals
    if programs:
        results, replayed, totals = run_programs(
            machine, description, programs, traces, is_kept=is_kept, open_to=open_to
        )
    else:
        try:
            totals = _core.replay_jobs(description, traces)
        except ValueError as error:
            raise machine.refused(error) from error
        results, replayed = [], totals.jobs
    of_programs, of_traces = iter(results), iter(replayed)
    runs = [
        _of_trace(next(of_traces)) if plan.program is None else _of_program(next(of_programs), plan.start_ps)
        for plan in plans
    ]
    return _Simulated(runs, totals)


def _of_trace(report: _core.JobReport) -> _JobRun:
    outcome = "deadlock" if report.deadlock else "completed"
    return _JobRun(report.finish_ps, outcome, report.deadlock, tuple(report.warnings))


def _of_program(result: RunResult, start_ps: int) -> _JobRun:
    ends_us = np.array([rank.virtual_time_us for rank in result.ranks])
    finish_ps = start_ps + np.rint(ends_us * PS_PER_US).astype(np.int64)
    outcome = result.outcome if result.ok or result.outcome != "completed" else "failed"
    message = result.message or ("" if result.ok else f"status {result.exit_status}")
    return _JobRun(finish_ps, outcome, message, result.warnings, result.stdout or b"", result.stderr or b"")


def _planned(
    machine: Machine, jobs: Sequence[Job], engine: str, seed: int, allow_long: bool, *, joins: bool
) -> list[_Planned]:
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
            plans.append(_planned_job(on, job, engine, seed, allow_long))
        except InputError as error:
            raise InputError(f"job {job.name}: {error.name}", error.value, error.expected) from error
        own = tuple(dict.fromkeys(plans[-1].nodes)) if on.partition is None else on.partition.nodes
        places.append(Partition(job.name, own))
    if not joins:
        require_apart(places)
    for plan in plans:
        if joins and plan.program is None:
            raise InputError(f"job {plan.job.name}: joins", True, "only jobs with a command")
    return plans


def _planned_job(on: Machine, job: Job, engine: str, seed: int, allow_long: bool) -> _Planned:
    start_ps = virtual_time_ps("start", job.start)
    kinds = [name for name in ("command", "trace", "workload") if getattr(job, name) is not None]
    if len(kinds) != 1:
        raise InputError("command, trace, workload", " and ".join(kinds) or "none of them", "one of them")
    if job.command is None:
        for name in ("ranks", "size", "environment", "directory", "limit_virtual", "out", "output"):
            if getattr(job, name) is not None:
                raise InputError(name, getattr(job, name), f"only with a command: a {kinds[0]} has its own ranks")
        if job.compute != "none":
            raise InputError("compute", job.compute, f"only with a command: a {kinds[0]} has its own computation")
    if job.workload is not None:
        for name, default in (("map", "linear"), ("ranks_per_node", 1)):
            if getattr(job, name) != default:
                raise InputError(name, getattr(job, name), "none for a workload: it has a rank on each of its nodes")
        schedule, nodes = plan_workload(job.workload, on, engine, seed, allow_long=allow_long)
        return _Planned(job, nodes, start_ps, schedule)
    if job.trace is not None:
        schedule = read_trace(job.trace)
        return _Planned(job, map_ranks(on, schedule.rank_count, job.ranks_per_node, job.map), start_ps, schedule)
    if job.command is None or job.ranks is None:
        raise InputError("ranks", job.ranks, "the number of the program's ranks")
    program = plan_program(
        job.command,
        machine=on,
        ranks=job.ranks,
        ranks_per_node=job.ranks_per_node,
        mapping=job.map,
        mpi=job.mpi,
        engine=engine,
        seed=seed,
        start_ps=start_ps,
        compute=job.compute,
        size=job.size,
        environment=job.environment,
        directory=job.directory,
        limit_virtual=job.limit_virtual,
        out=job.out,
        output=job.output,
    )
    return _Planned(job, list(program.request.nodes), start_ps, program=program)


def _results(plans: Sequence[_Planned], together: _Simulated, alone: Sequence[_Simulated]) -> tuple[JobResult, ...]:
    taken = [tuple(link.name for link in one.totals.links if link.packets > 0) for one in alone]
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
                trace=None if plan.job.trace is None else str(plan.job.trace),
                command=None if plan.job.command is None else tuple(map(str, plan.job.command)),
                workload=None if plan.job.workload is None else dict(plan.job.workload),
                outcome=report.outcome,
                message=report.message,
                nodes=tuple(plan.nodes),
                start_us=plan.start_ps / PS_PER_US,
                finish_us=report.finish_ps / PS_PER_US,
                time_us=_time_us(report, plan),
                alone_us=_time_us(alone[place].jobs[0], plan),
                links=taken[place],
                shared={name: links for name, links in shared.items() if links},
                warnings=report.warnings,
                stdout=report.stdout,
                stderr=report.stderr,
            )
        )
    return tuple(results)


def _with_overlaps(plans: Sequence[_Planned], together: _Simulated) -> _Simulated:
    """With a warning for each job that began on a node where another one had not ended.

    Only jobs that join may have nodes in common.
    """
    ends_ps = [int(report.finish_ps.max()) for report in together.jobs]
    in_order = sorted(range(len(plans)), key=lambda number: (plans[number].start_ps, number))
    before: dict[int, int] = {}  # by node, the job that ended last
    warnings: dict[int, str] = {}
    for number in in_order:
        for node in sorted(set(plans[number].nodes)):
            other = before.get(node)
            if other is not None and ends_ps[other] > plans[number].start_ps:
                warnings.setdefault(
                    number,
                    f"began on node {node}, where {plans[other].job.name} ended only at "
                    f"{show_time(ends_ps[other] / PS_PER_US)}: jobs on one node run one after the other",
                )
            if other is None or ends_ps[number] > ends_ps[other]:
                before[node] = number
    jobs = [
        replace(report, warnings=(*report.warnings, warnings[number])) if number in warnings else report
        for number, report in enumerate(together.jobs)
    ]
    return replace(together, jobs=jobs)


def _interference(
    plans: Sequence[_Planned], results: Sequence[JobResult], simulated: Callable[[int, int], _Simulated]
) -> tuple[tuple[float | None, ...], ...]:
    """The rows of the matrix."""
    alone = [result.alone_us for result in results]
    rows: list[list[float | None]] = [[_ratio(one, one) for _ in results] for one in alone]
    for pair in itertools.combinations(range(len(plans)), 2):
        report = simulated(*pair)
        for (member, other), job in zip((pair, pair[::-1]), report.jobs, strict=True):
            rows[member][other] = _ratio(_time_us(job, plans[member]), alone[member])
    return tuple(map(tuple, rows))


def _time_us(report: _JobRun, plan: _Planned) -> float | None:
    return None if report.outcome != "completed" else (int(report.finish_ps.max()) - plan.start_ps) / PS_PER_US


def _ratio(time_us: float | None, alone_us: float | None) -> float | None:
    if time_us is None or alone_us is None:
        return None
    return 1.0 if time_us == alone_us else time_us / alone_us
