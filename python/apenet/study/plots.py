"""A study as a picture: lines over one number, a map over two, a tornado chart of drawn numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from apenet.base.errors import InputError
from apenet.base.pictures import FIGURE, write_picture
from apenet.study.plan import DRAW, ENDS
from apenet.study.rows import Row, columns, is_number, varying
from apenet.study.study import Study
from apenet.study.summary import HIGH_PERCENT, LOW_PERCENT, Swing, intervals, size_columns, swings_of

_MOST_LINES = 12
_MOST_BARS = 15
_FEW_FOR_A_MAP = 3
_LOG_RATIO = 20


def write_figure(study: Study, rows: Sequence[Row], value: str, over: str | None, path: Path) -> None:
    """Draws `value`. Raises InputError for a study with nothing that varies, and NotWrittenError."""
    axes = [*study.axis_names, *size_columns(rows, study.axis_names)]
    varied = [name for name in varying(rows, axes) if name != DRAW]
    numbers = [name for name in varied if all(is_number(row.get(name)) for row in rows)]
    if over is not None and over not in columns(rows):
        raise InputError("--over", over, "one of " + ", ".join(varied or axes))
    if over is not None and not all(is_number(row.get(over)) for row in rows):
        raise InputError("--over", over, "a column of numbers" + (f": {', '.join(numbers)}" if numbers else ""))
    title = f"apenet {' '.join(study.command)}"
    chosen = over or (numbers[0] if numbers else None)
    if study.draw_method == ENDS:
        swings = swings_of(rows, [name for name in axes if name != DRAW], study.drawn_values(), value)
        if len(swings) != 1:
            names = ", ".join(study.axis_names)
            raise InputError("STUDY", study.path, f"one combination for a tornado chart, not {len(swings)} of {names}")
        (only,) = swings.values()
        moving = [one for one in only if one.effect > 0]
        if not moving:
            raise InputError("--value", value, "a result that some number changes")
        write_picture(FIGURE, path, lambda plt: _tornado(plt, moving, len(only), value, title))
        return
    if chosen is None and not varied:
        raise InputError("STUDY", study.path, "a study over at least two values of something")
    others = [name for name in varied if name != chosen]
    if over is None and DRAW not in study.axis_names and _is_grid(rows, numbers, varied):
        write_picture(FIGURE, path, lambda plt: _heat_map(plt, rows, numbers, value, title))
    elif chosen is None:
        write_picture(FIGURE, path, lambda plt: _bars(plt, rows, varied, value, title))
    else:
        write_picture(FIGURE, path, lambda plt: _lines(plt, rows, chosen, others, value, title))


def _is_grid(rows: Sequence[Row], numbers: Sequence[str], varied: Sequence[str]) -> bool:
    if len(varied) != len(numbers) or len(numbers) != 2:  # noqa: PLR2004
        return False
    return all(len({row[name] for row in rows}) >= _FEW_FOR_A_MAP for name in numbers)


def _lines(plt: Any, rows: Sequence[Row], over: str, others: Sequence[str], value: str, title: str) -> Any:  # noqa: ANN401
    """A line for each combination of the others, with the interval of its draws."""
    figure, axes = plt.subplots(figsize=(7, 4.2), constrained_layout=True)
    has_draws = any(DRAW in row for row in rows)
    lines: dict[tuple[object, ...], list[tuple[float, float, float, float]]] = defaultdict(list)
    if has_draws:
        for key, one in intervals(rows, [*others, over], value).items():
            *other, place = key
            middle = one.median if one.given is None else one.given
            lines[tuple(other)].append((float(place), middle, one.low, one.high))  # type: ignore[arg-type]
    else:
        for row in rows:
            if is_number(row.get(value)):
                lines[tuple(row.get(name) for name in others)].append((row[over], row[value], row[value], row[value]))
    for number, (key, points) in enumerate(lines.items()):
        if number == _MOST_LINES:
            figure.text(0.99, 0.01, f"{len(lines) - _MOST_LINES} more lines not drawn", ha="right", fontsize=7)
            break
        places, middles, lows, highs = zip(*sorted(points), strict=True)
        label = ", ".join(f"{name.rpartition('.')[2]} {part}" for name, part in zip(others, key, strict=True))
        (line,) = axes.plot(places, middles, marker="o", markersize=3, label=label or None)
        if has_draws:
            axes.fill_between(places, lows, highs, color=line.get_color(), alpha=0.2, linewidth=0)
    all_places = [place for points in lines.values() for place, *_ in points]
    if all_places and min(all_places) > 0 and max(all_places) / min(all_places) >= _LOG_RATIO:
        axes.set_xscale("log", base=2)
    if others:
        axes.legend(frameon=False, fontsize=8)
    note = f"\nband: {LOW_PERCENT} to {HIGH_PERCENT} % of the draws" if has_draws else ""
    _label(axes, over, value, title + note)
    axes.set_ylim(bottom=0)
    return figure


def _heat_map(plt: Any, rows: Sequence[Row], numbers: Sequence[str], value: str, title: str) -> Any:  # noqa: ANN401
    across, up = numbers
    xs, ys = (sorted({row[name] for row in rows}) for name in numbers)
    grid = np.full((len(ys), len(xs)), np.nan)
    for row in rows:
        if is_number(row.get(value)):
            grid[ys.index(row[up]), xs.index(row[across])] = row[value]
    figure, axes = plt.subplots(figsize=(7, 4.6), constrained_layout=True)
    mesh = axes.imshow(grid, origin="lower", aspect="auto", cmap="viridis")
    for ticks, labels, values in (
        (axes.set_xticks, axes.set_xticklabels, xs),
        (axes.set_yticks, axes.set_yticklabels, ys),
    ):
        shown = range(0, len(values), max(1, len(values) // 10))
        ticks(list(shown))
        labels([f"{values[place]:g}" for place in shown])
    figure.colorbar(mesh, label=value)
    _label(axes, across, up, title, has_grid=False)
    return figure


def _bars(plt: Any, rows: Sequence[Row], varied: Sequence[str], value: str, title: str) -> Any:  # noqa: ANN401
    """A bar for each row, where no axis is a number."""
    found = [row for row in rows if is_number(row.get(value))]
    figure, axes = plt.subplots(figsize=(7, 1 + 0.3 * len(found)), constrained_layout=True)
    labels = [", ".join(str(row.get(name)) for name in varied) for row in found]
    axes.barh(range(len(found)), [row[value] for row in found])
    axes.set_yticks(range(len(found)), labels)
    axes.invert_yaxis()
    _label(axes, value, "", title)
    return figure


def _tornado(plt: Any, swings: Sequence[Swing], total: int, value: str, title: str) -> Any:  # noqa: ANN401
    """The value at the ends of each number's range."""
    shown = swings[:_MOST_BARS][::-1]
    figure, axes = plt.subplots(figsize=(7.5, 1.4 + 0.28 * len(shown)), constrained_layout=True)
    given = shown[0].given
    places = range(len(shown))
    for colour, end, label in (("C0", "at_low", "at the least plausible value"), ("C1", "at_high", "at the largest")):
        widths = [(given if getattr(one, end) is None else getattr(one, end)) - given for one in shown]
        axes.barh(places, widths, left=given, color=colour, label=label)
    axes.set_yticks(places, [one.key for one in shown])
    axes.axvline(given, color="black", linewidth=0.8)
    figure.legend(frameon=False, fontsize=8, loc="outside lower center", ncols=2)
    left_out = total - len(shown)
    note = f"\n{left_out} numbers with less effect, or none, are left out" if left_out else ""
    _label(axes, value, "", title + note)
    return figure


def _label(axes: Any, across: str, up: str, title: str, *, has_grid: bool = True) -> None:  # noqa: ANN401
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_title(title, fontsize=8, loc="left")
    if has_grid:
        axes.grid(visible=True, alpha=0.3)
