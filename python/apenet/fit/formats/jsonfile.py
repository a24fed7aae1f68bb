"""JSON: the output of `apenet bench --json` and `apenet calibrate --json`, and plain objects of the same shape.

`{"test": "pingpong", "points": [{"size_bytes": 64, "time_us": 1.5}, ...]}`, the list alone, or `{"size_bytes": [...],
"time_us": [...]}`. Keys contain units, as CSV columns do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from apenet.fit.formats import marks, quantities
from apenet.fit.measurement import PINGPONG, TESTS, Point, Rejected, Section
from apenet.fit.text import Line, MeasurementError, Quoted

FORM = "JSON"
OWN = "apenet bench"
# Tests of `apenet bench` between two nodes, and the corresponding tests here.
_OWN_TESTS = {**{name: name for name in TESTS}, "roundtrip": PINGPONG}
_ROUND_TRIP = "roundtrip"
_Row = tuple[int, dict[str, Any]]
"""A point, and its place in the list."""
_READ = ("test", "channels", "notes", "overheads", "points")
_EXPECTED = '{"test": "pingpong", "points": [{"size_bytes": 64, "time_us": 1.5}, ...]}'


def recognises(lines: Sequence[Line]) -> bool:
    """Whether these lines are JSON."""
    first = next((line.text.lstrip() for line in lines if line.text.strip()), "")
    # Launchers begin lines with the host's name in brackets.
    return re.match(r'\{|\[\s*([\[{\]"]|$)', first) is not None


def read(lines: Sequence[Line]) -> list[Section]:
    """One section for each object with points."""
    text = "\n".join(line.text for line in lines)
    top = lines[0]
    decoder = json.JSONDecoder(parse_constant=_Constant, object_pairs_hook=_unique)
    sections: list[Section] = []
    position = 0
    try:
        while position < len(text):
            if text[position].isspace():
                position += 1
                continue
            line = lines[text.count("\n", 0, position)]
            content, position = decoder.raw_decode(text, position)
            sections += _sections(line, content)
    except json.JSONDecodeError as error:
        raise lines[error.lineno - 1].error(Quoted("no JSON"), f"JSON: {error.msg}, column {error.colno}") from error
    except RecursionError as error:
        raise top.error(Quoted("JSON nested without end"), _EXPECTED) from error
    except _DoubledKeyError as error:
        raise top.error(str(error), "each key of an object once") from error
    except ValueError as error:  # too many digits
        raise top.error(Quoted("a number that cannot be read"), f"JSON: {error}") from error
    return sections


class _Constant:
    """Refuses NaN and Infinity, which are not JSON."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name


