"""A replay of the recorded operations: when each began and ended, and for what each rank waited.

All arrays have one element for each operation of all ranks, rank after rank in the order of the recording, or one for
each wait, rank after rank in the order of time. Times are picoseconds of virtual time. Each array has the smallest type
that holds its numbers, because a recording may have millions of operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apenet import _core
from apenet.base.errors import InputError
from apenet.run.results import Request

Integers = NDArray[Any]
"""An array of integers of any size."""
SEND, RECEIVE, CALC = 0, 1, 2
ON_START = 2**31
"""The bit of a successor that waits for the start of an operation, not for its end."""
EAGER, READY, CLEAR, PAYLOAD = 0, 1, 2, 3
"""Roles of a message in the protocol, as in src/runtime/scripted/replay_log.hpp."""


@dataclass(frozen=True)
class Operations:
    """The recorded operations of all ranks; those of rank r are `first[r]` up to `first[r + 1]`."""

    ranks: int
    calls: list[str]
    """MPI functions; an element for each function and place, the first for operations of no known call."""
    places: list[str]
    """Where the program makes the call, "exchange.c:12"; empty if that is not known."""
    first: Integers
    rank: Integers
    kind: Integers
    amount: Integers
    peer: Integers
    tag: Integers
    cpu: Integers
    begun_in: Integers
    ended_in: Integers
    earlier: Integers
    later: Integers
    on_start: NDArray[np.bool_]

    def name(self, call: int) -> str:
        """A call for people."""
        return f"{self.calls[call]} ({self.places[call]})" if self.places[call] else self.calls[call]

    @property
    def has_calls(self) -> bool:
        """Whether the recording names MPI calls."""
        return len(self.calls) > 1


def operations_of(schedule: _core.GoalSchedule) -> Operations:
    """The operations of a recording as arrays."""
    ranks = [schedule.rank(number) for number in range(schedule.rank_count)]
    counts = [rank.operation_count for rank in ranks]
    edges = [rank.successor_count for rank in ranks]
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def joined(name: str) -> Integers:
        return _joined((getattr(rank, name) for rank in ranks), sum(counts))

    def earlier() -> Iterator[Integers]:
        for rank, count, start in zip(ranks, counts, first, strict=False):
            yield np.repeat(np.arange(start, start + count, dtype=np.uint32), np.diff(rank.first_successor))

    def later() -> Iterator[Integers]:
        for rank, start in zip(ranks, first, strict=False):
            yield (rank.successors & np.uint32(ON_START - 1)) + np.uint32(start)

    return Operations(
        ranks=schedule.rank_count,
        calls=[call.partition("@")[0] for call in schedule.calls],
        places=[call.partition("@")[2] for call in schedule.calls],
        first=first,
        rank=np.repeat(np.arange(schedule.rank_count, dtype=np.int32), counts),
        kind=joined("kinds"),
        amount=joined("amounts"),
        peer=joined("peers"),
        tag=joined("tags"),
        cpu=joined("cpus"),
        begun_in=joined("begun_in"),
        ended_in=joined("ended_in"),
        earlier=_joined(earlier(), sum(edges)),
        later=_joined(later(), sum(edges)),
        on_start=_joined((rank.successors >= ON_START for rank in ranks), sum(edges)),
    )


def _joined(parts: Iterator[Integers], length: int) -> Integers:
    """The parts one after another; only one of them is in memory beside the whole."""
    whole = None
    at = 0
    for part in parts:
        if whole is None:
            whole = np.empty(length, dtype=part.dtype)
        whole[at : at + len(part)] = part
        at += len(part)
    return np.empty(0, dtype=np.int64) if whole is None else whole


@dataclass(frozen=True)
class Waits:
    """Times in which the first CPU of a rank had nothing to do, and the message that ended each."""

    rank: Integers
    source: Integers
    operation: Integers
    start: Integers
    until: Integers
    posted: Integers
    bytes: Integers
    role: Integers
    is_arrival: NDArray[np.bool_]
    first: Integers


@dataclass(frozen=True)
class Stages:
    """What the message that ended a wait was doing: one element for each wait and stage of its message.

    `whole` is the time from the message's post to the end of the wait, `awaited` the part of it in the wait. Those of
    wait w are the `count[w]` from `first[w]` on.
    """

    wait: Integers
    stage: Integers
    whole: Integers
    awaited: Integers
    first: Integers
    count: Integers


@dataclass(frozen=True)
class Timed:
    """A replay with its times."""

    operations: Operations
    report: _core.ReplayReport
    began: Integers
    ended: Integers
    waits: Waits
    stages: Stages

    @property
    def time_ps(self) -> int:
        """The virtual time at which the last rank ends."""
        return int(self.report.finish_ps.max())

    @cached_property
    def calcs(self) -> tuple[Integers, Integers, Integers]:
        """Rank, beginning and length of each computation on a first CPU."""
        chosen = (self.operations.kind == CALC) & (self.operations.cpu == 0)
        return self.operations.rank[chosen], self.began[chosen], self.operations.amount[chosen] * 1000

    @cached_property
    def waiting_call(self) -> Integers:
        """For each wait the MPI call in which the program waited, as an index of `operations.calls`."""
        return _waiting_calls(self.operations, self.began, self.ended, self.waits)

    def next_number(self, rank: int, time: int, of_rank: _core.GoalRank) -> int:
        """Which of the rank's calls of its function begins the first operation from this time on; 0: not known."""
        own = slice(self.operations.first[rank], self.operations.first[rank + 1])
        is_message = (self.operations.kind[own] != CALC) & (self.operations.cpu[own] == 0)
        following = np.flatnonzero(is_message & (self.began[own] >= time))
        if len(following) == 0:
            return 0
        return int(of_rank.begun_number[following[np.argmin(self.began[own][following])]])

    def waiting_number(self, wait: int, of_rank: _core.GoalRank) -> int:
        """Which of its rank's calls of this function `waiting_call` is, from 1; 0 if that is not known."""
        rank = int(self.waits.rank[wait])
        around = _operations_around(self.operations, self.began, self.ended, self.waits, rank)
        awaited, following = (int(one[wait - self.waits.first[rank]]) for one in around)
        if awaited >= 0 and of_rank.ended_in[awaited]:
            return int(of_rank.ended_number[awaited])
        return int(of_rank.begun_number[following]) if following >= 0 else 0


