"""The figures of the literature: simulated curves, and the published points that are available.

The drawn points of the literature are those that its text prints: a point at a size, or a line for a minimum, a peak or
a bound. Only InfiniBand's two curves were printed as numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from apenet.machine import machine_names
from apenet.machine.published import PublishedResult
from apenet.reproduce.random_access import AccessCurve
from apenet.reproduce.sweeps import Sweep
from apenet.reproduce.tasks import Growth, Task

Axis = Literal["time_us", "bandwidth_mib_s", "bandwidth_mb_s", "node_mib_s", "million_updates_s"]
AXES: dict[str, str] = {
    "time_us": "time (us)",
    "bandwidth_mib_s": "bandwidth (MiB/s)",
    "bandwidth_mb_s": "bandwidth (MB/s)",
    "node_mib_s": "across the cut, a node (MiB/s)",
    "million_updates_s": "updates (million/s)",
}
_COUNTED = {"node_mib_s": "nodes", "million_updates_s": "processes"}
"""The unit of a horizontal axis without message sizes."""
NO_DATA = "no data published for this figure"
_MB_PER_MIB = 2**20 / 1e6


@dataclass(frozen=True)
class Curve:
    """A simulated curve: a sweep, or its points with one number of channels."""

    label: str
    task: Sweep | Growth | AccessCurve
    channels: int | None = None


@dataclass(frozen=True)
class FigureSpec:
    """A published figure: the curves to draw, and the keys of its published values."""

    name: str
    title: str
    source: str
    axis: Axis
    curves: tuple[Curve, ...]
    keys: tuple[str, ...] = ()
    note: str = ""

    @property
    def machines(self) -> tuple[str, ...]:
        """The machines that it needs."""
        return tuple(dict.fromkeys(curve.task.machine for curve in self.curves))

    @property
    def x_label(self) -> str:
        """The text at the horizontal axis."""
        return _COUNTED.get(self.axis, "message size (bytes)")

    @property
    def is_logarithmic(self) -> bool:
        """Whether the vertical axis is logarithmic, as for times."""
        return self.axis == "time_us"


@dataclass(frozen=True)
class Series:
    """A drawn curve."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class Mark:
    """A published value: at x, or for the whole figure if x is None."""

    label: str
    x: float | None
    y: float
    role: str
    is_measured: bool
    """Whether the source prints it; otherwise it follows from printed values."""
    tolerance_percent: float | None
    bound: Literal["upper", "lower"] | None
    source: str

    @property
    def tolerance(self) -> tuple[float, float]:
        """The largest distances below and above y, in units of y; a bound is widened to its open side."""
        slack = self.y * (self.tolerance_percent or 0) / 100
        return (0 if self.bound == "upper" else slack, 0 if self.bound == "lower" else slack)


@dataclass(frozen=True)
class Figure:
    """A figure with its data."""

    spec: FigureSpec
    series: tuple[Series, ...]
    marks: tuple[Mark, ...]
    steps: tuple[str, ...] = ()
    """The sizes at which MPI curves change their protocol."""

    @property
    def note(self) -> str:
        """The remarks below the figure."""
        return "; ".join(part for part in (self.spec.note, *self.steps) if part)

    def to_json(self) -> dict[str, Any]:
        """The object for the report."""
        spec = self.spec
        return {
            "name": spec.name,
            "title": spec.title,
            "source": spec.source,
            "note": self.note,
            "x_label": spec.x_label,
            "y_label": AXES[spec.axis],
            "log_y": spec.is_logarithmic,
            "no_data": "" if self.marks else NO_DATA,
            "series": [{"label": one.label, "x": one.x, "y": one.y} for one in self.series],
            "marks": [vars(mark) for mark in self.marks],
        }


def figures(keys: Mapping[str, PublishedResult], specs: list[FigureSpec], measured: Mapping[Task, Any]) -> list[Figure]:
    """The figures with their data; `keys` are the published results."""
    drawn = []
    for spec in specs:
        series = [_series(curve, spec.axis, measured[curve.task].columns) for curve in spec.curves]
        marks = [mark for key in spec.keys if key in keys for mark in _marks(key, keys[key], spec.axis)]
        steps = dict.fromkeys(measured[curve.task].protocol_step for curve in spec.curves)
        drawn.append(Figure(spec, tuple(series), tuple(marks), tuple(step for step in steps if step)))
    return drawn


def available(specs: list[FigureSpec]) -> list[FigureSpec]:
    """The curves that can be drawn: those of existing machines."""
    names = set(machine_names())
    found = [replace(spec, curves=tuple(c for c in spec.curves if c.task.machine in names)) for spec in specs]
    return [spec for spec in found if spec.curves]


def _series(curve: Curve, axis: Axis, columns: Mapping[str, list[int] | list[float]]) -> Series:
    xs = columns[_COUNTED.get(axis, "size_bytes")]
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
    """The factor from a published quantity's unit to that of an axis; None for different kinds of quantity."""
    if quantity == axis:
        return 1
    in_mb = {"bandwidth_mib_s": _MB_PER_MIB, "bandwidth_mb_s": 1.0, "bandwidth_gb_s": 1e3}
    if quantity not in in_mb or not axis.startswith("bandwidth"):
        return None
    return in_mb[quantity] / in_mb[axis]
