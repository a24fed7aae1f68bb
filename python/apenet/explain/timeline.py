"""The time line: what each rank does when, and which messages end waits; reduced to what a screen can show."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from apenet.explain.timed import Integers, Timed
from apenet.explain.waiting import CausedWaits

COMPUTATION = -1
_STEPS = 3000  # a slice shorter than the run's time over this is joined with its neighbours
_MOST_RANKS = 64
_MOST_SLICES = 40_000
_MOST_ARROWS = 1500
_BLOCK = 1 << 16
_Slices = tuple[Integers, Integers, Integers, Integers]


def timeline(replay: Timed, pieces: CausedWaits) -> dict[str, Any]:
    """For each shown rank slices [start, length, cause, call], times in ns; arrows [sender, posted, receiver, arrived].

    A cause of -1 is computation; between slices is software. Of ranks that behave alike, the first is shown.
    """
    groups = _groups(replay)
    shown = [group[0] for group in groups]
    least = max(1, replay.time_ps // _STEPS)
    rows = []
    budget = _MOST_SLICES // max(1, len(shown))
    for rank in shown:
        slices = _slices(replay, pieces, rank)
        width = least
        joined = _joined(slices, width)
        while len(joined) > budget:
            width *= 2
            joined = _joined(slices, width)
        rows.append(
            [[round(start / 1e3, 3), round(length / 1e3, 3), cause, call] for start, length, cause, call in joined]
        )
    return {
        "time_ns": replay.time_ps / 1e3,
        "ranks": shown,
        "alike": [len(group) for group in groups],
        "slices": rows,
        "calls": [replay.operations.name(call) for call in range(len(replay.operations.calls))],
        "arrows": _arrows(replay, shown),
    }


def _groups(replay: Timed) -> list[list[int]]:
    """Ranks with the same shares of computation and waiting, to a hundredth of the time; every rank if they are few."""
    count = replay.operations.ranks
    if count <= _MOST_RANKS:
        return [[rank] for rank in range(count)]
    step = max(1, replay.time_ps // 100)
    while True:
        keys = np.stack(
            [replay.report.computed_ps // step, replay.report.waited_ps // step, replay.report.finish_ps // step]
        )
        groups: dict[tuple[int, ...], list[int]] = {}
        for rank, key in enumerate(keys.T.tolist()):
            groups.setdefault(tuple(key), []).append(rank)
        if len(groups) <= _MOST_RANKS:
            return list(groups.values())
        step *= 2


def _slices(replay: Timed, pieces: CausedWaits, rank: int) -> _Slices:
    """Start, length, cause and call of each slice of a rank."""
    ranks, began, length = replay.calcs
    own = ranks == rank
    low, high = np.searchsorted(pieces.wait, [replay.waits.first[rank], replay.waits.first[rank + 1]])
    starts = np.concatenate([began[own], pieces.start[low:high]])
    lengths = np.concatenate([length[own], pieces.length[low:high]])
    causes = np.concatenate([np.full(int(own.sum()), COMPUTATION), pieces.cause[low:high]])
    calls = np.concatenate([np.zeros(int(own.sum()), dtype=np.int64), replay.waiting_call[pieces.wait[low:high]]])
    order = np.argsort(starts, kind="stable")
    kept = order[lengths[order] > 0]
    return starts[kept], lengths[kept], causes[kept], calls[kept]


def _rows(slices: _Slices) -> Iterator[tuple[int, int, int, int]]:
    """The slices as numbers, of which only a block is in memory."""
    for begin in range(0, len(slices[0]), _BLOCK):
        yield from zip(*(column[begin : begin + _BLOCK].tolist() for column in slices), strict=True)


def _joined(slices: _Slices, width: int) -> list[tuple[int, int, int, int]]:
    """Neighbours of one kind, and slices shorter than the width with the longer one beside them, become one."""
    joined: list[tuple[int, int, int, int]] = []
    for start, length, cause, call in _rows(slices):
        if joined:
            before, extent, other_cause, other_call = joined[-1]
            gap = start - before - extent
            is_same = (cause, call) == (other_cause, other_call)
            if gap < width and (is_same or length < width or extent < width):
                kind = (cause, call) if length > extent else (other_cause, other_call)
                joined[-1] = (before, start + length - before, *kind)
                continue
        joined.append((start, length, cause, call))
    return joined


def _arrows(replay: Timed, shown: list[int]) -> list[list[float]]:
    """The messages that ended the longest waits between shown ranks."""
    waits = replay.waits
    between = (
        np.isin(waits.rank, shown) & np.isin(waits.source, shown) & (waits.rank != waits.source) & waits.is_arrival
    )
    chosen = np.flatnonzero(between)
    lengths = (waits.until - waits.start)[chosen]
    chosen = np.sort(chosen[np.argsort(-lengths, kind="stable")[:_MOST_ARROWS]])
    return [
        [
            int(waits.source[one]),
            round(int(waits.posted[one]) / 1e3, 3),
            int(waits.rank[one]),
            round(int(waits.until[one]) / 1e3, 3),
        ]
        for one in chosen
    ]
