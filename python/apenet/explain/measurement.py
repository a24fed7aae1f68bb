"""The page of a measurement: what bench, traffic or a sweep has printed as JSON, as curves and a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from apenet.base.errors import InputError
from apenet.base.infiles import UnreadableError, read_json
from apenet.base.page import page as filled_page

MEASUREMENT = "measurement"
MOST_JSON_BYTES = 2**26
_SCRIPTS = ("parts.js", "measurement.js")
_POINTS = "points"
_MACHINES = "machines"
_OVER = ("offered", "size_bytes", "nodes", "ranks")
"""Columns over which a curve is drawn, the first that varies."""
_SHOWN = (
    "virtual_time_us",
    "time_us",
    "bandwidth_mib_s",
    "rate_per_s",
    "packet_latency_cycles",
    "network_latency_cycles",
    "accepted",
    "iteration_us",
    "dslash_us",
    "efficiency",
    "communication_share",
)
"""Columns that have a figure; of a table with none of them, the first that are numbers and vary."""
_MOST_FIGURES = 4
_LEAST_FACTOR = 1.1
"""A smaller ratio is said in percent."""
_MOST_CURVES = 12
_MOST_ROWS = 5000


def measurement(content: object, *, command: str = "", axes: Sequence[str] = ()) -> dict[str, Any]:
    """What the page shows of a measurement: an object as `--json` of bench or traffic prints it, or rows of a sweep.

    `axes`: the columns that a sweep has varied. Raises InputError for another content.
    """
    rows, conditions = _rows_and_conditions(content)
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = [name for name in names if all(_is_plain(row.get(name)) for row in rows)]
    varied = [name for name in columns if len({str(row.get(name)) for row in rows}) > 1]
    numbers = [name for name in varied if all(_is_number(row.get(name)) for row in rows)]
    over = next((name for name in (*_OVER, *axes) if name in numbers), None)
    shown = [name for name in _SHOWN if name in numbers and name != over]
    shown = shown or [name for name in numbers if name != over and name not in axes]
    by = [name for name in varied if name != over and (name in axes or name in ("machine", "channels"))]
    groups = list(dict.fromkeys(tuple(str(row.get(name)) for name in by) for row in rows))
    return {
        "kind": MEASUREMENT,
        "command": command,
        "title": _title(conditions, command),
        "verdict": {"text": _verdict(rows, conditions, over, shown, axes)},
        "conditions": {name: value for name, value in conditions.items() if _is_plain(value)},
        "warnings": [str(one) for one in conditions.get("warnings") or []],
        "version": conditions.get("version", ""),
        "over": over,
        "figures": shown[:_MOST_FIGURES] if over is not None else [],
        "curves": [
            {
                "name": ", ".join(f"{name} {value}" for name, value in zip(by, group, strict=True)),
                "rows": [n for n, row in enumerate(rows) if tuple(str(row.get(name)) for name in by) == group],
            }
            for group in groups[:_MOST_CURVES]
        ],
        "curves_left_out": max(0, len(groups) - _MOST_CURVES),
        "columns": columns,
        "rows": [[_finite(row.get(name)) for name in columns] for row in rows[:_MOST_ROWS]],
        "rows_left_out": max(0, len(rows) - _MOST_ROWS),
        "missing": _missing(conditions, axes),
    }


def read_measurement(file: Path) -> dict[str, Any]:
    """The measurement in a file that `--json` of bench or traffic has written. Raises InputError for another file."""
    try:
        content = read_json(file, MOST_JSON_BYTES)
    except UnreadableError as error:
        raise InputError("RUN", file, f"what --json of bench or traffic prints ({error})") from error
    return measurement(content)


def page(content: dict[str, Any]) -> str:
    """The page of a measurement, self-contained as that of a run."""
    return filled_page("apenet.explain", "explain.html", f"APENet: {content['title']}", _SCRIPTS, content)


def _rows_and_conditions(content: object) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    rows = _points(content) if isinstance(content, Mapping) else content
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError("RUN", "its content", "what --json of bench, traffic or sweep prints: an object with points")
    conditions = {name: one for name, one in content.items() if name != _POINTS} if isinstance(content, Mapping) else {}
    machines = [one for one in conditions.get(_MACHINES) or () if isinstance(one, dict)]
    warnings = [f"{one.get('machine')}: {text}" for one in machines for text in one.get("warnings") or ()]
    return rows, {**conditions, "warnings": [*(conditions.get("warnings") or ()), *warnings]}


def _points(content: Mapping[str, Any]) -> object:
    """The rows of an object; of one with the points of several machines (bench lqcd), with the machine in each."""
    machines = content.get(_MACHINES)
    if _POINTS in content or not isinstance(machines, list) or not all(isinstance(one, dict) for one in machines):
        return content.get(_POINTS)
    points = [(one.get("machine"), one.get(_POINTS)) for one in machines]
    if not all(isinstance(rows, list) and all(isinstance(row, dict) for row in rows) for _, rows in points):
        return None
    rows = [{"machine": name, **row} for name, rows in points for row in rows]
    return [
        {name: "x".join(map(str, one)) if isinstance(one, list) else one for name, one in row.items()} for row in rows
    ]


def _title(conditions: Mapping[str, Any], command: str) -> str:
    what = conditions.get("test") or (
        f"{conditions['pattern']} traffic" if "pattern" in conditions else command or "a sweep"
    )
    return f"{what} on {conditions['machine']}" if "machine" in conditions else str(what)


def _verdict(
    rows: Sequence[Mapping[str, Any]],
    conditions: Mapping[str, Any],
    over: str | None,
    shown: Sequence[str],
    axes: Sequence[str],
) -> str:
    """What the numbers say themselves, without a reason: a measurement has no recording."""
    if "pattern" in conditions:
        return _of_traffic(rows)
    if axes and shown:
        return _of_sweep(rows, shown[0], axes)
    if conditions.get("scaling") and {"machine", "ranks", "efficiency"} <= set(rows[0]):
        return _of_scaling(rows)
    if over == "size_bytes" and {"time_us", "bandwidth_mib_s"} <= set(shown):
        least = min(rows, key=lambda row: row["size_bytes"])
        most = max(rows, key=lambda row: row["bandwidth_mib_s"])
        return (
            f"{least['time_us']:.4g} us for {least['size_bytes']} B; at most {most['bandwidth_mib_s']:.4g} MiB/s, with "
            f"{most['size_bytes']} B."
        )
    return f"{len(rows)} measurements."


def _of_traffic(rows: Sequence[Mapping[str, Any]]) -> str:
    saturated = [row["offered"] for row in rows if row.get("saturated")]
    most = max(row["accepted"] for row in rows)
    if not saturated:
        return f"The network carries every load up to {max(row['offered'] for row in rows):g} of a link."
    return f"The network saturates at a load of {min(saturated):g} or below; it accepts at most {most:.3g}."


def _of_scaling(rows: Sequence[Mapping[str, Any]]) -> str:
    """The efficiency of each machine with most ranks, relative to its fewest."""
    machines = list(dict.fromkeys(row["machine"] for row in rows))
    most = [max((row for row in rows if row["machine"] == name), key=lambda row: row["ranks"]) for name in machines]
    return (
        "; ".join(f"{row['machine']}: efficiency {row['efficiency']:.3f} with {row['ranks']} ranks" for row in most)
        + "."
    )


def _of_sweep(rows: Sequence[Mapping[str, Any]], value: str, axes: Sequence[str]) -> str:
    """The axis that changes the value most, everything else being equal."""
    effects = {axis: _largest_ratio(rows, axis, value, axes) for axis in axes}
    ordered = sorted(effects.items(), key=lambda one: -one[1])
    if not ordered or ordered[0][1] <= 1:
        return f"Nothing that was varied changes {value}."
    axis, ratio = ordered[0]
    extent = f"a factor of {ratio:.3g}" if ratio >= _LEAST_FACTOR else f"{100 * (ratio - 1):.2g} %"
    return f"{axis} changes {value} most, by up to {extent} with everything else equal."


def _largest_ratio(rows: Sequence[Mapping[str, Any]], axis: str, value: str, axes: Sequence[str]) -> float:
    fixed = [*(name for name in axes if name != axis), *_OVER, "channels"]
    groups: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        if _is_number(row.get(value)) and row[value] > 0:
            key = tuple(str(row.get(name)) for name in fixed if name != axis)
            groups.setdefault(key, []).append(float(row[value]))
    return max((max(found) / min(found) for found in groups.values()), default=1.0)


def _missing(conditions: Mapping[str, Any], axes: Sequence[str]) -> str:
    """What the page of a run has, and this one cannot have; and how to get it."""
    if "pattern" in conditions:
        return (
            "Synthetic traffic has no program, no ranks and no cards: so no waits, no critical path and no placement. "
            "apenet run --report explains a program."
        )
    if axes:
        return (
            "A sweep keeps the results of its points, not their recordings: so no waits and no critical path. "
            "The command of one point with --report explains its time."
        )
    if conditions.get("layer") == "mpi" or conditions.get("scaling"):
        return (
            "A benchmark is many short simulations: so no waits, no critical path and no advice. apenet run --report "
            "with a program of your own explains one run."
        )
    return (
        "A benchmark below MPI is many short simulations without ranks of a program: so no waits, no critical path and "
        "no advice. A workload with --goal FILE writes its messages, and apenet replay FILE --report explains them."
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _finite(value: object) -> object:
    """A page has no number that is none: the latency of packets that never arrived."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, int | float | str | bool)
