"""A workload under several placement policies, and what each costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apenet.base.errors import InputError
from apenet.base.sizes import parse_size
from apenet.machine import Machine
from apenet.machine import machine as read_machine
from apenet.queueing.placement import POLICIES, Policy, policy
from apenet.queueing.queue import QUEUES, JobRun, Queue, QueueRun
from apenet.queueing.sharing import PATTERNS, LinkSharing
from apenet.queueing.workload import BatchJob, read_workload

_BOUND_S = 10.0
"""Bounded slowdown counts shorter jobs as this long (Feitelson, "Metrics for parallel job scheduling and their
convergence", JSSPP 2001)."""


@dataclass(frozen=True)
class PolicyResult:
    """What a policy costs the jobs of a workload.

    Shares are of the machine's node-seconds, from the first submission to the last end: see QueueRun.
    """

    policy: str
    mean_wait_s: float
    median_wait_s: float
    mean_bounded_slowdown: float
    makespan_s: float
    at_work: float
    slowed: float
    padded: float
    lost: float
    mean_run_factor: float
    worst_run_factor: float
    runs: tuple[JobRun, ...]

    def to_json(self) -> dict[str, Any]:
        """One entry of `policies`."""
        numbers = {name: value for name, value in vars(self).items() if name != "runs"}
        jobs = [
            {
                "job": run.job.number,
                "wait_s": round(run.wait_s, 6),
                "run_s": round(run.ended_s - run.started_s, 6),
                "run_factor": round(run.slowdown, 6),
                "nodes": list(run.place.nodes),
            }
            for run in self.runs
        ]
        return {**numbers, "jobs": jobs}


@dataclass(frozen=True)
class QueueResult:
    """All policies for one workload on one machine."""

    machine: str
    workload: str
    jobs: int
    skipped: dict[str, int]
    queue: str
    pattern: str
    size_bytes: int
    communication: float
    policies: tuple[PolicyResult, ...]

    def to_json(self) -> dict[str, Any]:
        """The object of `apenet cluster simulate --json`."""
        return {**vars(self), "policies": [one.to_json() for one in self.policies]}


def simulate(
    workload: str | Path,
    machine: Machine | str = "ape128",
    *,
    policies: Sequence[str] = tuple(POLICIES),
    queue: str = "easy",
    processes_per_node: int = 1,
    pattern: str = "halo",
    size: int | str = "16K",
    communication: float = 0.2,
    most_jobs: int | None = None,
    seed: int = 1,
    progress: Callable[[str], None] = lambda _policy: None,
) -> QueueResult:
    """Runs the jobs of a file in the Standard Workload Format through the queue of a machine, once for each policy.

    policies: names of `POLICIES`, or `split:BOX`.
    queue: `easy` or `fcfs`.
    communication: the share of a job's run time in which it communicates, in `pattern`: `halo` or `alltoall`, with
        messages of `size` bytes.
    most_jobs: only the first jobs of the file.
    seed: of the policy `random`.

    Raises InputError, also for a job that does not fit on the machine, and MachineError.
    """
    chosen = read_machine(machine) if isinstance(machine, str) else machine
    chosen.require_whole("a queue")
    if queue not in QUEUES:
        raise InputError("queue", queue, " or ".join(QUEUES))
    if pattern not in PATTERNS:
        raise InputError("pattern", pattern, " or ".join(PATTERNS))
    if not 0 <= communication <= 1:
        raise InputError("communication", communication, "a share from 0 to 1")
    size_bytes = parse_size(str(size))
    if processes_per_node < 1:
        raise InputError("processes_per_node", processes_per_node, "one or more")
    if not chosen.topology.has_routers or not policies:
        raise InputError("machine", chosen.name, "a machine with a network, and at least one policy")
    found = [policy(name, chosen, seed) for name in policies]
    if len(set(policies)) < len(policies):
        raise InputError("policy", " ".join(policies), "each policy once")
    read = read_workload(Path(workload), most_jobs)
    jobs = [(job, -(-job.processes // processes_per_node)) for job in read.jobs]
    count = chosen.node_count or 0
    _require_fit(found, jobs, count, chosen)
    sharing = LinkSharing(chosen, pattern, size_bytes, communication)
    results = []
    for one in found:
        progress(one.name)
        results.append(_result(one.name, Queue(one, sharing, count, queue).run(jobs)))
    return QueueResult(
        chosen.name, read.name, len(jobs), read.skipped, queue, pattern, size_bytes, communication, tuple(results)
    )


def _require_fit(
    policies: Sequence[Policy], jobs: Sequence[tuple[BatchJob, int]], count: int, machine: Machine
) -> None:
    job, wanted = max(jobs, key=lambda entry: entry[1])
    for one in policies:
        if not one.fits(np.zeros(count, dtype=bool), wanted):
            expected = f"at most the {count} nodes of {machine.name}; --processes-per-node puts several on a node"
            raise InputError("workload", f"job {job.number} of {wanted} nodes", expected)


def _result(name: str, done: QueueRun) -> PolicyResult:
    runs = sorted(done.runs, key=lambda run: (run.job.submitted_s, run.job.number))
    waits = [run.wait_s for run in runs]
    slowdowns = [
        max(1.0, (run.ended_s - run.job.submitted_s) / max(run.ended_s - run.started_s, _BOUND_S)) for run in runs
    ]
    factors = [run.slowdown for run in runs]
    whole = done.whole or 1.0
    return PolicyResult(
        policy=name,
        mean_wait_s=float(np.mean(waits)),
        median_wait_s=float(np.median(waits)),
        mean_bounded_slowdown=float(np.mean(slowdowns)),
        makespan_s=max(run.ended_s for run in runs) - min(run.job.submitted_s for run in runs),
        at_work=done.at_work / whole,
        slowed=done.slowed / whole,
        padded=done.padded / whole,
        lost=done.lost / whole,
        mean_run_factor=float(np.mean(factors)),
        worst_run_factor=max(factors),
        runs=tuple(runs),
    )
