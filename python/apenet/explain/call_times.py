"""The time that ranks spend in each MPI call: waiting, and the software of the library."""

from __future__ import annotations

from typing import Any

import numpy as np

from apenet.explain.timed import CALC, Integers, Timed
from apenet.explain.waiting import CausedWaits

PS_PER_US = 1e6


def call_times(replay: Timed, pieces: CausedWaits) -> list[dict[str, Any]]:
    """For each MPI call and its place, all ranks together: operations begun, waiting and software; the longest first.

    Software of a rank is what is neither computation nor waiting. It belongs to the call in which the rank last began
    an operation or waited.
    """
    operations = replay.operations
    count = len(operations.calls)
    begun = np.bincount(operations.begun_in[operations.kind != CALC], minlength=count)
    waited = np.zeros(count, dtype=np.int64)
    np.add.at(waited, replay.waiting_call[pieces.wait], pieces.length)
    software = np.zeros(count, dtype=np.int64)
    for rank in range(operations.ranks):
        calls, lengths = _software(replay, rank)
        np.add.at(software, calls, lengths)
    rows = [
        {
            "call": name,
            "place": place,
            "operations": int(number),
            "waiting_us": int(wait) / PS_PER_US,
            "software_us": int(own) / PS_PER_US,
        }
        for name, place, number, wait, own in zip(
            operations.calls, operations.places, begun, waited, software, strict=True
        )
        if number or wait or own
    ]
    return sorted(rows, key=lambda row: (-row["waiting_us"] - row["software_us"], row["call"], row["place"]))


def _software(replay: Timed, rank: int) -> tuple[Integers, Integers]:
    """The call and the length in picoseconds of each stretch of software."""
    operations, waits = replay.operations, replay.waits
    own = slice(operations.first[rank], operations.first[rank + 1])
    is_message = (operations.kind[own] != CALC) & (operations.cpu[own] == 0)
    of_rank = slice(waits.first[rank], waits.first[rank + 1])
    times = np.concatenate([waits.until[of_rank], replay.began[own][is_message]])
    calls = np.concatenate([replay.waiting_call[of_rank], operations.begun_in[own][is_message]])
    if len(times) == 0:
        return calls, times
    order = np.argsort(times, kind="stable")
    times, calls = times[order], calls[order]
    times[0] = 0  # what comes before the first belongs to it
    ends = np.append(times, int(replay.report.finish_ps[rank]))
    ranks, began, length = replay.calcs
    low, high = np.searchsorted(ranks, [rank, rank + 1])
    other = _elapsed(began[low:high], length[low:high], ends)
    other += _elapsed(waits.start[of_rank], waits.until[of_rank] - waits.start[of_rank], ends)
    return calls, np.maximum(np.diff(ends - other), 0)


def _elapsed(began: Integers, length: Integers, times: Integers) -> Integers:
    """How much of disjoint intervals, in the order of time, has passed at each time."""
    if len(began) == 0:
        return np.zeros(len(times), dtype=np.int64)
    order = np.argsort(began, kind="stable")
    began, length = began[order], length[order]
    before = np.concatenate([[0], np.cumsum(length)])
    last = np.searchsorted(began, times, side="right") - 1
    inside = np.clip(times - began[np.maximum(last, 0)], 0, length[np.maximum(last, 0)])
    return np.where(last >= 0, before[np.maximum(last, 0)] + inside, 0)
