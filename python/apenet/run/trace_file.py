"""The time line of a run as a file, which `--trace` names: what of the run is in it, and whether it is compressed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from apenet import _core
from apenet.base.errors import InputError
from apenet.base.sizes import parse_size
from apenet.run.core_file import CoreFile
from apenet.run.limits import MOST_PS, virtual_time_ps

HEADING = b'{"displayTimeUnit": "ns", "otherData": {"writer": "apenet"}, "traceEvents": [\n'
END = b"\n]}\n"
_RANGE = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")


@dataclass(frozen=True)
class TraceFilter:
    """What of a run a trace shows: ranks (none: all), virtual time from and to, and the least bytes of a message."""

    ranks: tuple[int, ...] = ()
    from_ps: int = 0
    to_ps: int = 0
    least_bytes: int = 0

    def apply(self, options: _core.ObservationOptions) -> None:
        """Tells the core."""
        options.set_trace_filter(list(self.ranks), self.from_ps, self.to_ps, self.least_bytes)

    def require_ranks(self, count: int) -> None:
        """Raises InputError for ranks that the run has not."""
        if self.ranks and max(self.ranks) >= count:
            raise InputError("trace_ranks", max(self.ranks), f"ranks of the run, from 0 to {count - 1}")


ALL = TraceFilter()


def trace_filter(
    trace: str | Path | None,
    ranks: str | Sequence[int] | None,
    begin: str | float | None,
    end: str | float | None,
    least: str | int | None,
) -> TraceFilter:
    """The filter of these options. Raises InputError, also for a filter without a trace."""
    given = {"trace_ranks": ranks, "trace_from": begin, "trace_to": end, "trace_least": least}
    named = [name for name, value in given.items() if value is not None]
    if named and trace is None:
        raise InputError(named[0], given[named[0]], "a trace, whose events it chooses: --trace FILE")
    from_ps = 0 if begin is None else virtual_time_ps("trace_from", begin)
    to_ps = 0 if end is None else virtual_time_ps("trace_to", end)
    if end is not None and not from_ps < to_ps <= MOST_PS:
        raise InputError("trace_to", end, "a virtual time after trace_from")
    return TraceFilter(_ranks(ranks), from_ps, to_ps, _least(least))


def _least(given: str | int | None) -> int:
    if given is None:
        return 0
    try:
        return parse_size(str(given))
    except InputError as error:
        raise InputError("trace_least", given, "a number of bytes such as 4096 or 4K") from error


def _ranks(given: str | Sequence[int] | None) -> tuple[int, ...]:
    expected = "ranks such as 0-3,8"
    if given is None:
        return ()
    if not isinstance(given, str):
        found = [rank for rank in given if isinstance(rank, int) and not isinstance(rank, bool) and rank >= 0]
        if not found or len(found) < len(given):
            raise InputError("trace_ranks", given, expected)
        return tuple(sorted(set(found)))
    ranks: set[int] = set()
    for part in given.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match is not None else (1, 0)
        if first > last:
            raise InputError("trace_ranks", given, expected)
        ranks |= set(range(first, last + 1))
    return tuple(sorted(ranks))


class TraceFile(CoreFile):
    """The file of a trace."""

    def __init__(self, path: Path) -> None:
        super().__init__("trace", path, HEADING, END)
