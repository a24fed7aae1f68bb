"""The comparison of two runs as apenet explain prints it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from apenet.compare.difference import Cause, Change, Difference, shown_value

_MOST_CAUSES = 12
_WHY = {
    "program": "the programs do something else there",
    "computation": "the programs compute for another time there",
}


def table_of(found: Difference) -> RenderableType:
    """Verdict, first event, causes, and the table of changes."""
    lines = [Text(line) for line in _lines(found)]
    rows = [change for change in found.changes if change.values[0] != change.values[1]]
    if not rows:
        return Group(*lines)
    table = Table(box=None, pad_edge=False, title_justify="left")
    table.add_column("")
    for heading in ("first", "second", "change"):
        table.add_column(heading, justify="right")
    for change in rows:
        table.add_row(
            f"{change.group}: {change.what}", *(_number(change, value) for value in change.values), _change(change)
        )
    return Group(*lines, Text(""), table)


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
    return f"{100 * (new / old - 1):+.3g} %"
