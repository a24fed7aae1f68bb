"""What the rows of a study tell: draws as intervals, axes without effect, two studies beside each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from apenet.study.plan import DRAW, MACHINE
from apenet.study.rows import Row, columns, is_number

LOW_PERCENT, HIGH_PERCENT = 5, 95
"""The percentiles of an interval."""

Key = tuple[object, ...]


@dataclass(frozen=True)
class Interval:
    """A value over the draws: that of the machine as it is, the median, and the percentiles of LOW and HIGH."""

    given: float | None
    median: float
    low: float
    high: float
    draws: int


@dataclass(frozen=True)
class Swing:
    """A value with one number at the two ends of its range, the others as the machine has them; None: not done."""

    key: str
    given: float
    at_low: float | None
    at_high: float | None

    @property
    def effect(self) -> float:
        """The larger one of the two changes."""
        return max(abs(one - self.given) for one in (self.at_low, self.at_high, self.given) if one is not None)


def swings_of(
    rows: Sequence[Row], by: Sequence[str], drawn: Mapping[str, Mapping[int, Mapping[str, float]]], value: str
) -> dict[Key, list[Swing]]:
    """For each combination of `by`, the numbers that were set to their ends, the strongest first.

    `drawn` has for each machine and draw the number that was set.
    """
    results: dict[Key, dict[int, float]] = defaultdict(dict)
    machines: dict[Key, str] = {}
    for row in rows:
        if is_number(row.get(value)):
            key = tuple(row.get(name) for name in by)
            results[key][row[DRAW]] = row[value]
            machines[key] = str(row[MACHINE])
    return {
        key: sorted(_swings(by_draw, drawn[machines[key]]), key=lambda one: -one.effect)
        for key, by_draw in results.items()
        if 0 in by_draw
    }


def _swings(by_draw: Mapping[int, float], drawn: Mapping[int, Mapping[str, float]]) -> Iterator[Swing]:
    ends: dict[str, list[tuple[float, float | None]]] = defaultdict(list)
    for draw, numbers in drawn.items():
        for name, number in numbers.items():
            ends[name].append((number, by_draw.get(draw)))
    for name, pair in ends.items():
        (_, at_low), (_, at_high) = sorted(pair, key=lambda end: end[0])
        yield Swing(name, by_draw[0], at_low, at_high)


def measured_columns(rows: Sequence[Row], axes: Sequence[str]) -> list[str]:
    """The columns that are results."""
    return [name for name in columns(rows) if name not in axes]


def size_columns(rows: Sequence[Row], axes: Sequence[str]) -> list[str]:
    """The columns that a command varies itself within a point: sizes, offered loads."""
    return [name for name in ("size_bytes", "offered") if name in columns(rows) and name not in axes]


def intervals(rows: Iterable[Row], by: Sequence[str], value: str) -> dict[Key, Interval]:
    """The draws of each combination of `by`, in the order of the rows. Rows without the value do not count."""
    import numpy as np  # noqa: PLC0415 (slow import)

    given: dict[Key, float] = {}
    drawn: dict[Key, list[float]] = defaultdict(list)
    for row in rows:
        number = row.get(value)
        if not is_number(number):
            continue
        key = tuple(row.get(name) for name in by)
        drawn.setdefault(key, [])
        if row.get(DRAW) == 0:
            given[key] = float(number)  # type: ignore[arg-type]
        else:
            drawn[key].append(float(number))  # type: ignore[arg-type]
    found = {}
    for key, values in drawn.items():
        if values:
            low, median, high = np.percentile(values, [LOW_PERCENT, 50, HIGH_PERCENT])
            found[key] = Interval(given.get(key), float(median), float(low), float(high), len(values))
    return found


def without_effect(rows: Sequence[Row], axes: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Axes over which no result of some machines changes, although rows differ in nothing else; these machines."""
    found: dict[str, list[str]] = defaultdict(list)
    for machine in dict.fromkeys(row[MACHINE] for row in rows):
        for axis in _without_effect([row for row in rows if row[MACHINE] == machine], axes):
            found[axis].append(str(machine))
    return list(found.items())


def _without_effect(rows: Sequence[Row], axes: Sequence[str]) -> list[str]:
    measured = measured_columns(rows, axes)
    found = []
    for axis in axes:
        others = [name for name in axes if name != axis]
        groups: dict[Key, dict[object, list[Key]]] = defaultdict(lambda: defaultdict(list))
        for row in rows:
            results = tuple(row.get(name) for name in measured)
            groups[tuple(row.get(name) for name in others)][row.get(axis)].append(results)
        compared = [list(by_value.values()) for by_value in groups.values() if len(by_value) > 1]
        if compared and all(results == by_value[0] for by_value in compared for results in by_value[1:]):
            found.append(axis)
    return found


def compared(first: Sequence[Row], second: Sequence[Row], by: Sequence[str], value: str) -> list[Row]:
    """The rows that both studies have, with both values and the change in percent; None without a first value."""
    others = {tuple(row.get(name) for name in by): row.get(value) for row in second}
    table = []
    for row in first:
        key = tuple(row.get(name) for name in by)
        if key not in others or not is_number(row.get(value)) or not is_number(others[key]):
            continue
        before, after = row[value], others[key]
        change = (after / before - 1) * 100 if before else None
        table.append({**dict(zip(by, key, strict=True)), "first": before, "second": after, "change_percent": change})
    return table
