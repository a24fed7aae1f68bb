"""Shared by the readers of printed tables: rows below a header, with notes on skipped lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from apenet.fit.text import Line

_ROW = re.compile(r"[+-]?[0-9.,]|[+-]?(nan|inf)\b", re.IGNORECASE)


def is_row(text: str) -> bool:
    """Whether a line begins like a row of numbers."""
    return _ROW.match(text.strip()) is not None


@dataclass
class PassedOver:
    """Lines among the rows that are no rows, written by a batch system or a library into the same file."""

    lines: list[Line] = field(default_factory=list)

    def add(self, line: Line) -> None:
        """Adds a line."""
        self.lines.append(line)

    def notes(self) -> Iterable[str]:
        """A note of one sentence, or none."""
        if self.lines:
            first = self.lines[0]
            what = "1 line is" if len(self.lines) == 1 else f"{len(self.lines)} lines are"
            text = first.text.strip()
            quoted = text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004 (fits into a line of a report)
            yield f'{what} no row of the table and skipped, the first in line {first.number}: "{quoted}"'


def titled(lines: Sequence[Line], title: re.Pattern[str]) -> list[Sequence[Line]]:
    """The parts of a file that begin with a line of this form, each up to the next."""
    starts = [index for index, line in enumerate(lines) if title.match(line.text.strip())]
    return [lines[start:end] for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)]


def columns(line: Line, expected: int, header: Line) -> list[str]:
    """The words of a row. Refuses a row with fewer words than the header has columns."""
    words = line.text.split()
    if len(words) < expected:
        raise line.error(line.text.strip(), f"{expected} columns as in the header, line {header.number}")
    return words
