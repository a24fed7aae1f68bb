"""Published results beside simulated ones. A result that was used to fit is never shown as a prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from apenet._core import version as __version__
from apenet.bench.result import BenchResult
from apenet.errors import InputError
from apenet.machine import machines
from apenet.machine.published import PublishedResult
from apenet.reproduce.rows import Row, row_of
from apenet.reproduce.sweeps import Sweep, sweeps_of
from apenet.reproduce.values import value_of

__all__ = ["Plan", "Reproduction", "Row", "Sweep", "plan", "reproduce"]


@dataclass(frozen=True)
class Plan:
    """Published results, with their machine and key, and the sweeps that give them."""

    results: tuple[tuple[str, str, PublishedResult], ...]
    sweeps: tuple[Sweep, ...]


@dataclass(frozen=True)
class Reproduction:
    """All rows, and the sweeps that they come from."""

    rows: tuple[Row, ...]
    measured: dict[Sweep, BenchResult]

    @property
    def agrees(self) -> bool:
        """Whether no hard target is missed."""
        return not any(row.target == "hard" and row.verdict == "miss" for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet reproduce --json` prints."""
        return {"version": __version__, "rows": [row.to_json() for row in self.rows]}


def plan(only: Sequence[str] = ()) -> Plan:
    """What answers the published results of all machines, or of those named: by machine, or by key."""
    results, known = [], set()
    for machine in machines():
        for key, result in machine.file.results.items():
            names = {machine.name, key}
            known |= names
            if not only or names & set(only):
                results.append((machine.name, key, result))
    for name in only:
        if name not in known:
            raise InputError("only", name, "one of " + ", ".join(sorted(known)))
    sweeps = dict.fromkeys(sweep for machine, _, result in results for sweep in sweeps_of(machine, result))
    return Plan(tuple(results), tuple(sweeps))


def reproduce(planned: Plan, progress: Callable[[Sweep], None] = lambda _sweep: None) -> Reproduction:
    """Measures every sweep and compares."""
    measured = {}
    for sweep in planned.sweeps:
        progress(sweep)
        measured[sweep] = sweep.measure()
    rows = []
    for machine, key, result in planned.results:
        found = [measured[sweep] for sweep in sweeps_of(machine, result)]
        for point in result.values:
            rows.append(row_of(machine, key, result, point, value_of(machine, result, found, point[0])))
    return Reproduction(tuple(rows), measured)
