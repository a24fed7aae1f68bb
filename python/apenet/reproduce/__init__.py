"""Compares published results with simulated ones, and says what each agreement is worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from apenet._core import version as __version__
from apenet.base.errors import InputError
from apenet.machine import machine as read_machine
from apenet.machine import machines
from apenet.machine.published import PublishedResult, Role
from apenet.machine.quantity import Origin, quantities
from apenet.reproduce.figures import Figure, FigureSpec, available, figures
from apenet.reproduce.layers import MACHINES as LAYERED_MACHINES
from apenet.reproduce.layers import LayerPlan, LayerTable
from apenet.reproduce.literature import FIGURES, LOADS
from apenet.reproduce.rows import Row, row_of
from apenet.reproduce.shapes import Shape, shapes
from apenet.reproduce.sweeps import sweeps_of
from apenet.reproduce.tasks import LinkLoads, LoadRun, Task, measure_all
from apenet.reproduce.unmeasured import NO_MACHINE, unmeasured_rows
from apenet.reproduce.values import value_of

__all__ = ["Figure", "Plan", "Reproduction", "Row", "Standing", "Tally", "Task", "plan", "reproduce"]


@dataclass(frozen=True)
class Plan:
    """The comparisons and pictures, and the measurements that they need."""

    results: tuple[tuple[str, str, PublishedResult], ...]
    """Machine, key, published result."""
    shapes: tuple[Shape, ...]
    unmeasured: tuple[Row, ...]
    figures: tuple[FigureSpec, ...]
    loads: tuple[LoadRun, ...]
    layers: tuple[LayerPlan, ...]

    @property
    def tasks(self) -> tuple[Task, ...]:
        """All tasks, each once."""
        wanted: list[Task] = [sweep for machine, _, result in self.results for sweep in sweeps_of(machine, result)]
        wanted += [sweep for shape in self.shapes for sweep in shape.sweeps]
        wanted += [curve.task for figure in self.figures for curve in figure.curves]
        wanted += self.loads
        wanted += [sweep for plan in self.layers for sweep in plan.sweeps.values()]
        return tuple(dict.fromkeys(wanted))


@dataclass(frozen=True)
class Tally:
    """Numbers of targets."""

    met: int
    missed: int
    unmeasured: int


@dataclass(frozen=True)
class Standing:
    """The evidence for a machine: its numbers by class, and its judged rows by class, those that pass and all."""

    machine: str
    numbers: dict[str, int]
    targets: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Reproduction:
    """All rows; with figures, also their curves and the link loads of a machine."""

    rows: tuple[Row, ...]
    figures: tuple[Figure, ...]
    loads: tuple[tuple[LoadRun, LinkLoads], ...]
    layers: tuple[LayerTable, ...]

    @property
    def agrees(self) -> bool:
        """True if every hard target is met; one that is not measured is not met."""
        return all(row.verdict == "pass" for row in self.counted if row.target == "hard")

    @property
    def counted(self) -> list[Row]:
        """The rows without those that repeat the published number of another row."""
        keys = {row.key for row in self.rows}
        return [row for row in self.rows if row.repeats not in keys]

    def count(self, target: str) -> Tally:
        """The numbers of targets of a kind that are met, missed and unmeasured; each published number counts once."""
        verdicts = [row.verdict for row in self.counted if row.target == target]
        return Tally(*(verdicts.count(verdict) for verdict in ("pass", "miss", "n/a")))

    @property
    def standings(self) -> list[Standing]:
        """One for each machine of the package with a judged row."""
        found = []
        for name in dict.fromkeys(row.machine for row in self.rows if row.role is not None):
            origins = [quantity.origin for _, quantity in quantities(read_machine(name).file)]
            judged = [row for row in self.counted if row.machine == name and row.verdict != "n/a"]
            numbers = {origin: origins.count(origin) for origin in get_args(Origin) if origin != "set"}
            targets = {
                role: (
                    sum(row.role == role and row.verdict == "pass" for row in judged),
                    sum(row.role == role for row in judged),
                )
                for role in get_args(Role)
            }
            found.append(Standing(name, numbers, targets))
        return found

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet reproduce --json` prints."""
        return {
            "version": __version__,
            "agrees": self.agrees,
            "hard": vars(self.count("hard")),
            "soft": vars(self.count("soft")),
            "outside": vars(self.count("outside")),
            "machines": [vars(standing) for standing in self.standings],
            "rows": [row.to_json() for row in self.rows],
            "figures": [figure.to_json() for figure in self.figures],
            "layers": [table.to_json() for table in self.layers],
        }


def plan(only: Sequence[str] = (), *, with_figures: bool = False) -> Plan:
    """The plan for the published results of all machines, or for those named by machine or key.

    Raises InputError for an unknown name.
    """
    results = [(machine.name, key, result) for machine in machines() for key, result in machine.file.results.items()]
    found = Plan(
        tuple(results),
        tuple(shapes()),
        tuple(unmeasured_rows()),
        tuple(available(FIGURES)) if with_figures else (),
        tuple(LOADS) if with_figures else (),
        tuple(map(LayerPlan, LAYERED_MACHINES)) if with_figures else (),
    )
    return found if not only else _narrowed(found, set(only))


def _narrowed(whole: Plan, only: set[str]) -> Plan:
    named = [(machine, key) for machine, key, _ in whole.results]
    named += [(shape.machine, shape.key) for shape in whole.shapes]
    named += [(row.machine, row.key) for row in whole.unmeasured]
    known = {name for pair in named for name in pair} - {NO_MACHINE}
    for name in sorted(only - known):
        raise InputError("only", name, "a machine or a key: one of " + ", ".join(sorted(known)))
    return Plan(
        tuple(result for result in whole.results if only & set(result[:2])),
        tuple(shape for shape in whole.shapes if only & {shape.machine, shape.key}),
        tuple(row for row in whole.unmeasured if only & {row.machine, row.key}),
        tuple(spec for spec in whole.figures if only & {*spec.machines, *spec.keys}),
        tuple(load for load in whole.loads if load.machine in only),
        tuple(table for table in whole.layers if table.machine in only),
    )


def reproduce(planned: Plan, progress: Callable[[Task], None] = lambda _task: None) -> Reproduction:
    """Measures in two processes, and compares."""
    measured = measure_all(planned.tasks, lambda task, _measured: progress(task))
    rows = []
    for machine, key, result in planned.results:
        found = [measured[sweep] for sweep in sweeps_of(machine, result)]
        for point in result.points:
            value = value_of(machine, result, found, point.size_bytes)
            rows.append(row_of(machine, key, result, point, value, sweeps_of(machine, result)[0].command))
    rows += [shape.row(measured) for shape in planned.shapes]
    # A figure shows all published values of its keys, also those outside the requested rows.
    published = {key: result for machine in machines() for key, result in machine.file.results.items()}
    return Reproduction(
        rows=(*rows, *planned.unmeasured),
        figures=tuple(figures(published, list(planned.figures), measured)),
        loads=tuple((load, measured[load]) for load in planned.loads),
        layers=tuple(table.table(measured) for table in planned.layers),
    )
