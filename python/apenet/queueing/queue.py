"""The batch queue: jobs start in the order of their submission, and may overtake where that delays nobody before them.

With `easy` (Lifka, "The ANL/IBM SP scheduling system", JSSPP 1995; Slurm's backfill plans for more jobs) the first job
that waits has a reservation: the time at which, by the limits of the running jobs, a place for it will be free. Others
start before it if they end by then, or if their nodes leave it its place. With `fcfs` nobody overtakes.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from apenet.queueing.placement import Place, Policy
from apenet.queueing.sharing import Exchange, LinkSharing
from apenet.queueing.workload import BatchJob

QUEUES = ("easy", "fcfs")


@dataclass(frozen=True)
class JobRun:
    """A job that has run: its nodes, when it started and ended."""

    job: BatchJob
    place: Place
    wanted: int
    """Nodes that it asked for; a box may have more."""
    started_s: float
    ended_s: float

    @property
    def wait_s(self) -> float:
        """From submission to start."""
        return self.started_s - self.job.submitted_s

    @property
    def slowdown(self) -> float:
        """The run time, in that of the job alone in a compact box."""
        return (self.ended_s - self.started_s) / self.job.run_s


@dataclass
class _Running:
    job: BatchJob
    wanted: int
    place: Place
    started_s: float
    left_s: float
    exchange: Exchange
    factor: float = 1.0

    @property
    def limit_s(self) -> float:
        return self.started_s + self.job.limit_s


@dataclass
class QueueRun:
    """All jobs, and node-seconds: of the whole machine, at work, slowed, padded and lost.

    Nodes at work take the time that a job would take alone in a compact box, and are slowed for the rest. Padded are
    the nodes of a box beyond what the job asked for. Free nodes are lost while the first job that waits wants no more
    than are free, but there is no place of the policy.
    """

    runs: list[JobRun] = field(default_factory=list)
    whole: float = 0.0
    at_work: float = 0.0
    slowed: float = 0.0
    padded: float = 0.0
    lost: float = 0.0


class Queue:
    """The jobs of a workload on a machine of `count` nodes, under one policy."""

    def __init__(self, policy: Policy, sharing: LinkSharing, count: int, queue: str) -> None:
        self._policy = policy
        self._sharing = sharing
        self._occupied = np.zeros(count, dtype=bool)
        self._overtakes = queue == "easy"
        self._running: list[_Running] = []
        self._waiting: deque[tuple[BatchJob, int]] = deque()
        self._done = QueueRun()

    def run(self, jobs: Sequence[tuple[BatchJob, int]]) -> QueueRun:
        """Runs all; `jobs` are in the order of submission, each with its number of nodes."""
        coming = deque(jobs)
        now = coming[0][0].submitted_s
        while coming or self._running:
            ends = min((self._end_s(one, now) for one in self._running), default=math.inf)
            submits = coming[0][0].submitted_s if coming else math.inf
            self._pass(now, min(ends, submits))
            now = min(ends, submits)
            ended = [one for one in self._running if self._end_s(one, now) <= now]
            for one in ended:
                self._end(one, now)
            has_changed = bool(ended)
            while coming and coming[0][0].submitted_s <= now:
                self._waiting.append(coming.popleft())
            if self._start(now) or has_changed:
                self._share()
        return self._done

    @staticmethod
    def _end_s(one: _Running, now: float) -> float:
        return now + one.left_s * one.factor

    def _pass(self, since: float, until: float) -> None:
        seconds = until - since
        for one in self._running:
            one.left_s = max(0.0, one.left_s - seconds / one.factor)
            if one.left_s * one.factor < 1e-9 * max(1.0, until):  # rounding, which would never let it end
                one.left_s = 0.0
        free = int(np.count_nonzero(~self._occupied))
        self._done.whole += seconds * len(self._occupied)
        self._done.at_work += seconds * sum(one.wanted / one.factor for one in self._running)
        self._done.slowed += seconds * sum(one.wanted * (1 - 1 / one.factor) for one in self._running)
        self._done.padded += seconds * sum(len(one.place.nodes) - one.wanted for one in self._running)
        if self._waiting and self._waiting[0][1] <= free:
            self._done.lost += seconds * free

    def _end(self, one: _Running, now: float) -> None:
        self._running.remove(one)
        self._occupied[list(one.place.nodes)] = False
        self._done.runs.append(JobRun(one.job, one.place, one.wanted, one.started_s, now))

    def _start(self, now: float) -> bool:
        has_started = False
        while self._waiting and self._try(*self._waiting[0], now):
            self._waiting.popleft()
            has_started = True
        if self._overtakes and len(self._waiting) > 1:
            has_started |= self._backfill(now)
        return has_started

    def _backfill(self, now: float) -> bool:
        head = self._waiting[0][1]
        reserved_s, then = self._reservation(head, now)
        has_started = False
        hopeless: set[int] = set()
        for job, wanted in list(self._waiting)[1:]:
            if wanted in hopeless:
                continue
            place = self._policy.place(self._occupied, wanted)
            if place is None:
                hopeless.add(wanted)
                continue
            nodes = list(place.nodes)
            if now + job.limit_s > reserved_s:
                with_it = then.copy()
                with_it[nodes] = True
                if not self._policy.fits(with_it, head):
                    continue
                then = with_it
            self._begin(job, wanted, place, now)
            self._waiting.remove((job, wanted))
            has_started = True
        return has_started

    def _reservation(self, wanted: int, now: float) -> tuple[float, Any]:
        """When there will be a place, and what is occupied then. A job over its limit is expected to end now."""
        then = self._occupied.copy()
        when = now
        for one in sorted(self._running, key=lambda one: (one.limit_s, one.job.number)):
            then[list(one.place.nodes)] = False
            when = max(now, one.limit_s)
            if self._policy.fits(then, wanted):
                break
        return when, then

    def _try(self, job: BatchJob, wanted: int, now: float) -> bool:
        place = self._policy.place(self._occupied, wanted)
        if place is not None:
            self._begin(job, wanted, place, now)
        return place is not None

    def _begin(self, job: BatchJob, wanted: int, place: Place, now: float) -> None:
        self._occupied[list(place.nodes)] = True
        exchange = self._sharing.exchange(place, wanted)
        self._running.append(_Running(job, wanted, place, now, job.run_s, exchange))

    def _share(self) -> None:
        factors = self._sharing.slowdowns([one.exchange for one in self._running])
        for one, factor in zip(self._running, factors, strict=True):
            one.factor = factor
