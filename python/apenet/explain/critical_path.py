"""The critical path: the chain of computation, software and messages whose lengths sum to the run's time.

From the end of the last rank it goes back along that rank to its last wait, along the message that ended the wait to
the rank that posted it, and so on to the beginning of virtual time.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from apenet import _core
from apenet.explain.timed import CALC, CLEAR, EAGER, PAYLOAD, READY, Integers, Timed
from apenet.explain.waiting import STAGES

KINDS = ("computation", "software", "eager message", "ready to send", "clear to send", "payload", "message")
_COMPUTATION, _SOFTWARE = 0, 1
_BY_ROLE = {EAGER: 2, READY: 3, CLEAR: 4, PAYLOAD: 5}
_OTHER = len(KINDS) - 1
_NO_WAIT = -1
_BLOCK = 1 << 17  # parts
_WITHOUT_STAGE = len(STAGES)


class Call(NamedTuple):
    """A call of MPI that a rank made."""

    rank: int
    name: str
    number: int
    """Its number among the rank's calls of this function, from 1; 0 if that is not known."""


class Contributor(NamedTuple):
    """What equal parts of the path take together: their text, number and picoseconds; and the longest of them."""

    what: str
    times: int
    ps: int
    longest_ps: int
    longest_part: int

    def joined(self, other: Contributor | None) -> Contributor:
        """Both together."""
        if other is None:
            return self
        longest = max((other, self), key=lambda one: one.longest_ps)
        return Contributor(
            self.what, self.times + other.times, self.ps + other.ps, longest.longest_ps, longest.longest_part
        )


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


