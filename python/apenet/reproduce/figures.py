"""The figures of the literature: our curves, and of the published points those that exist.

No curve of any figure was ever found as data. What is drawn of the literature is what its text prints: a point at a
size, or a line where only a minimum, a peak or a bound is printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from apenet.bench.result import BenchResult
from apenet.machine import machine_names
from apenet.machine.published import PublishedResult
from apenet.reproduce.sweeps import Sweep
from apenet.reproduce.tasks import Growth, Task

Axis = Literal["time_us", "bandwidth_mib_s", "bandwidth_mb_s", "node_mib_s"]
AXES: dict[str, str] = {
    "time_us": "time (us)",
    "bandwidth_mib_s": "bandwidth (MiB/s)",
    "bandwidth_mb_s": "bandwidth (MB/s)",
    "node_mib_s": "across the cut, a node (MiB/s)",
}
NO_DATA = "no data published for this figure"
_MB_PER_MIB = 2**20 / 1e6


@dataclass(frozen=True)
class Curve:
    """One of our curves: a sweep, or those of its points with so many channels."""

    label: str
    task: Sweep | Growth
    channels: int | None = None


@dataclass(frozen=True)
class FigureSpec:
    """A published figure: what to draw, and the keys of the published values that belong to it."""

    name: str
    title: str
    source: str
    axis: Axis
    curves: tuple[Curve, ...]
    keys: tuple[str, ...] = ()
    note: str = ""

    @property
    def machines(self) -> tuple[str, ...]:
        """Those that it needs."""
        return tuple(dict.fromkeys(curve.task.machine for curve in self.curves))

    @property
    def is_logarithmic(self) -> bool:
        """Times are drawn so."""
        return self.axis == "time_us"


@dataclass(frozen=True)
class Series:
    """A drawn curve."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Mark:
    """A published value: at x, or for all of the figure where x is None."""

    label: str
    x: float | None
    y: float
    role: str
    is_measured: bool
    """Whether the source prints it; otherwise it follows from what the source prints."""
    tolerance_percent: float | None
    bound: Literal["upper", "lower"] | None
    source: str

    @property
    def tolerance(self) -> tuple[float, float]:
        """How far below and above y a simulated value may be, in units of y; a bound is widened to its open side."""
        slack = self.y * (self.tolerance_percent or 0) / 100
        return (0 if self.bound == "upper" else slack, 0 if self.bound == "lower" else slack)


@dataclass(frozen=True)
class Figure:
    """A figure with its numbers."""

    spec: FigureSpec
    series: tuple[Series, ...]
    marks: tuple[Mark, ...]

    def to_json(self) -> dict[str, Any]:
        """As the report takes it."""
        spec = self.spec
        return {
            "name": spec.name,
            "title": spec.title,
            "source": spec.source,
            "note": spec.note,
            "x_label": "nodes" if spec.axis == "node_mib_s" else "message size (bytes)",
            "y_label": AXES[spec.axis],
            "log_y": spec.is_logarithmic,
            "no_data": "" if self.marks else NO_DATA,
            "series": [{"label": one.label, "x": one.x, "y": one.y} for one in self.series],
            "marks": [vars(mark) for mark in self.marks],
        }


def sweep(machine: str, test: str, sizes: str, **changes: Any) -> Sweep:  # noqa: ANN401 (fields of Sweep)
    """A sweep with everything else as the test has it."""
    fields: dict[str, Any] = {
        "settings": (),
        "layer": "card",
        "channels": (1,),
        "window": None,
        "memory": "host",
        "path": "auto",
        "until": "reply",
        "region_bytes": None,
        "iterations": None,
    }
    return Sweep(machine=machine, test=test, sizes=sizes, **{**fields, **changes})


def figures(keys: Mapping[str, PublishedResult], specs: list[FigureSpec], measured: Mapping[Task, Any]) -> list[Figure]:
    """The figures with their numbers; `keys` are the published results."""
    drawn = []
    for spec in specs:
        series = [_series(curve, spec.axis, measured[curve.task]) for curve in spec.curves]
        marks = [mark for key in spec.keys if key in keys for mark in _marks(key, keys[key], spec.axis)]
        drawn.append(Figure(spec, tuple(series), tuple(marks)))
    return drawn


def available(specs: list[FigureSpec]) -> list[FigureSpec]:
    """What can be drawn of them: the curves of machines that exist."""
    names = set(machine_names())
    found = [replace(spec, curves=tuple(c for c in spec.curves if c.task.machine in names)) for spec in specs]
    return [spec for spec in found if spec.curves]


def _series(curve: Curve, axis: Axis, result: BenchResult) -> Series:
    columns = result.columns
    xs = columns["nodes" if axis == "node_mib_s" else "size_bytes"]
    if axis == "bandwidth_mb_s":
        ys = [value * _MB_PER_MIB for value in columns["bandwidth_mib_s"]]
    else:
        ys = [float(value) for value in columns[axis]]
    chosen = [
        number for number in range(len(xs)) if curve.channels is None or columns["channels"][number] == curve.channels
    ]
    return Series(curve.label, tuple(float(xs[n]) for n in chosen), tuple(ys[n] for n in chosen))


def _marks(key: str, published: PublishedResult, axis: Axis) -> list[Mark]:
    scale = _scale(published.quantity, axis)
    if scale is None:
        return []
    bound = {"upper": "below ", "lower": "above ", None: ""}[published.bound]
    name = key.partition(".")[2].replace("_", " ")
    return [
        Mark(
            label=f"{name}: {bound}{point.value:g} {published.unit}",
            x=None if point.size_bytes is None else float(point.size_bytes),
            y=point.value * scale,
            role=point.role,
            is_measured=not published.source.startswith("derived"),
            tolerance_percent=published.tolerance_percent,
            bound=published.bound,
            source=published.source,
        )
        for point in published.points
    ]


def _scale(quantity: str, axis: Axis) -> float | None:
    """From a published quantity's unit to that of an axis, None where they differ in kind."""
    if quantity == axis:
        return 1
    in_mb = {"bandwidth_mib_s": _MB_PER_MIB, "bandwidth_mb_s": 1.0, "bandwidth_gb_s": 1e3}
    if quantity not in in_mb or not axis.startswith("bandwidth"):
        return None
    return in_mb[quantity] / in_mb[axis]
