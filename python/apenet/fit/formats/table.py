"""Shared by the readers of printed tables: rows below a header, with notes on skipped lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from apenet.fit.measurement import Point, Rejected
from apenet.fit.text import Line

_ROW = re.compile(r"[+-]?[0-9.,]|[+-]?(nan|inf)\b", re.IGNORECASE)

_SHOWN = 60  # characters of a line that fit into a line of a report
_FAILURE = re.compile(
    r"\b(bad|errors?|fail(ed|ure|s)?|abort(ed|ing)?|corrupt(ed|ion)?|couldn.t|could not|crash(ed)?|invalid|time-?out"
    r"|timed out|killed|cancelled|lost|mismatch(es)?|segmentation fault|bus error|retr(y|ied|ies)|syndrome?|unable to"
    r"|wrong"
    r"|conflicting cpu frequency)\b",
    re.IGNORECASE,
)
_NO_FAILURE = re.compile(r"\b(no|0|zero|without)\s+(errors?|failures?|mismatch(es)?|retries)\b", re.IGNORECASE)
# IMB: "1: Error PingPong,size = 4096,sample #0"; OSU: "DATA VALIDATION ERROR: ... on message size 4096."
_SIZE_OF_FAILURE = re.compile(r"\bsize\s*[=:]?\s*([0-9]+)\b(?!\.[0-9])", re.IGNORECASE)
# OSU's column Validation; what IMB prints in place of a row's times; a host's own marks.
_INVALID = re.compile(r"fail(?:ed)?|invalid|error|time-out\.?;?|out-of-mem\.?;?|int-overflow\.?;?", re.IGNORECASE)


def is_row(text: str) -> bool:
    """Whether a line begins like a row of numbers."""
    return _ROW.match(text.strip()) is not None


@dataclass
class PassedOver:
    """Lines among the rows that are no points: written by a batch system or a library, or rows marked as invalid."""

    lines: list[Line] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    of_rejected: list[Line] = field(default_factory=list)
    """Lines for which a row is rejected."""

    def add(self, line: Line) -> None:
        """Adds a line."""
        self.lines.append(line)

    def notes(self) -> Iterable[str]:
        """Notes of one sentence: on the skipped lines, and on those that tell of a failure."""
        if not self.lines:
            return
        first = self.lines[0]
        what = "1 line is" if len(self.lines) == 1 else f"{len(self.lines)} lines are"
        yield f"{what} no row of the table and skipped, the first in line {first.number}: {_quoted(first)}"
        yield from failure_note(line for line in self.lines if line not in self.of_rejected)

    def without_failed(self, points: Iterable[Point]) -> tuple[Point, ...]:
        """The points without those of whose size a line tells that the benchmark has failed; they become rejected."""
        failed: dict[int, Line] = {}
        for line in self.lines:
            if tells_of_failure(line.text) and (size := _SIZE_OF_FAILURE.search(line.text)) is not None:
                failed.setdefault(int(size[1]), line)
        kept = []
        for point in points:
            if (line_of := failed.get(point.size_bytes)) is None:
                kept.append(point)
            else:
                self.rejected.append(Rejected(point.line, f"line {line_of.number}: {_quoted(line_of)}"))
                self.of_rejected.append(line_of)
        return tuple(kept)


def tells_of_failure(text: str) -> bool:
    """Whether a line that is no row says that something has gone wrong."""
    return _FAILURE.search(_NO_FAILURE.sub("", text)) is not None


def failure_note(lines: Iterable[Line]) -> Iterable[str]:
    """A note on the first of these lines that tells of a failure."""
    failed = next((line for line in lines if tells_of_failure(line.text)), None)
    if failed is not None:
        yield f"{failed.file}:{failed.number} tells of a failure, the rows may be wrong: {_quoted(failed)}"


def _quoted(line: Line) -> str:
    text = line.text.strip()
    return f'"{text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."}"'


def marked(line: Line, words: Sequence[str]) -> Rejected | None:
    """The row if the benchmark itself has marked it as invalid by a word."""
    for word in words:
        if _INVALID.fullmatch(word) is not None:
            return Rejected(line, word.rstrip(".;"))
    return None


def titled(lines: Sequence[Line], title: re.Pattern[str]) -> list[Sequence[Line]]:
    """The parts of a file that begin with a line of this form, each up to the next."""
    starts = [index for index, line in enumerate(lines) if title.match(line.text.strip())]
    return [lines[start:end] for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]


def columns(line: Line, expected: int, header: Line) -> list[str]:
    """The words of a row. Refuses a row with fewer or more of them than the header has columns.

    More are those of two programs that wrote into one file, or of a program whose header is another.
    """
    words = line.text.split()
    if len(words) != expected:
        raise line.error(line.text.strip(), f"{expected} columns as in the header, line {header.number}")
    return words
