"""Sensitivity: which agreements with the literature hang on an assumed number.

Each assumed number of a machine has a range of plausible values. One after another is set to the two ends of its range
("one at a time"), and all are drawn together from their ranges (Latin hypercube, McKay et al. 1979). In each such
machine the fitted numbers are fitted again (`refit`); one in which that fails is no candidate. A result is of class
`predicted` if its verdict is the same at both ends of every range and in nearly all drawn machines, else `assumed`. The
share of the drawn machines in which it passes tells how far it holds.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

from apenet.base.errors import InputError, MachineError
from apenet.host.caching import cached, make_cache, read_sealed_json, write_sealed_json
from apenet.machine import Machine
from apenet.machine import machine as read_machine
from apenet.machine.assumptions import Assumption, assumptions, drawn_shares, matters
from apenet.machine.build import build_digest
from apenet.machine.published import PublishedResult
from apenet.machine.quantity import quantities
from apenet.reproduce.refit import Calibration, Refit, calibration_of
from apenet.reproduce.rows import Row, row_of
from apenet.reproduce.sweeps import sweeps_of
from apenet.reproduce.tasks import Task, measure_all
from apenet.reproduce.values import value_of

JUDGED = ("hard", "soft", "shape", "outside")
"""Targets that have a verdict."""

SAMPLES = 64
SEED = 1
STANDS_PERCENT = 95.0
"""The share of the drawn machines in which a predicted row has the verdict that it has in the machine as it is."""
MOVES_PERCENT = 1.0
"""A change of the simulated value that is worth a line."""


@dataclass(frozen=True)
class Variation:
    """A machine with other values of its assumed numbers, and the published results to read off it."""

    machine: str
    settings: tuple[str, ...]
    keys: tuple[str, ...]
    refit: Refit | None = None

    @property
    def label(self) -> str:
        """The measurement's name for people."""
        return f"{self.machine}: {' '.join(self.settings[:1]) or 'as it is'}{' ...' if len(self.settings) > 1 else ''}"

    @property
    def weight(self) -> int:
        """Its rough duration, relative to others."""
        return sum(sweep.weight for _, result in self._results() for sweep in sweeps_of(self.machine, result))

    def _results(self) -> Iterator[tuple[str, PublishedResult]]:
        found = read_machine(self.machine).file.results
        return ((key, found[key]) for key in self.keys)

    def measure(self) -> list[float | None] | None:
        """The simulated value of each point of each result, in order; None if there can be no such machine.

        Nor can there be one whose fitted numbers cannot be fitted again.
        """
        done: dict[Task, Any] = {}
        values: list[float | None] = []
        settings = self.settings
        try:
            if self.refit is not None and settings:
                fitted = self.refit.settings(settings)
                if fitted is None:
                    return None
                settings = (*settings, *fitted)
            for _, result in self._results():
                sweeps = [
                    replace(sweep, settings=(*settings, *sweep.settings)) for sweep in sweeps_of(self.machine, result)
                ]
                for sweep in sweeps:
                    if sweep not in done:
                        done[sweep] = sweep.measure()
                measured = [done[sweep] for sweep in sweeps]
                values += [value_of(self.machine, result, measured, point.size_bytes) for point in result.points]
        except (InputError, MachineError):
            return None
        return values


@dataclass(frozen=True)
class Swing:
    """The simulated value of a row at the two ends of an assumption's range; None if there can be no such machine."""

    key: str
    low: float
    high: float
    at_low: float | None
    at_high: float | None
    breaks: bool
    """Whether the verdict changes at an end."""


@dataclass(frozen=True)
class RowSensitivity:
    """The dependence of a row on assumptions. `swings` has those that move the value, the strongest first."""

    key: str
    size_bytes: int | None
    simulated: float | None
    verdict: str
    role: str
    found: str
    """The class that the computation finds: as `role` if that is `fitted` or `follows`."""
    holds_percent: float | None
    """The share of the drawn machines in which the row passes."""
    swings: tuple[Swing, ...]

    @property
    def broken_by(self) -> tuple[str, ...]:
        """The assumptions at an end of whose range the verdict changes."""
        return tuple(swing.key for swing in self.swings if swing.breaks)

    def to_json(self) -> dict[str, Any]:
        """One entry of `rows`."""
        return {**vars(self), "swings": [vars(swing) for swing in self.swings]}


