"""The time line of a run as a file, which `--trace` names: what of the run is in it, and whether it is compressed."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from apenet import _core
from apenet.base.errors import InputError
from apenet.base.outfiles import Held, IsOurs, OutFile, begins_with
from apenet.base.packing import is_packed, pack, packed
from apenet.base.sizes import parse_size
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


class TraceFile(Held):
    """The file of a trace: the core writes its text to `writable`, and `keep` puts it at its place.

    It is compressed by gzip if its name ends in .gz, with the same bytes each time.
    """

    def __init__(self, path: Path) -> None:
        packs = is_packed("trace", path)
        with ExitStack() as stack:
            self._file = stack.enter_context(OutFile("trace", path, packed(_is_trace) if packs else _is_trace))
            self._text: BinaryIO | None = stack.enter_context(tempfile.TemporaryFile()) if packs else None
            self._closing = stack.pop_all()

    @property
    def writable(self) -> str:
        """A path under which the text can be written, by this process."""
        return self._file.writable if self._text is None else f"/proc/{os.getpid()}/fd/{self._text.fileno()}"

    def keep(self) -> None:
        """Puts the file at its path if it is complete. Raises NotWrittenError."""
        if self._text is None:
            self._file.keep(END)
            return
        size = self._text.seek(0, 2)
        self._text.seek(max(0, size - len(END)))
        if self._text.read() != END:
            raise self._file.failed("it ends too early")
        try:
            pack(self._text, self._file.writable)
        except OSError as error:
            raise self._file.failed(error.strerror or str(error)) from error
        self._file.keep()


_is_trace: IsOurs = begins_with(HEADING)