class _DoubledKeyError(ValueError):
    """Refuses an object with a duplicate key."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        names = [name for name, _ in pairs]
        raise _DoubledKeyError(next(name for name in names if names.count(name) > 1))
    return content


def _sections(line: Line, content: object) -> Iterator[Section]:
    if isinstance(content, dict) and isinstance(content.get("sweeps"), list):
        _refuse_failed(line, {key: value for key, value in content.items() if key != "sweeps"})
        for sweep in content["sweeps"]:
            yield _section(line, sweep)
        return
    yield _section(line, content)


def _section(line: Line, content: object) -> Section:
    if isinstance(content, list):
        content = {"points": content}
    if not isinstance(content, dict):
        _refuse(line, content)
    own = "machine" in content and "layer" in content
    test, name = _test(line, content)
    told = _refuse_failed(line, content)
    rows, rejected = _unmarked(line, list(enumerate(_rows(line, content))))
    factor = 0.5 if name == _ROUND_TRIP else 1.0
    points, implied = _points(line, rows, _channels(line, content), factor) if rows else ((), None)
    return Section(
        name or "points",
        OWN if own else FORM,
        test or implied,
        points,
        line,
        (*_notes(content), *(() if own else _notes_on_unread(line, told, rows))),
        _overheads(line, content),
        tuple(rejected),
    )


def _refuse_failed(line: Line, content: dict[str, Any]) -> dict[str, str]:
    """What the measurement says as a whole, also in objects in it. Refuses one that says of itself that it has failed.

    Lists are columns if there are no points.
    """
    whole = {
        key: value
        for key, value in content.items()
        if key not in _READ and not (isinstance(value, list) and "points" not in content)
    }
    told = dict(_cells(whole))
    cells = {
        name: cell
        for name, cell in told.items()
        if (marks.is_mark(name) and not ("." in name and marks.is_unclear(name, line, cell))) or marks.is_bad(cell)
    }
    found = marks.first_mark(marks.marks(list(cells)), line, list(cells.values()))
    if found is not None:
        raise line.error(Quoted(f"a measurement with {found.reason}"), "one that is valid: measure again")
    return told


def _notes(content: dict[str, Any]) -> Iterator[str]:
    given = content.get("notes")
    yield from (note for note in (given if isinstance(given, list) else ()) if isinstance(note, str))


def _notes_on_unread(line: Line, told: dict[str, str], rows: list[_Row]) -> Iterator[str]:
    placed = [(f"{line.file}: points[{index}]", dict(_cells(row))) for index, row in rows]
    yield from marks.notes_on_unread("field", placed, line.file, told)


def _unmarked(line: Line, rows: list[_Row]) -> tuple[list[_Row], list[Rejected]]:
    """The points without those that are marked as invalid, as `apenet calibrate` marks disturbed ones; and these."""
    left, rejected = [], []
    for index, row in rows:
        cells_of = dict(_cells(row))
        names, cells = list(cells_of), list(cells_of.values())
        found = marks.first_mark(marks.marks(names), line, cells)
        if found is None:
            left.append((index, row))
        else:
            rejected.append(Rejected(line, f"points[{index}]: {found.reason}"))
    return left, rejected


def _cells(row: dict[str, Any], within: str = "") -> Iterator[tuple[str, str]]:
    """The values of a point by name, also of objects in it: {"result": {"ok": false}} has a result.ok."""
    for name, value in row.items():
        if isinstance(value, dict) and value:
            yield from _cells(value, f"{within}{name}.")
        elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            for index, item in enumerate(value):
                yield from _cells(item, f"{within}{name}[{index}].")
        else:
            yield within + name, "" if value is None else _text(value)


def _test(line: Line, content: dict[str, Any]) -> tuple[str | None, str | None]:
    name = content.get("test")
    if name is None:
        return None, None
    if not isinstance(name, str) or name not in _OWN_TESTS:
        raise line.error(name, '"test" as one of ' + ", ".join(_OWN_TESTS))
    return _OWN_TESTS[name], name


def _channels(line: Line, content: dict[str, Any]) -> int:
    channels = content.get("channels", 1)
    if isinstance(channels, bool) or not isinstance(channels, int) or channels < 1:
        raise line.error(_text(channels), '"channels" as a whole number of at least 1')
    return channels


def _rows(line: Line, content: dict[str, Any]) -> list[dict[str, Any]]:
    rows = content.get("points")
    if rows is None:
        arrays = {key: value for key, value in content.items() if isinstance(value, list)}
        lengths = {len(value) for value in arrays.values()}
        if not arrays:
            _refuse(line, content)
        if len(lengths) != 1:
            found = ", ".join(f"{key} has {len(value)}" for key, value in arrays.items())
            raise line.error(Quoted(found), "lists of one length")
        rows = [dict(zip(arrays, values, strict=True)) for values in zip(*arrays.values(), strict=True)]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        _refuse(line, content)
    if not rows:
        raise line.error(Quoted("no points"), _EXPECTED)
    return rows


def _points(line: Line, rows: list[_Row], channels: int, factor: float) -> tuple[tuple[Point, ...], str | None]:
    names = list(rows[0][1])
    columns = quantities.choose(line, names)
    read = []
    for index, row in rows:
        for known in (columns.size, columns.time, columns.bandwidth, columns.channels):
            if known is not None and known.name not in row:
                raise line.error(Quoted(f"points[{index}] without {known.name}"), "the same keys in every point")
        cells = [_text(row.get(name, "")) for name in names]
        try:
            read.append((line, cells, quantities.point(line, columns, cells, channels)))
        except MeasurementError as error:
            raise line.error(Quoted(f"points[{index}]: {_text(error.value)}"), error.expected) from error
    quantities.check_units(columns, read)
    points = tuple(Point(point.size_bytes, point.time_us * factor, point.line, point.channels) for _, _, point in read)
    return points, columns.test


def _text(value: object) -> str:
    return json.dumps(value) if isinstance(value, bool | list | dict) else str(value)


def _overheads(line: Line, content: dict[str, Any]) -> tuple[float, float] | None:
    given = content.get("overheads")
    if not isinstance(given, dict):
        return None
    values = []
    for key in ("send_us", "receive_us"):
        value = given.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise line.error(_text(value), f'"overheads.{key}" as a time in us greater than zero')
        values.append(float(value))
    return values[0], values[1]


def _refuse(line: Line, content: object) -> NoReturn:
    raise line.error(_text(content)[:60], _EXPECTED)
