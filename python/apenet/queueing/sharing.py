"""How much the communication of jobs slows down by where they are, and by those beside them.

A job exchanges messages in a pattern. Jobs whose routes share links exchange at the same time, in one simulation of the
machine; the longest of a job's ranks gives its time. It is compared with that of the same job alone in the most compact
box. So a scattered job may be slower also by itself.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apenet import _core
from apenet.base.grid import Integers, nearly_cubic, number_of, place_of
from apenet.machine import Machine
from apenet.queueing.placement import Extents, Place, policy


def _halo(extents: Extents) -> tuple[Integers, Integers]:
    """Each rank of a closed grid to its neighbours."""
    ranks = np.arange(math.prod(extents))
    place = place_of(extents, ranks)
    senders, receivers = [], []
    for dimension, extent in enumerate(extents):
        for step in sorted({1, extent - 1} - {0, extent}):
            there = list(place)
            there[dimension] = (place[dimension] + step) % extent
            senders.append(ranks)
            receivers.append(number_of(extents, there))
    nothing: Integers = np.array([], dtype=np.int64)
    return np.concatenate([nothing, *senders]), np.concatenate([nothing, *receivers])


def _all_to_all(extents: Extents) -> tuple[Integers, Integers]:
    count = math.prod(extents)
    senders, receivers = np.divmod(np.arange(count * count), count)
    is_other = senders != receivers
    return senders[is_other], receivers[is_other]


PATTERNS: dict[str, Callable[[Extents], tuple[Integers, Integers]]] = {"halo": _halo, "alltoall": _all_to_all}


@dataclass(frozen=True)
class Exchange:
    """The ranks of a job: their grid, and the node of each."""

    extents: Extents
    nodes: tuple[int, ...]


class LinkSharing:
    """The exchanges of jobs on the links of a machine."""

    def __init__(self, machine: Machine, pattern: str, size_bytes: int, share: float) -> None:
        self._machine = machine
        self._description = machine.description()
        self._flows = PATTERNS[pattern]
        self._size_bytes = size_bytes
        self._share = share
        self._schedules: dict[Extents, _core.GoalSchedule] = {}
        self._links: dict[Exchange, Any] = {}
        self._alone_ps: dict[int, int] = {}
        self._together_ps: dict[tuple[Exchange, ...], list[int]] = {}

    def exchange(self, place: Place, count: int) -> Exchange:
        """The exchange of a job: a rank on each of the first `count` nodes of its place, as its box if they fill it."""
        is_box = math.prod(place.extents) == count and place.extents
        extents = place.extents if is_box else nearly_cubic(count, max(1, len(self._machine.dims)))
        return Exchange(extents, place.nodes[:count])

    def slowdowns(self, jobs: Sequence[Exchange]) -> list[float]:
        """The factor on the run time of each of the jobs that run together."""
        factors = [1.0] * len(jobs)
        for group in self._groups(jobs):
            times = self._times_ps(tuple(jobs[number] for number in group))
            for number, time_ps in zip(group, times, strict=True):
                alone_ps = self._time_alone_ps(len(jobs[number].nodes))
                if alone_ps > 0:
                    factors[number] = 1 - self._share + self._share * time_ps / alone_ps
        return factors

    def _groups(self, jobs: Sequence[Exchange]) -> list[list[int]]:
        """The jobs whose routes share links, directly or over others, by their places in the list."""
        groups: list[tuple[Any, list[int]]] = []
        for number, job in enumerate(jobs):
            links, members = self._links_of(job), [number]
            apart = []
            for group in groups:
                if (group[0] & links).any():
                    links, members = links | group[0], group[1] + members
                else:
                    apart.append(group)
            groups = [*apart, (links, sorted(members))]
        return [members for _, members in groups]

    def _links_of(self, job: Exchange) -> Any:  # noqa: ANN401 (numpy's bools)
        if job not in self._links:
            senders, receivers = self._flows(job.extents)
            nodes = np.array(job.nodes)
            sizes = [1] * len(senders)
            try:
                found = _core.link_loads(
                    self._description.network, nodes[senders].tolist(), nodes[receivers].tolist(), sizes
                )
            except ValueError as error:
                raise self._machine.refused(error) from error
            self._links[job] = np.array(found.bytes) > 0
        return self._links[job]

    def _time_alone_ps(self, count: int) -> int:
        if count not in self._alone_ps:
            empty = np.zeros(self._machine.node_count or 0, dtype=bool)
            is_grid = self._machine.allocation.torus is not None
            best = policy("shape-search" if is_grid else "contiguous", self._machine, 0).place(empty, count)
            assert best is not None  # noqa: S101 (checked before the queue begins)
            self._alone_ps[count] = self._times_ps((self.exchange(best, count),))[0]
        return self._alone_ps[count]

    def _times_ps(self, jobs: tuple[Exchange, ...]) -> list[int]:
        if jobs not in self._together_ps:
            traces = [_core.GoalJob(self._schedule(job.extents), list(job.nodes), 0) for job in jobs]
            try:
                report = _core.replay_jobs(self._description, traces)
            except ValueError as error:
                raise self._machine.refused(error) from error
            self._together_ps[jobs] = [int(one.finish_ps.max()) for one in report.jobs]
        return self._together_ps[jobs]

    def _schedule(self, extents: Extents) -> _core.GoalSchedule:
        if extents not in self._schedules:
            self._schedules[extents] = self._written(extents)
        return self._schedules[extents]

    def _written(self, extents: Extents) -> _core.GoalSchedule:
        """One exchange, of which each rank begins all sends and receives at once."""
        operations: list[list[str]] = [[] for _ in range(math.prod(extents))]
        for sender, receiver in zip(*(flow.tolist() for flow in self._flows(extents)), strict=True):
            operations[sender].append(f"send {self._size_bytes}b to {receiver} tag 0")
            operations[receiver].append(f"recv {self._size_bytes}b from {sender} tag 0")
        with tempfile.NamedTemporaryFile("w", suffix=".goal") as file:
            file.write(f"num_ranks {len(operations)}\n")
            for rank, lines in enumerate(operations):
                file.write(f"rank {rank} {{\n")
                file.writelines(f"l{number}: {line}\n" for number, line in enumerate(lines))
                file.write("}\n")
            file.flush()
            return _core.read_goal(file.name, Path(file.name).name)