@dataclass(frozen=True)
class Sensitivity:
    """All rows of some machines."""

    samples: int
    machines: tuple[tuple[str, str, int, int], ...]
    """Name, digest, number of assumptions, and of drawn machines that can be."""
    rows: tuple[RowSensitivity, ...]

    @property
    def agrees(self) -> bool:
        """Whether each row has the class that the machine file says."""
        return all(row.role == row.found for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet reproduce --sensitivity --json` prints."""
        names = ("name", "digest", "assumptions", "machines")
        return {
            "samples": self.samples,
            "machines": [dict(zip(names, machine, strict=True)) for machine in self.machines],
            "rows": [row.to_json() for row in self.rows],
        }


def digest_of(machine: Machine) -> str:
    """A digest of all that decides a machine's sensitivity, except the models: values, ranges and results."""
    parameters = [
        (key, one.value, one.origin, one.range)
        for key, one in quantities(machine.file)
        if matters(key, with_sockets=False)
    ]
    how = {"source", "note", "repeats"}
    results = [(key, result.model_dump(exclude=how)) for key, result in machine.file.results.items()]
    fit = calibration_of(machine, {result.layer for result in machine.file.results.values()})
    fits = [] if fit is None else [fit.numbers, [(row.key, row.size_bytes) for row in fit.rows]]
    return _digest_of([parameters, results, *fits])


def _digest_of(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class _Plan:
    machine: Machine
    results: tuple[tuple[str, PublishedResult], ...]
    assumptions: tuple[Assumption, ...]
    base: Variation
    ends: tuple[tuple[Variation, Variation], ...]
    drawn: tuple[Variation, ...]

    @property
    def tasks(self) -> Iterator[Variation]:
        yield self.base
        for ends in self.ends:
            yield from ends
        yield from self.drawn


def _judged(machine: Machine, only: set[str]) -> list[tuple[str, PublishedResult]]:
    return [
        (key, result)
        for key, result in machine.file.results.items()
        if result.target in JUDGED and (not only or only & {machine.name, key})
    ]


def _plan(machine: Machine, only: set[str], samples: int, refit: Refit | None) -> _Plan:
    results = _judged(machine, only)
    keys = tuple(key for key, _ in results)
    found = assumptions(machine)  # no published result is of sockets
    return _Plan(
        machine,
        tuple(results),
        tuple(found),
        Variation(machine.name, (), keys),
        tuple(
            (
                Variation(machine.name, (one.at(0),), keys, refit),
                Variation(machine.name, (one.at(1),), keys, refit),
            )
            for one in found
        ),
        tuple(
            Variation(machine.name, tuple(one.at(share) for one, share in zip(found, shares, strict=True)), keys, refit)
            for shares in drawn_shares(len(found), samples, "latin", SEED)
        ),
    )


def sensitivity(
    machines: Sequence[Machine],
    only: set[str],
    samples: int = SAMPLES,
    begin: Callable[[int], None] = lambda _count: None,
    progress: Callable[[Task], None] = lambda _task: None,
) -> Sensitivity:
    """Varies the machines that have results, in two processes.

    `begin` gets the number of variations that are not in the user's cache, `progress` each that is done.
    """
    known = _Known()
    varied = [machine for machine in machines if _judged(machine, only)]
    refits = _refits(varied, only, known)
    plans = [_plan(machine, only, samples, refit) for machine, refit in zip(varied, refits, strict=True)]
    wanted = [task for plan in plans for task in plan.tasks if task not in known]
    begin(len(set(wanted)))

    def finished(task: Variation, values: list[float | None] | None) -> None:
        known.add(task, values)
        progress(task)

    measure_all(wanted, finished)
    return Sensitivity(
        samples,
        tuple(
            (
                plan.machine.name,
                digest_of(plan.machine),
                len(plan.assumptions),
                sum(known[variation] is not None for variation in plan.drawn),
            )
            for plan in plans
        ),
        tuple(row for plan in plans for row in _rows(plan, known)),
    )


def _refits(machines: Sequence[Machine], only: set[str], known: _Known) -> list[Refit | None]:
    """The fit of each machine, with its derivatives."""
    fits = [calibration_of(one, {result.layer for _, result in _judged(one, only)}) for one in machines]
    measure_all([fit for fit in fits if fit is not None and fit not in known], known.add)
    found: list[Refit | None] = []
    for fit in fits:
        if fit is None:
            found.append(None)
        else:
            values, *slopes = known[fit]
            found.append(Refit(fit, tuple(values), tuple(map(tuple, slopes))))
    return found


def _rows(plan: _Plan, known: _Known) -> Iterator[RowSensitivity]:
    points = [(key, result, point) for key, result in plan.results for point in result.points]

    def row(number: int, variation: Variation) -> Row | None:
        values = known[variation]
        key, result, point = points[number]
        return None if values is None else row_of(plan.machine.name, key, result, point, values[number])

    for number, (key, _, point) in enumerate(points):
        base = row(number, plan.base)
        assert base is not None  # noqa: S101 (a machine of the package)
        swings = []
        for assumption, ends in zip(plan.assumptions, plan.ends, strict=True):
            found = [row(number, end) for end in ends]
            low, high = (one.simulated if one is not None else None for one in found)
            breaks = any(one is not None and one.verdict != base.verdict for one in found)
            if breaks or _effect(base.simulated, [low, high]) >= MOVES_PERCENT:
                swings.append(Swing(assumption.key, assumption.low, assumption.high, low, high, breaks))
        swings.sort(key=lambda swing: -_effect(base.simulated, [swing.at_low, swing.at_high]))
        drawn = [one for one in (row(number, variation) for variation in plan.drawn) if one is not None]
        passed = sum(one.verdict == "pass" for one in drawn)
        stands = sum(one.verdict == base.verdict for one in drawn) >= STANDS_PERCENT / 100 * len(drawn)
        role = point.role
        if role not in ("fitted", "follows"):
            found_role = "predicted" if stands and not any(swing.breaks for swing in swings) else "assumed"
        else:
            found_role = role
        yield RowSensitivity(
            key,
            point.size_bytes,
            base.simulated,
            base.verdict,
            role,
            found_role,
            round(passed / len(drawn) * 100, 1) if drawn else None,
            tuple(swings),
        )


def _effect(base: float | None, values: Sequence[float | None]) -> float:
    """The largest change in percent of the base."""
    if not base or not math.isfinite(base):
        return 0.0
    return max((abs(value / base - 1) * 100 for value in values if value is not None), default=0.0)


class _Known:
    """Earlier measurements with the same models and numbers: one file in the user's cache folder.

    Two commands at once may each lose the other's additions, which are then measured again.
    """

    def __init__(self) -> None:
        make_cache()
        self._path = cached(f"sensitivity-{build_digest()[:16]}.json")
        self._values: dict[str, Any] = read_sealed_json(self._path)

    def __contains__(self, task: Variation | Calibration) -> bool:
        return _name_of(task) in self._values

    def __getitem__(self, task: Variation | Calibration) -> Any:  # noqa: ANN401 (what its measure() returns)
        return self._values[_name_of(task)]

    def add(self, task: Variation | Calibration, values: object) -> None:
        self._values[_name_of(task)] = values
        write_sealed_json(self._path, self._values)


def _name_of(task: Variation | Calibration) -> str:
    if isinstance(task, Calibration):
        rows = [(task.machine, row.key, row.size_bytes) for row in task.rows]
        return _digest_of(["fit", [_measured_digest(task.machine)], task.numbers, rows])
    fit = None if task.refit is None else (_name_of(task.refit.calibration), task.refit.values, task.refit.slopes)
    return _digest_of([_measured_digest(task.machine), task.settings, task.keys, fit])


@cache
def _measured_digest(machine: str) -> str:
    file = read_machine(machine).file
    parameters = [(key, one.value) for key, one in quantities(file) if matters(key, with_sockets=False)]
    how = {"source", "note", "value", "role", "tolerance_percent", "target", "bound", "repeats"}
    return _digest_of([parameters, [(key, result.model_dump(exclude=how)) for key, result in file.results.items()]])


@cache
def shipped() -> dict[str, Any]:
    """The file that comes with the package: the output of `--sensitivity --json` for its machines."""
    found: dict[str, Any] = json.loads(resources.files(__package__).joinpath("sensitivity.json").read_bytes())
    return found


@cache
def _shipped_shares() -> dict[tuple[str, int | None], float | None]:
    return {(row["key"], row["size_bytes"]): row["holds_percent"] for row in shipped()["rows"]}


def holds_percent(key: str, size_bytes: int | None) -> float | None:
    """The share of plausible machines in which a row passes, of the package; None if it was not varied."""
    return _shipped_shares().get((key, size_bytes))
