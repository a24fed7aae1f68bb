"""Results as rows: the JSON object that a command prints, without its lists, beside the values of the axes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

Row = dict[str, Any]
MEASURED = "points"
"""The key of a list that has one measurement for each size or load."""

_SAID = ("machine", "version", "settings", "seed", "trace", "trace_hash", "test", "layer", "exit_status", "message")
_PREFERRED = ("virtual_time_us", "time_us", "packet_latency_cycles")


def row_values(axes: Mapping[str, str], result: Mapping[str, Any]) -> Iterator[Row]:
    """The rows of one point."""
    begin: Row = {name: typed(value) for name, value in axes.items()}
    whole = {name: value for name, value in _flat(result) if name not in (*_SAID, *begin)}
    for measured in result.get(MEASURED) or [{}]:
        yield {**begin, **whole, **dict(_flat(measured))}


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        elif not isinstance(value, list):
            yield f"{prefix}{key}", value


def typed(text: str) -> Any:  # noqa: ANN401
    """A value of an axis as a number, if it is one."""
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def default_value(rows: Sequence[Row]) -> str | None:
    """The column that a plot shows unless another one is asked for: a time."""
    return next((name for name in _PREFERRED if any(row.get(name) is not None for row in rows)), None)


def is_number(value: object) -> bool:
    """Whether a plot can show it."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def columns(rows: Sequence[Row]) -> list[str]:
    """All names of columns, in the order of their first appearance."""
    return list(dict.fromkeys(name for row in rows for name in row))


def varying(rows: Sequence[Row], names: Sequence[str]) -> list[str]:
    """The columns that do not have the same value in each row; all of `names` if there is one row only."""
    if len(rows) <= 1:
        return list(names)
    return [name for name in names if any(row.get(name) != rows[0].get(name) for row in rows[1:])]


def drawn_numbers(arguments: Sequence[str], axes: Sequence[str]) -> dict[str, float]:
    """The numbers that a command line sets and that are not axes."""
    found = {}
    for flag, setting in pairwise(arguments):
        key, _, text = setting.partition("=")
        if flag == "--set" and key not in axes:
            try:
                found[key] = float(json.loads(text))
            except (ValueError, TypeError):
                continue
    return found
