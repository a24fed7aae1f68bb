"""The critical path: the chain of computation, software and messages whose lengths sum to the run's time.

From the end of the last rank it goes back along that rank to its last wait, along the message that ended the wait to
the rank that posted it, and so on to the beginning of virtual time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from apenet.explain.timed import CALC, CLEAR, EAGER, PAYLOAD, READY, Timed
from apenet.explain.waiting import STAGES

KINDS = ("computation", "software", "eager message", "ready to send", "clear to send", "payload", "message")
_COMPUTATION, _SOFTWARE = 0, 1
_BY_ROLE = {EAGER: 2, READY: 3, CLEAR: 4, PAYLOAD: 5}


@dataclass(frozen=True)
class Part:
    """A part of the path, from `start` to `until`, in the order of time.

    On rank `rank` for computation and software; for a message from `source` to `rank`, which waited for it in `call`.
    """

    kind: str
    rank: int
    source: int
    start: int
    until: int
    bytes: int
    call: str
    """The call that waited for a message, or the next one after a computation."""
    sent_in: str = ""
    """The call that began the operation of a message."""
    stages: tuple[tuple[str, int], ...] = ()
    """What a message did for how many picoseconds, which sum to its length."""

    @property
    def length(self) -> int:
        """In picoseconds."""
        return self.until - self.start


def critical_path(timed: Timed) -> list[Part]:
    """The parts of the path in the order of time; their lengths sum to the run's time exactly."""
    waits = timed.waits
    computing = _Computing(timed)
    stages = _Stages(timed)
    at = int(timed.report.finish_ps.max())
    rank = int(np.argmax(timed.report.finish_ps))
    parts: list[Part] = []
    while at > 0:
        low, high = int(waits.first[rank]), int(waits.first[rank + 1])
        last = low + int(np.searchsorted(waits.until[low:high], at, side="right")) - 1
        since = int(waits.until[last]) if last >= low else 0
        parts += reversed(computing.parts(rank, since, at))
        if last < low:
            break
        posted = max(0, int(waits.posted[last]))
        call = timed.operations.name(timed.waiting_call[last])
        kind = KINDS[_BY_ROLE.get(int(waits.role[last]), len(KINDS) - 1)]
        source, size = int(waits.source[last]), int(waits.bytes[last])
        begun = timed.operations.first[source] + int(waits.operation[last])
        sent_in = timed.operations.name(timed.operations.begun_in[begun])
        parts.append(Part(kind, rank, source, posted, since, size, call, sent_in, stages.of(last)))
        rank, at = int(waits.source[last]), posted
    return parts[::-1]


class _Stages:
    """What the message that ended a wait did."""

    def __init__(self, timed: Timed) -> None:
        self._order = np.argsort(timed.stages.wait, kind="stable")
        self._first = np.searchsorted(timed.stages.wait[self._order], np.arange(len(timed.waits.rank) + 1))
        self._stages = timed.stages

    def of(self, wait: int) -> tuple[tuple[str, int], ...]:
        """Stage and picoseconds, of each stage that it was in."""
        chosen = self._order[self._first[wait] : self._first[wait + 1]]
        names = (STAGES[stage] for stage in self._stages.stage[chosen])
        return tuple(zip(names, self._stages.whole[chosen].tolist(), strict=True))


class _Computing:
    """Cuts a time of a rank's CPU into computation and the software of the MPI library."""

    def __init__(self, timed: Timed) -> None:
        rank, began, length = timed.calcs
        order = np.lexsort((began, rank))
        self._began, self._until = began[order], (began + length)[order]
        self._first = np.searchsorted(rank[order], np.arange(timed.operations.ranks + 1))
        self._calls = _NextCalls(timed)

    def parts(self, rank: int, start: int, until: int) -> list[Part]:
        """The parts between two times, neighbours of one kind joined."""
        low, high = self._first[rank], self._first[rank + 1]
        first = low + int(np.searchsorted(self._until[low:high], start, side="right"))
        after = low + int(np.searchsorted(self._began[low:high], until))
        parts: list[Part] = []
        at = start
        begun = np.maximum(self._began[first:after], start).tolist()
        ended = np.minimum(self._until[first:after], until).tolist()
        for begin, end in zip(begun, ended, strict=True):
            if begin > at:
                parts.append(_own(_SOFTWARE, rank, at, begin))
            if end > begin and parts and parts[-1].kind == KINDS[_COMPUTATION]:
                parts[-1] = self._computation(rank, parts[-1].start, end)
            elif end > begin:
                parts.append(self._computation(rank, begin, end))
            at = max(at, end)
        if until > at:
            parts.append(_own(_SOFTWARE, rank, at, until))
        return parts

    def _computation(self, rank: int, start: int, until: int) -> Part:
        return _own(_COMPUTATION, rank, start, until, self._calls.after(rank, until))


class _NextCalls:
    """The call in which a rank begins its next operation."""

    def __init__(self, timed: Timed) -> None:
        operations = timed.operations
        chosen = np.flatnonzero((operations.kind != CALC) & (operations.cpu == 0))
        self._order = chosen[np.lexsort((timed.began[chosen], operations.rank[chosen]))]
        self._began = timed.began[self._order]
        self._first = np.searchsorted(operations.rank[self._order], np.arange(operations.ranks + 1))
        self._operations = operations

    def after(self, rank: int, time: int) -> str:
        """Empty if there is none, or it is not known."""
        low, high = self._first[rank], self._first[rank + 1]
        found = low + int(np.searchsorted(self._began[low:high], time))
        return "" if found == high else self._operations.name(self._operations.begun_in[self._order[found]])


def _own(kind: int, rank: int, start: int, until: int, call: str = "") -> Part:
    return Part(KINDS[kind], rank, rank, start, until, 0, call)


def composition(parts: list[Part]) -> dict[str, int]:
    """Picoseconds of the path for each kind that occurs."""
    sums: dict[str, int] = {}
    for part in parts:
        sums[part.kind] = sums.get(part.kind, 0) + part.length
    return {kind: sums[kind] for kind in KINDS if kind in sums}


def stages_of_messages(parts: list[Part]) -> dict[str, int]:
    """Picoseconds of all messages of the path for each stage that occurs; the longest first."""
    sums: dict[str, int] = {}
    for part in parts:
        for stage, length in part.stages:
            sums[stage] = sums.get(stage, 0) + length
    return dict(sorted(sums.items(), key=lambda one: (-one[1], one[0])))


def contributors(parts: list[Part]) -> list[tuple[str, int, int]]:
    """What the path consists of by kind, call, size and stage: a text, how often, picoseconds; the longest first."""
    sums: dict[str, list[int]] = {}
    for part in parts:
        text = part.kind
        if part.source != part.rank or part.bytes > 0:
            text += f" of {part.bytes} B" + (f" from {part.sent_in}" if part.sent_in else "")
            text += f", awaited in {part.call}" if part.call else ""
        elif part.call:
            text += f" before {part.call}"
        for stage, length in part.stages or (("", part.length),):
            entry = sums.setdefault(f"{text}: {stage}" if stage else text, [0, 0])
            entry[0] += 1
            entry[1] += length
    return sorted(((text, count, length) for text, (count, length) in sums.items()), key=lambda one: (-one[2], one[0]))