def timed(request: Request, schedule: _core.GoalSchedule, operations: Operations) -> Timed:
    """Replays with times. Raises InputError for a recording that comes to no end on this machine."""
    log = _core.ReplayLog()
    options = _core.ObservationOptions()
    options.network_history = True
    try:
        report = _core.replay_goal(request.description(), list(request.nodes), schedule, options, log)
    except ValueError as error:
        raise request.machine.refused(error) from error
    except _core.ReplayDeadlock as error:
        raise InputError("recording", str(error), "operations that come to an end") from error
    wait_rank = log.wait_rank
    order = np.argsort(wait_rank, kind="stable").astype(np.uint32)
    waits = Waits(
        rank=wait_rank[order],
        source=log.wait_source[order],
        operation=log.wait_operation[order],
        start=log.wait_from_ps[order],
        until=log.wait_until_ps[order],
        posted=log.wait_posted_ps[order],
        bytes=log.wait_bytes[order],
        role=log.wait_role[order],
        is_arrival=log.wait_is_arrival[order] > 0,
        first=np.searchsorted(wait_rank[order], np.arange(operations.ranks + 1)),
    )
    log.free_waits()
    return Timed(
        operations=operations,
        report=report,
        began=log.take_began_ps(),
        ended=log.take_ended_ps(),
        waits=waits,
        stages=_stages(log, order),
    )


def _stages(log: _core.ReplayLog, order: Integers) -> Stages:
    """`order` lists the waits of the log in their order here."""
    logged, stage, whole, awaited = log.take_stages()
    place = np.empty_like(order)
    place[order] = np.arange(len(order), dtype=order.dtype)
    counts = np.bincount(logged, minlength=len(order))
    first = np.cumsum(counts) - counts
    return Stages(
        wait=place[logged],
        stage=stage,
        whole=whole,
        awaited=awaited,
        first=first[order].astype(np.uint32),
        count=counts[order].astype(np.uint8),
    )


def _waiting_calls(operations: Operations, began: Integers, ended: Integers, waits: Waits) -> Integers:
    """The call in which the program waited, of each wait."""
    calls = np.zeros(len(waits.rank), dtype=np.uint16)
    for rank in range(operations.ranks):
        of_rank = slice(waits.first[rank], waits.first[rank + 1])
        own = slice(operations.first[rank], operations.first[rank + 1])
        if own.start == own.stop or of_rank.start == of_rank.stop:
            continue
        awaited, following = _operations_around(operations, began, ended, waits, rank)
        known = np.where(awaited >= 0, operations.ended_in[own][awaited], 0)
        begun = np.where(following >= 0, operations.begun_in[own][following], 0)
        calls[of_rank] = np.where(known > 0, known, begun)
    return calls


def _operations_around(
    operations: Operations, began: Integers, ended: Integers, waits: Waits, rank: int
) -> tuple[Integers, Integers]:
    """The operation for whose end the program waited, and the first that it began then, for each wait of a rank.

    Both are numbers of the rank's operations, -1 for none.
    A wait ends in the call that saw the end of the one; if that is not known, in the one that began the other.
    """
    low, high = int(operations.first[rank]), int(operations.first[rank + 1])
    edges = slice(*np.searchsorted(operations.earlier, [low, high]))  # rank after rank
    binding = _binding(operations, ended, rank, edges)
    starts = np.maximum.accumulate(began[low:high])
    following = np.searchsorted(starts, waits.until[waits.first[rank] : waits.first[rank + 1]])
    has_next = following < high - low
    within = np.minimum(following, high - low - 1)
    awaited = np.where(has_next, binding[within], int(np.argmax(ended[low:high])))
    return awaited, np.where(has_next, within, -1)


def _binding(operations: Operations, ended: Integers, rank: int, edges: slice) -> Integers:
    """For each operation of a rank the one whose end it waited for last, both as numbers of the rank; -1: none."""
    low, high = int(operations.first[rank]), int(operations.first[rank + 1])
    required = ~operations.on_start[edges]
    earlier, later = operations.earlier[edges][required], operations.later[edges][required]
    order = np.lexsort((ended[earlier], later))
    binding = np.full(high - low, -1, dtype=np.int64)
    binding[later[order] - np.uint32(low)] = earlier[order] - np.uint32(low)  # the last to end stays
    return binding
