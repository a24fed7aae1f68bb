"""Lines and numbers of measurement files; errors name file, line and value."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from apenet.base.errors import ApenetError, InputError, shown
from apenet.base.escape import escape_line
from apenet.base.foreign import HEAD_BYTES, recognise_bytes, recognise_markup
from apenet.base.infiles import UnreadableError, read_bytes

LARGEST_BYTES = 2**26
"""Size limit of a file; a table of measurements has kilobytes."""
MOST_LINES = 100_000
"""Every reader reads every line: a second for so many."""

_EXPECTED = "the text that a benchmark prints, CSV or JSON"

LEAST_POSITIVE, LARGEST_POSITIVE = 1e-18, 1e18
"""Limits of measured quantities: fits compute with their squares and quotients."""
LARGEST_WHOLE = 2**48

_PLAIN = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:nan(?:\(.*\))?|inf(?:inity)?|[0-9]+\.#\w+)", re.IGNORECASE)
_COMMA = re.compile(r"[+-]?[0-9]{1,3}(?:[.,' \u00a0\u202f\u2019][0-9]{3})*[.,]?[0-9]*|[+-]?[0-9]+,[0-9]*")


class MeasurementError(ApenetError):
    """An unusable measurement file: file, line, value, what was expected."""

    def __init__(self, file: str, line: int | None, value: object, expected: str) -> None:
        place = escape_line(file if line is None else f"{file}:{line}")
        super().__init__(
            f"{place}: {escape_line(value) if isinstance(value, Quoted) else shown(value)}: expected {expected}"
        )
        self.file = file
        self.line = line
        self.value = value
        self.expected = expected


class Quoted(str):
    """A value that an error states in words: `the file is empty`."""

    __slots__ = ()


@dataclass(frozen=True)
class Line:
    """One line of a file, counted from 1."""

    file: str
    number: int
    text: str

    def error(self, value: object, expected: str) -> MeasurementError:
        """An error in this line."""
        return MeasurementError(self.file, self.number, value, expected)


def read_lines(path: Path) -> list[Line]:
    """The lines of a text file in UTF-8.

    Raises InputError for an unreadable file, MeasurementError for one that is empty or not a text.
    """
    name = str(path)
    try:
        content = read_bytes(path, LARGEST_BYTES)
    except UnreadableError as error:
        raise InputError("file", name, f"a table of measurements that can be read: {error}") from error
    return lines_of(name, content)


def lines_of(name: str, content: bytes) -> list[Line]:
    """As `read_lines`, from the contents of a file."""
    found = recognise_bytes(content[:HEAD_BYTES])
    if found is not None:
        raise MeasurementError(name, None, Quoted(str(found)), _EXPECTED)
    if b"\0" in content:
        raise MeasurementError(name, None, Quoted("a binary file"), _EXPECTED)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise MeasurementError(name, line, Quoted(f"the byte 0x{content[error.start]:02x}"), "text in UTF-8") from error
    if not text.strip():
        raise MeasurementError(name, None, Quoted("the file is empty"), "measured points")
    markup = recognise_markup(text)
    if markup is not None:
        raise MeasurementError(name, None, Quoted(str(markup)), _EXPECTED)
    pieces = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if len(pieces) > MOST_LINES:
        raise MeasurementError(name, None, Quoted(f"{len(pieces)} lines"), f"a table of at most {MOST_LINES} lines")
    return [Line(name, number, piece) for number, piece in enumerate(pieces, start=1)]


def number(line: Line, text: str, what: str) -> float:
    """Parses a finite number as C and Python write it. `what` describes it: `a time in us`."""
    text = text.strip()
    if _PLAIN.fullmatch(text):
        value = float(text)
        if math.isfinite(value):
            return value
    if not text:
        raise line.error(Quoted("nothing"), what)
    if _NOT_FINITE.fullmatch(text) or _PLAIN.fullmatch(text):
        raise line.error(text, f"{what}, a finite number")
    if _COMMA.fullmatch(text):
        raise line.error(text, f"{what} with a decimal point and without thousands separators, such as 1234.5")
    raise line.error(text, f"{what}, a number such as 12.5")


def positive(line: Line, text: str, what: str) -> float:
    """Parses a number greater than zero."""
    value = number(line, text, what)
    if value <= 0:
        raise line.error(text.strip(), f"{what} greater than zero")
    if not LEAST_POSITIVE <= value <= LARGEST_POSITIVE:
        raise line.error(text.strip(), f"{what} from {LEAST_POSITIVE:g} to {LARGEST_POSITIVE:g}")
    return value


def whole(line: Line, text: str, what: str, least: int = 0) -> int:
    """Parses a whole number of at least `least`."""
    value = number(line, text, what)
    if not value.is_integer():
        raise line.error(text.strip(), f"{what}: a whole number, without thousands separators")
    if value < least:
        raise line.error(text.strip(), f"{what} of at least {least}")
    if value > LARGEST_WHOLE:
        raise line.error(text.strip(), f"{what} of at most {LARGEST_WHOLE}")
    return int(value)


def printed_resolution(text: str) -> float:
    """Half a unit of the last digit of a printed number: its largest rounding error."""
    mantissa, _, exponent = text.strip().lower().partition("e")
    _, _, decimals = mantissa.partition(".")
    return float(0.5 * 10.0 ** (int(exponent or 0) - len(decimals)))
