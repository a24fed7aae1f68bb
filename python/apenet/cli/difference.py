"""The comparison of two runs as apenet explain prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from apenet._core import version as __version__
from apenet.compare.difference import Cause, Change, Difference, shown_value
from apenet.explain.report import DIFFERENCE

_MOST_CAUSES = 12
_MANY = 10.0
"""A change to so many times the value is not told in percent."""
_WHY = {
    "program": "the programs do something else there",
    "computation": "the programs compute for another time there",
}


def table_of(found: Difference) -> RenderableType:
    """Verdict, first event, causes, and the table of changes."""
    lines = [Text(line) for line in _lines(found)]
    rows = _rows(found)
    if not rows:
        return Group(*lines)
    table = Table(box=None, pad_edge=False, title_justify="left")
    table.add_column("")
    for heading in ("first", "second", "change"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    return Group(*lines, Text(""), table)


def content_of(found: Difference) -> dict[str, Any]:
    """What the page of the comparison shows: the words and numbers of the table."""
    verdict, *lines = _lines(found)
    times = next(change.values for change in found.changes if (change.group, change.what) == ("run", "virtual time"))
    return {
        "kind": DIFFERENCE,
        "version": __version__,
        "title": "two runs",
        "names": list(found.paths),
        "verdict": {"text": _verdict(verdict, times)},
        "times": list(times),
        "lines": lines,
        "rows": [
            [f"{change.group}: {change.what}", change.unit, *change.values, _change(change)]
            for change in _changed(found)
        ],
    }


def _verdict(equal_or_not: str, times: tuple[float | None, float | None]) -> str:
    """The first line, and how the time has changed."""
    old, new = times
    if old is None or new is None or old in (0, new):
        return f"{equal_or_not}."
    word = "more" if new > old else "less"
    return f"{equal_or_not}. The second takes {abs(100 * (new / old - 1)):.3g} % {word} time."


def _rows(found: Difference) -> list[list[str]]:
    """What has changed: name, both values, change."""
    return [
        [f"{change.group}: {change.what}", *(_number(change, value) for value in change.values), _change(change)]
        for change in _changed(found)
    ]


def _changed(found: Difference) -> list[Change]:
    return [change for change in found.changes if change.values[0] != change.values[1]]


def _lines(found: Difference) -> Iterator[str]:
    first, second = found.paths
    yield f"{first} and {second}: {'equal, in every event' if found.equal else 'different'}"
    if found.first is not None:
        yield f"first event that differs: {found.first.text}"
        yield f"why: {_reason(found)}"
    elif found.unknown:
        yield found.unknown
    for cause in found.causes[:_MOST_CAUSES]:
        yield f"{cause.kind}: {_named(cause)}"
    if len(found.causes) > _MOST_CAUSES:
        kinds = Counter(cause.kind for cause in found.causes[_MOST_CAUSES:])
        yield "and more: " + ", ".join(f"{count} of the {kind}" for kind, count in kinds.items())
    if found.equal and found.causes:
        yield "none of this changes an event of these runs"
    for note in found.notes:
        yield f"note: {note}"


def _named(cause: Cause) -> str:
    old, new = (shown_value(value) for value in cause.values)
    return f"{cause.what} {old} -> {new}"


def _reason(found: Difference) -> str:
    """What explains the first event, by what is known of the two runs."""
    assert found.first is not None  # noqa: S101 (the caller has checked)
    if found.first.why in _WHY:
        return _WHY[found.first.why]
    asked = found.causes
    if len(asked) == 1:
        return f"{asked[0].kind}: {_named(asked[0])}"
    if asked:
        return "what was asked for or found, below"
    return "nothing that was asked for differs: the program is another one, or does not repeat"


def _number(change: Change, value: float | None) -> str:
    if value is None:
        return ""
    text = f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    return f"{text} {change.unit}".rstrip()


def _change(change: Change) -> str:
    old, new = change.values
    if old is None or new is None or old == 0:
        return ""
    if new >= _MANY * old:
        return f"{new / old:.3g} times"
    return f"{100 * (new / old - 1):+.3g} %"
