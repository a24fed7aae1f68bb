"""A replay of the recorded operations: when each began and ended, and for what each rank waited.

All arrays have one element for each operation of all ranks, rank after rank in the order of the recording, or one for
each wait, rank after rank in the order of time. Times are picoseconds of virtual time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from apenet import _core
from apenet.base.errors import InputError
from apenet.run.results import Request

Integers = NDArray[np.int64]
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
    counts = [len(rank.first_successor) - 1 for rank in ranks]
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def joined(name: str) -> Integers:
        return np.concatenate([getattr(rank, name) for rank in ranks])

    earlier = [
        np.repeat(np.arange(count), np.diff(rank.first_successor)) + start
        for rank, count, start in zip(ranks, counts, first, strict=False)
    ]
    later = [(rank.successors & (ON_START - 1)) + start for rank, start in zip(ranks, first, strict=False)]
    return Operations(
        ranks=schedule.rank_count,
        calls=[call.partition("@")[0] for call in schedule.calls],
        places=[call.partition("@")[2] for call in schedule.calls],
        first=first,
        rank=np.repeat(np.arange(schedule.rank_count), counts),
        kind=joined("kinds"),
        amount=joined("amounts"),
        peer=joined("peers"),
        tag=joined("tags"),
        cpu=joined("cpus"),
        begun_in=joined("begun_in"),
        ended_in=joined("ended_in"),
        earlier=np.concatenate(earlier),
        later=np.concatenate(later),
        on_start=np.concatenate([rank.successors for rank in ranks]) >= ON_START,
    )


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

    `whole` is the time from the message's post to the end of the wait, `awaited` the part of it in the wait.
    """

    wait: Integers
    stage: Integers
    whole: Integers
    awaited: Integers


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
    ranks = range(operations.ranks)
    order = np.argsort(log.wait_rank, kind="stable")
    waits = Waits(
        rank=log.wait_rank[order],
        source=log.wait_source[order],
        operation=log.wait_operation[order],
        start=log.wait_from_ps[order],
        until=log.wait_until_ps[order],
        posted=log.wait_posted_ps[order],
        bytes=log.wait_bytes[order],
        role=log.wait_role[order],
        is_arrival=log.wait_is_arrival[order] > 0,
        first=np.searchsorted(log.wait_rank[order], np.arange(operations.ranks + 1)),
    )
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return Timed(
        operations=operations,
        report=report,
        began=np.concatenate([log.began_ps(rank) for rank in ranks]),
        ended=np.concatenate([log.ended_ps(rank) for rank in ranks]),
        waits=waits,
        stages=Stages(
            wait=place[log.stage_wait],
            stage=log.stage_kind,
            whole=log.stage_whole_ps,
            awaited=log.stage_awaited_ps,
        ),
    )


def _waiting_calls(operations: Operations, began: Integers, ended: Integers, waits: Waits) -> Integers:
    """The call that saw the end for which the next operation of the program waited."""
    required = ~operations.on_start
    earlier, later = operations.earlier[required], operations.later[required]
    order = np.lexsort((ended[earlier], later))
    binding = np.full(len(began), -1)
    binding[later[order]] = earlier[order]  # if several match, the one that ended last stays
    calls = np.zeros(len(waits.rank), dtype=np.int64)
    for rank in range(operations.ranks):
        low, high = operations.first[rank], operations.first[rank + 1]
        of_rank = slice(waits.first[rank], waits.first[rank + 1])
        if low == high or of_rank.start == of_rank.stop:
            continue
        starts = np.maximum.accumulate(began[low:high])
        following = low + np.searchsorted(starts, waits.until[of_rank])
        last = low + int(np.argmax(ended[low:high]))
        awaited = np.where(following < high, binding[np.minimum(following, high - 1)], last)
        known = np.where(awaited >= 0, operations.ended_in[awaited], 0)
        begun = np.where(following < high, operations.begun_in[np.minimum(following, high - 1)], 0)
        calls[of_rank] = np.where(known > 0, known, begun)
    return calls
