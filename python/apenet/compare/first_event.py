"""The first event in which two replays differ: an operation that is another one, or that has other times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from apenet.compare.metrics import show_ps
from apenet.explain.timed import CALC, SEND, Operations, Timed


@dataclass(frozen=True)
class Event:
    """An operation of one of the runs, with its times; `text` says what it is."""

    text: str
    call: str
    began_ps: int
    ended_ps: int

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        return {"operation": self.text, "call": self.call, "began_ps": self.began_ps, "ended_ps": self.ended_ps}


@dataclass(frozen=True)
class FirstEvent:
    """Where two runs part: the number of an operation of a rank, and what it is in each; None where a run has ended.

    `why` is `program` for another operation, `computation` for another charge, and else `time`: the operation is the
    same, and takes other times.
    """

    rank: int
    number: int
    at_ps: int
    why: str
    events: tuple[Event | None, Event | None]

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        a, b = (None if event is None else event.to_json() for event in self.events)
        return {"rank": self.rank, "operation": self.number, "at_ps": self.at_ps, "why": self.why, "a": a, "b": b}

    @property
    def text(self) -> str:
        """One sentence."""
        place = f"at {show_ps(self.at_ps)} rank {self.rank}, operation {self.number}"
        a, b = self.events
        if a is None or b is None:
            there = "the first" if b is None else "the second"
            only = a if b is None else b
            return f"{place}: {'' if only is None else only.text} in {there} run alone; in the other the rank has ended"
        if self.why != "time":
            return f"{place}: {a.text} in the first run, {b.text} in the second"
        if a.began_ps != b.began_ps:
            verb, times = "begins", (a.began_ps, b.began_ps)
        else:
            verb, times = "ends", (a.ended_ps, b.ended_ps)
        old, new = map(show_ps, times)
        return f"{place}: {a.text} {verb} at {old} in the first run, {new} in the second"


def first_event(a: Timed, b: Timed) -> FirstEvent | None:
    """The first by time, then by rank; None if all operations are alike, or the numbers of ranks differ."""
    if a.operations.ranks != b.operations.ranks:
        return None
    found = [one for rank in range(a.operations.ranks) if (one := _of_rank(a, b, rank)) is not None]
    return min(found, key=lambda one: (one.at_ps, one.why != "program", one.rank), default=None)


def _of_rank(a: Timed, b: Timed, rank: int) -> FirstEvent | None:
    """The operation of a rank that differs first in time."""
    slices = [slice(one.operations.first[rank], one.operations.first[rank + 1]) for one in (a, b)]
    shared = min(one.stop - one.start for one in slices)
    ours, theirs = (slice(one.start, one.start + shared) for one in slices)
    differs = np.zeros(shared, dtype=bool)
    is_other = np.zeros(shared, dtype=bool)
    is_calc = (a.operations.kind[ours] == CALC) & (b.operations.kind[theirs] == CALC)
    # Not the tags: a recording numbers them in the order of first use by any rank.
    for name in ("kind", "peer", "amount"):
        is_other |= getattr(a.operations, name)[ours] != getattr(b.operations, name)[theirs]
    differs |= is_other | (a.began[ours] != b.began[theirs]) | (a.ended[ours] != b.ended[theirs])
    if not differs.any():
        if slices[0].stop - slices[0].start == slices[1].stop - slices[1].start:
            return None
        longer = a if slices[0].stop - slices[0].start > shared else b
        extra = int((slices[0] if longer is a else slices[1]).start) + shared
        event = _event(longer, extra)
        alone = (event, None) if longer is a else (None, event)
        return FirstEvent(rank, shared, event.began_ps, "program", alone)
    times = np.minimum(
        np.where(a.began[ours] != b.began[theirs], np.minimum(a.began[ours], b.began[theirs]), np.iinfo(np.int64).max),
        np.minimum(a.ended[ours], b.ended[theirs]),
    )
    times = np.where(is_other, np.minimum(a.began[ours], b.began[theirs]), times)
    candidates = np.flatnonzero(differs)
    place = int(candidates[np.lexsort((candidates, ~is_other[candidates], times[candidates]))[0]])
    why = "time"
    if is_other[place]:
        why = "computation" if is_calc[place] else "program"
    events = (_event(a, int(ours.start) + place), _event(b, int(theirs.start) + place))
    return FirstEvent(rank, place, int(times[place]), why, events)


def _event(timed: Timed, number: int) -> Event:
    operations = timed.operations
    call = int(operations.begun_in[number])
    text = _text(operations, number, operations.name(call))
    return Event(text, operations.calls[call], int(timed.began[number]), int(timed.ended[number]))


def _text(operations: Operations, number: int, call: str) -> str:
    amount = int(operations.amount[number])
    if operations.kind[number] == CALC:
        return f"computation of {show_ps(1000 * amount)}"
    is_send = operations.kind[number] == SEND
    verb, preposition = ("send", "to") if is_send else ("receive", "from")
    return f"{verb} of {amount} B {preposition} rank {operations.peer[number]}{f' in {call}' if call else ''}"