class CriticalPath:
    """The parts of the path in the order of time; their lengths sum to the run's time exactly.

    An array for each property, because a run of millions of messages has as many parts.
    """

    def __init__(self, timed: Timed) -> None:
        self._timed = timed
        columns = _Columns()
        _trace_back(timed, columns)
        self.kind = columns.backwards("kind", np.uint8)
        self.rank = columns.backwards("rank", np.int32)
        self.source = columns.backwards("source", np.int32)
        self.start = columns.backwards("start", np.int64)
        self.until = columns.backwards("until", np.int64)
        self._call = columns.backwards("call", np.uint16)
        self._wait = columns.backwards("wait", np.int64)

    def __len__(self) -> int:
        return len(self.kind)

    def __iter__(self) -> Iterator[Part]:
        return self.parts(range(len(self)))

    def parts(self, numbers: Iterable[int]) -> Iterator[Part]:
        """Some of them."""
        operations = self._timed.operations
        for number in numbers:
            yield Part(
                kind=KINDS[self.kind[number]],
                rank=int(self.rank[number]),
                source=int(self.source[number]),
                start=int(self.start[number]),
                until=int(self.until[number]),
                bytes=int(self.bytes[number]),
                call=operations.name(int(self._call[number])),
                sent_in=operations.name(int(self._sent_in[number])),
                stages=self._stages_of(int(self._wait[number])),
            )

    @property
    def length(self) -> Integers:
        """The length of each part, in picoseconds."""
        lengths: Integers = self.until - self.start
        return lengths

    @cached_property
    def bytes(self) -> Integers:
        """The bytes of each part's message; 0 for computation and software."""
        found = np.zeros(len(self), dtype=np.int64)
        is_message = self._wait >= 0
        found[is_message] = self._timed.waits.bytes[self._wait[is_message]]
        return found

    @cached_property
    def _sent_in(self) -> Integers:
        found = np.zeros(len(self), dtype=np.uint16)
        is_message = self._wait >= 0
        waits, operations = self._timed.waits, self._timed.operations
        ended = self._wait[is_message]
        begun = operations.first[waits.source[ended]] + waits.operation[ended]
        found[is_message] = operations.begun_in[begun]
        return found

    def _stages_of(self, wait: int) -> tuple[tuple[str, int], ...]:
        """Stage and picoseconds, of each stage of the message that ended a wait."""
        if wait == _NO_WAIT:
            return ()
        stages = self._timed.stages
        first = int(stages.first[wait])
        chosen = slice(first, first + int(stages.count[wait]))
        names = (STAGES[stage] for stage in stages.stage[chosen])
        return tuple(zip(names, stages.whole[chosen].tolist(), strict=True))

    def composition(self) -> dict[str, int]:
        """Picoseconds for each kind that occurs."""
        counts = np.bincount(self.kind, minlength=len(KINDS))
        sums = np.zeros(len(KINDS), dtype=np.int64)
        np.add.at(sums, self.kind, self.length)
        return {kind: int(ps) for kind, count, ps in zip(KINDS, counts, sums, strict=True) if count}

    def stages_of_messages(self) -> dict[str, int]:
        """Picoseconds of all messages for each stage that occurs; the longest first."""
        sums = np.zeros(len(STAGES), dtype=np.int64)
        for _, stage, whole in self._shares():
            is_stage = stage < _WITHOUT_STAGE
            np.add.at(sums, stage[is_stage], whole[is_stage])
        found = ((name, int(ps)) for name, ps in zip(STAGES, sums, strict=True) if ps)
        return dict(sorted(found, key=lambda one: (-one[1], one[0])))

    def contributors(self) -> list[Contributor]:
        """What parts of one kind, call, size and stage take together; the longest first."""
        first, group = self._groups
        shape = (len(first), _WITHOUT_STAGE + 1)
        counts, sums = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        most, longest = np.full(shape, -1, dtype=np.int64), np.full(shape, -1, dtype=np.int64)
        for part, stage, ps in self._shares():
            np.add.at(counts, (group[part], stage), 1)
            np.add.at(sums, (group[part], stage), ps)
            np.maximum.at(most, (group[part], stage), ps)
        for part, stage, ps in self._shares():
            is_longest = (most[group[part], stage] == ps) & (longest[group[part], stage] < 0)
            found_parts, of_stage = part[is_longest][::-1], stage[is_longest][::-1]  # the first of equal ones stays
            longest[group[found_parts], of_stage] = found_parts
        found: dict[str, Contributor] = {}
        for one, stage in zip(*np.nonzero(counts), strict=True):
            text = self._text(int(first[one]))
            name = f"{text}: {STAGES[stage]}" if stage < _WITHOUT_STAGE else text
            numbers = (int(column[one, stage]) for column in (counts, sums, most, longest))
            found[name] = Contributor(name, *numbers).joined(found.get(name))
        return sorted(found.values(), key=lambda one: (-one.ps, one.what))

    def calls_of(self, number: int, schedule: _core.GoalSchedule) -> list[Call]:
        """The calls of a part: that began a message's operation and that waited for it; or the one after a computation.

        A part of software has its rank alone.
        """
        timed, wait = self._timed, int(self._wait[number])
        rank, call = int(self.rank[number]), int(self._call[number])
        names = timed.operations.calls
        if wait != _NO_WAIT:
            source, operation = int(self.source[number]), int(timed.waits.operation[wait])
            sent = Call(source, names[int(self._sent_in[number])], int(schedule.rank(source).begun_number[operation]))
            return [sent, Call(rank, names[call], timed.waiting_number(wait, schedule.rank(rank)))]
        following = timed.next_number(rank, int(self.until[number]), schedule.rank(rank)) if call else 0
        return [Call(rank, names[call], following)]

    @cached_property
    def _groups(self) -> tuple[Integers, Integers]:
        """Parts of one kind, size and calls: the first of each group, and the group of each part."""
        kind = self.kind.astype(np.int64) << 1 | (self.source == self.rank)
        _, calls = np.unique(kind << 32 | self._sent_in.astype(np.int64) << 16 | self._call, return_inverse=True)
        sizes, size = np.unique(self.bytes, return_inverse=True)
        _, first, group = np.unique(calls * len(sizes) + size, return_index=True, return_inverse=True)
        return first, group

    def _text(self, number: int) -> str:
        name = self._timed.operations.name
        sent_in, call = name(int(self._sent_in[number])), name(int(self._call[number]))
        size = int(self.bytes[number])
        text = KINDS[self.kind[number]]
        if self.source[number] != self.rank[number] or size > 0:
            text += f" of {size} B" + (f" from {sent_in}" if sent_in else "")
            return text + (f", awaited in {call}" if call else "")
        return f"{text} before {call}" if call else text

    @cached_property
    def _stage_counts(self) -> Integers:
        """The number of stages of each part."""
        found = np.zeros(len(self), dtype=np.int64)
        is_message = self._wait >= 0
        found[is_message] = self._timed.stages.count[self._wait[is_message]]
        return found

    def _shares(self) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Part, stage and picoseconds of each stage of each message, and of each part without stages.

        So many parts at a time.
        """
        stages = self._timed.stages
        for begin in range(0, len(self), _BLOCK):
            counts = self._stage_counts[begin : begin + _BLOCK]
            part = np.repeat(np.arange(begin, begin + len(counts)), counts)
            within = np.arange(len(part)) - np.repeat(np.cumsum(counts) - counts, counts)
            chosen = stages.first[self._wait[part]] + within
            yield part, stages.stage[chosen], stages.whole[chosen]
            alone = begin + np.flatnonzero(counts == 0)
            yield alone, np.full(len(alone), _WITHOUT_STAGE), self.length[alone]


class _Columns:
    """Parts as they are found, from the last to the first."""

    def __init__(self) -> None:
        self._columns = {name: array("q") for name in ("kind", "rank", "source", "start", "until", "call", "wait")}

    def append(self, kind: int, rank: int, source: int, start: int, until: int, call: int, wait: int) -> None:
        for column, value in zip(self._columns.values(), (kind, rank, source, start, until, call, wait), strict=True):
            column.append(value)

    def backwards(self, name: str, kind: Any) -> NDArray[Any]:  # noqa: ANN401 (a type of numpy)
        """A column in the order of time, which leaves this object."""
        return np.frombuffer(self._columns.pop(name), dtype=np.int64)[::-1].astype(kind)


def _trace_back(timed: Timed, columns: _Columns) -> None:
    waits = timed.waits
    computing = _Computing(timed)
    at = int(timed.report.finish_ps.max())
    rank = int(np.argmax(timed.report.finish_ps))
    while at > 0:
        low, high = int(waits.first[rank]), int(waits.first[rank + 1])
        last = low + int(np.searchsorted(waits.until[low:high], at, side="right")) - 1
        since = int(waits.until[last]) if last >= low else 0
        for kind, start, until, call in reversed(computing.parts(rank, since, at)):
            columns.append(kind, rank, rank, start, until, call, _NO_WAIT)
        if last < low:
            break
        posted, source = max(0, int(waits.posted[last])), int(waits.source[last])
        kind = _BY_ROLE.get(int(waits.role[last]), _OTHER)
        columns.append(kind, rank, source, posted, since, int(timed.waiting_call[last]), last)
        rank, at = source, posted


class _Computing:
    """Cuts a time of a rank's CPU into computation and the software of the MPI library."""

    def __init__(self, timed: Timed) -> None:
        rank, began, length = timed.calcs
        order = np.lexsort((began, rank))
        self._began, self._until = began[order], (began + length)[order]
        self._first = np.searchsorted(rank[order], np.arange(timed.operations.ranks + 1))
        self._calls = _NextCalls(timed)

    def parts(self, rank: int, start: int, until: int) -> list[tuple[int, int, int, int]]:
        """Kind, start, end and next call of the parts between two times, neighbours of one kind joined."""
        low, high = self._first[rank], self._first[rank + 1]
        first = low + int(np.searchsorted(self._until[low:high], start, side="right"))
        after = low + int(np.searchsorted(self._began[low:high], until))
        parts: list[tuple[int, int, int, int]] = []
        at = start
        begun = np.maximum(self._began[first:after], start).tolist()
        ended = np.minimum(self._until[first:after], until).tolist()
        for begin, end in zip(begun, ended, strict=True):
            if begin > at:
                parts.append((_SOFTWARE, at, begin, 0))
            if end > begin:
                since = parts.pop()[1] if parts and parts[-1][0] == _COMPUTATION else begin
                parts.append((_COMPUTATION, since, end, self._calls.after(rank, end)))
            at = max(at, end)
        if until > at:
            parts.append((_SOFTWARE, at, until, 0))
        return parts


class _NextCalls:
    """The call in which a rank begins its next operation."""

    def __init__(self, timed: Timed) -> None:
        operations = timed.operations
        chosen = np.flatnonzero((operations.kind != CALC) & (operations.cpu == 0))
        order = chosen[np.lexsort((timed.began[chosen], operations.rank[chosen]))].astype(np.uint32)
        self._began = timed.began[order]
        self._calls = operations.begun_in[order]
        self._first = np.searchsorted(operations.rank[order], np.arange(operations.ranks + 1))

    def after(self, rank: int, time: int) -> int:
        """0 if there is none, or it is not known."""
        low, high = self._first[rank], self._first[rank + 1]
        found = low + int(np.searchsorted(self._began[low:high], time))
        return 0 if found == high else int(self._calls[found])
