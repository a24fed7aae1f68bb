"""Other programs with the same messages: the operations of a recording in another order, or with other computation."""

from __future__ import annotations

import numpy as np

from apenet import _core
from apenet.explain.timed import CALC, ON_START, SEND, Integers, Operations

_OF_ONE_PAIR = (
    "MPI_Send",
    "MPI_Ssend",
    "MPI_Isend",
    "MPI_Issend",
    "MPI_Rsend",
    "MPI_Irsend",
    "MPI_Bsend",
    "MPI_Ibsend",
)
"""Calls whose sends a program may move: those of collective calls begin when their data is there."""


def balanced(schedule: _core.GoalSchedule, operations: Operations) -> _core.GoalSchedule | None:
    """Every rank computes the mean of all; None if they do already."""
    is_calc = operations.kind == CALC
    sums = np.bincount(operations.rank[is_calc], operations.amount[is_calc], operations.ranks)
    mean = sums.mean()
    if mean == 0 or (sums == 0).any() or np.ptp(sums) <= mean * 1e-3:
        return None
    other = schedule.copy()
    for rank in range(operations.ranks):
        of_rank = _Rank(operations, rank)
        amounts = of_rank.amounts.copy()
        calcs = of_rank.kinds == CALC
        amounts[calcs] = np.rint(amounts[calcs] * (mean / sums[rank]))
        of_rank.change(other, amounts, of_rank.edges)
    return other


def early_sends(schedule: _core.GoalSchedule, operations: Operations) -> _core.GoalSchedule | None:
    """Sends to one rank begin before the computation that directly precedes them; None without such."""
    allowed = [number for number, name in enumerate(operations.calls) if name in _OF_ONE_PAIR]
    other = None
    for rank in range(operations.ranks):
        of_rank = _Rank(operations, rank)
        is_sent = (of_rank.kinds == SEND) & np.isin(of_rank.begun_in, allowed)
        follows_calc = np.zeros(len(is_sent), dtype=bool)
        follows_calc[1:] = of_rank.kinds[:-1] == CALC
        moved = np.flatnonzero(is_sent & follows_calc)
        if len(moved):
            other = other or schedule.copy()
            of_rank.change(other, of_rank.amounts, _hoisted(of_rank, moved))
    return other


def overlapped_sends(schedule: _core.GoalSchedule, operations: Operations) -> _core.GoalSchedule | None:
    """Blocking sends that follow each other begin at once, and the rank goes on when all have ended."""
    other = None
    for rank in range(operations.ranks):
        of_rank = _Rank(operations, rank)
        is_sent = of_rank.kinds == SEND
        earlier, later, on_start = of_rank.edges
        chained = is_sent[earlier] & is_sent[later] & (later == earlier + 1) & ~on_start
        chained &= of_rank.ended_in[earlier] == of_rank.begun_in[earlier]
        if chained.any():
            other = other or schedule.copy()
            of_rank.change(other, of_rank.amounts, _overlapped(of_rank.edges, chained))
    return other


Edges = tuple[Integers, Integers, np.ndarray]


class _Rank:
    """The operations of one rank, with their own numbers. An edge: earlier, later, whether it waits for the start."""

    def __init__(self, operations: Operations, rank: int) -> None:
        self.rank = rank
        low, high = int(operations.first[rank]), int(operations.first[rank + 1])
        self.kinds, self.amounts = operations.kind[low:high], operations.amount[low:high]
        self.begun_in, self.ended_in = operations.begun_in[low:high], operations.ended_in[low:high]
        chosen = slice(*np.searchsorted(operations.earlier, [low, high]))  # rank after rank
        self.edges: Edges = (
            operations.earlier[chosen] - low,
            operations.later[chosen] - low,
            operations.on_start[chosen],
        )

    def change(self, schedule: _core.GoalSchedule, amounts: Integers, edges: Edges) -> None:
        earlier, later, on_start = edges
        order = np.lexsort((on_start, later, earlier))
        first = np.searchsorted(earlier[order], np.arange(len(self.kinds) + 1))
        successors = later[order] + np.where(on_start[order], ON_START, 0)
        schedule.change(self.rank, amounts.tolist(), first.tolist(), successors.tolist())


def _hoisted(of_rank: _Rank, moved: Integers) -> Edges:
    """Each moved send takes the place of the computations before it, which then wait for its start."""
    earlier, later, on_start = (list(column.tolist()) for column in of_rank.edges)
    below: dict[int, list[int]] = {}
    for number, one in enumerate(later):
        below.setdefault(one, []).append(number)
    dropped: set[int] = set()
    for send in moved.tolist():
        first = send
        while first > 0 and of_rank.kinds[first - 1] == CALC:
            first -= 1
        dropped |= {number for number in below.get(send, []) if first <= earlier[number] < send}
        for number in list(below.get(first, [])):
            if earlier[number] < first:
                earlier.append(earlier[number])
                later.append(send)
                on_start.append(on_start[number])
        earlier.append(send)
        later.append(first)
        on_start.append(True)
    kept = [number for number in range(len(earlier)) if number not in dropped]
    return (
        np.array(earlier, dtype=np.int64)[kept],
        np.array(later, dtype=np.int64)[kept],
        np.array(on_start, dtype=bool)[kept],
    )


def _overlapped(edges: Edges, chained: np.ndarray) -> Edges:
    """Chained sends wait for the start of the one before; what waits for the end of the last waits for all."""
    earlier, later, on_start = edges
    before = dict(zip(later[chained].tolist(), earlier[chained].tolist(), strict=True))
    more: list[tuple[int, int]] = []
    for first, second, start, is_chained in zip(
        earlier.tolist(), later.tolist(), on_start.tolist(), chained.tolist(), strict=True
    ):
        send = before.get(first)
        if is_chained or start:
            continue
        while send is not None:
            more.append((send, second))
            send = before.get(send)
    added = np.array(more, dtype=np.int64).reshape(-1, 2)
    return (
        np.concatenate([earlier, added[:, 0]]),
        np.concatenate([later, added[:, 1]]),
        np.concatenate([on_start | chained, np.zeros(len(more), dtype=bool)]),
    )
