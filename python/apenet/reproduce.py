"""Published results beside simulated ones. A result that was used to fit is never shown as a prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apenet import bench
from apenet._core import version as __version__
from apenet.bench.result import BenchResult
from apenet.errors import InputError
from apenet.machine import Machine, machines
from apenet.machine.schema import PublishedResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZES = "16:1M"


@dataclass(frozen=True)
class Comparison:
    """One published result and what the simulation gives for it."""

    machine: str
    key: str
    published: PublishedResult
    simulated: float

    @property
    def error_percent(self) -> float | None:
        """Deviation of the simulated from the published value; None where only a bound is published."""
        if self.published.bound != "about":
            return None
        return (self.simulated / self.published.value - 1) * 100

    @property
    def agrees(self) -> bool | None:
        """Whether the simulation is inside the tolerance; None for context, which proves nothing."""
        if self.published.role == "context":
            return None
        if self.error_percent is None:
            return self.simulated < self.published.value
        tolerance = self.published.tolerance_percent
        return None if tolerance is None else abs(self.error_percent) <= tolerance

    def to_json(self) -> dict[str, Any]:
        """One entry of `apenet reproduce --json`."""
        return {
            "machine": self.machine,
            "key": self.key,
            "test": self.published.test,
            "layer": self.published.layer,
            "quantity": self.published.quantity,
            "published": self.published.value,
            "bound": self.published.bound,
            "simulated": self.simulated,
            "error_percent": self.error_percent,
            "tolerance_percent": self.published.tolerance_percent,
            "role": self.published.role,
            "agrees": self.agrees,
            "source": self.published.source,
        }


@dataclass(frozen=True)
class Reproduction:
    """All comparisons, and the sweeps that they come from."""

    comparisons: tuple[Comparison, ...]
    sweeps: tuple[BenchResult, ...]

    @property
    def agrees(self) -> bool:
        """Whether nothing that claims to agree is outside its tolerance."""
        return all(comparison.agrees is not False for comparison in self.comparisons)

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet reproduce --json` prints."""
        return {"version": __version__, "results": [comparison.to_json() for comparison in self.comparisons]}


@dataclass(frozen=True)
class Sweep:
    """A test at a layer of a machine, and the published results that it answers."""

    machine: Machine
    test: str
    layer: str
    results: tuple[tuple[str, PublishedResult], ...]


def plan(only: Sequence[str] = ()) -> list[Sweep]:
    """The sweeps that answer the published results of all machines, or of those named: NAME or NAME.KEY."""
    sweeps: list[Sweep] = []
    known = set()
    for machine in machines():
        wanted: dict[tuple[str, str], list[tuple[str, PublishedResult]]] = {}
        for key, result in machine.file.results.items():
            names = {machine.name, f"{machine.name}.{key}"}
            known |= names
            if not only or names & set(only):
                wanted.setdefault((result.test, result.layer), []).append((key, result))
        sweeps += [Sweep(machine, test, layer, tuple(found)) for (test, layer), found in wanted.items()]
    unknown = [name for name in only if name not in known]
    if unknown:
        raise InputError("only", unknown[0], "one of " + ", ".join(sorted(known)))
    return sweeps


def reproduce(sweeps: Sequence[Sweep], progress: Callable[[Sweep], None] = lambda _sweep: None) -> Reproduction:
    """Measures every sweep and compares."""
    comparisons, measured = [], []
    for sweep in sweeps:
        progress(sweep)
        result = bench.measure(sweep.test, sweep.machine, sizes=SIZES, layer=sweep.layer)
        measured.append(result)
        comparisons += [
            Comparison(sweep.machine.name, key, published, _value(result, published))
            for key, published in sweep.results
        ]
    return Reproduction(tuple(comparisons), tuple(measured))


def _value(result: BenchResult, published: PublishedResult) -> float:
    values = result.times_us if published.quantity == "time_us" else result.bandwidths_mib_s
    if published.statistic == "at_size":
        return float(values[result.sizes_bytes == published.size_bytes][0])
    return float(values.min() if published.statistic == "minimum" else values.max())


def plot(reproduction: Reproduction, path: Path) -> None:
    """One row a machine: time and bandwidth over size, with the published values as lines."""
    import matplotlib as mpl  # noqa: PLC0415 (slow to load, and needed here only)

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    names = list(dict.fromkeys(sweep.machine for sweep in reproduction.sweeps))
    figure, rows = plt.subplots(len(names), 2, figsize=(12, 1 + 3.6 * len(names)), layout="constrained", squeeze=False)
    colours = {test: f"C{number}" for number, test in enumerate(bench.TESTS)}
    for name, (times, bandwidths) in zip(names, rows, strict=True):
        for sweep in reproduction.sweeps:
            if sweep.machine == name:
                style = {"color": colours[sweep.test], "marker": "o", "markersize": 3}
                times.loglog(sweep.sizes_bytes, sweep.times_us, label=f"{sweep.test} ({sweep.layer})", **style)
                bandwidths.semilogx(sweep.sizes_bytes, sweep.bandwidths_mib_s, **style)
        for comparison in reproduction.comparisons:
            if comparison.machine == name:
                axes = times if comparison.published.quantity == "time_us" else bandwidths
                _mark_published(axes, comparison, colours[comparison.published.test])
        times.set(title=name, xlabel="message size (bytes)", ylabel="virtual time (us)")
        bandwidths.set(title=name, xlabel="message size (bytes)", ylabel="bandwidth (MiB/s)", ylim=(0, None))
        times.legend(fontsize=8)
    figure.suptitle("simulated: dots; published: lines (dashed: fitted, dotted: predicted, dash-dotted: context)")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _mark_published(axes: Axes, comparison: Comparison, colour: str) -> None:
    published = comparison.published
    line = {"fitted": "--", "predicted": ":", "context": "-."}[published.role]
    bound = "< " if published.bound == "below" else ""
    axes.axhline(published.value, color=colour, linestyle=line, linewidth=1.2)
    axes.annotate(
        f"{bound}{published.value:g} {published.role}",
        (1, published.value),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        xytext=(-4, 3),
        ha="right",
        fontsize=8,
        color=colour,
    )
