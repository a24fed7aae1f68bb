"""Refits: what the fitted numbers of a machine become when its assumed numbers have other values.

A fitted number says which published results it was fitted to (`fitted_to`). With other assumed numbers these results
would be missed, and whoever made the machine would have fitted again. So the fitted numbers move until the simulated
values of those results are again what they are with the machine as it is: Gauss-Newton steps in the logarithms of the
numbers, with the derivatives of the machine as it is (a chord method), and the shortest step where several numbers do
the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from apenet.machine import Machine
from apenet.machine import machine as read_machine
from apenet.machine.quantity import Quantity, quantities
from apenet.reproduce.rows import row_of
from apenet.reproduce.sweeps import sweeps_of
from apenet.reproduce.values import value_of

_STEPS = 4
_CLOSE = 0.005
_DERIVATIVE_STEP = 1.25
_WHOLE_DERIVATIVE_STEP = 2.0
_FARTHEST = math.log(16)
_LAYER_SECTIONS = {"software.card.": "card", "software.mpi.": "mpi"}


@dataclass(frozen=True, order=True)
class FittedRow:
    """A point of a published result that numbers were fitted to."""

    key: str
    size_bytes: int | None


@dataclass(frozen=True)
class Calibration:
    """The fitted numbers of a machine and the rows that they were fitted to: a task that measures the derivatives."""

    machine: str
    numbers: tuple[str, ...]
    rows: tuple[FittedRow, ...]

    @property
    def label(self) -> str:
        """The measurement's name for people."""
        return f"{self.machine}: derivatives of the fit"

    @property
    def weight(self) -> int:
        """Its rough duration, relative to others."""
        return 1000

    def measure(self) -> list[list[float]]:
        """The value of each row, and for each number the rows' derivatives by its logarithm, in shares of the value."""
        unchanged = _measured(self, ())
        slopes = []
        for key in self.numbers:
            is_whole = isinstance(_numbers(self.machine)[key].value, int)
            wanted = math.log(_WHOLE_DERIVATIVE_STEP if is_whole else _DERIVATIVE_STEP)
            setting, step = _setting(self.machine, key, wanted)
            moved = _measured(self, (setting,))
            slopes.append([(after / before - 1) / step for before, after in zip(unchanged, moved, strict=True)])
        return [unchanged, *slopes]


@dataclass(frozen=True)
class Refit:
    """A calibration with its derivatives."""

    calibration: Calibration
    values: tuple[float, ...]
    slopes: tuple[tuple[float, ...], ...]

    def settings(self, assumed: tuple[str, ...]) -> tuple[str, ...] | None:
        """The fitted numbers for these values of assumed numbers, as settings; None if the rows cannot be met.

        A row is met where its verdict is `pass`, as for everybody. A number moves by a factor of 16 at most.
        """
        numbers = self.calibration.numbers
        moves = np.zeros(len(numbers))
        tried: dict[tuple[str, ...], tuple[bool, float]] = {}
        for _ in range(_STEPS):
            found = tuple(
                _setting(self.calibration.machine, key, move)[0] for key, move in zip(numbers, moves, strict=True)
            )
            if found in tried:
                break
            values = _measured(self.calibration, (*assumed, *found))
            misses = np.array(values) / np.array(self.values) - 1
            worst = float(np.abs(misses).max())
            tried[found] = (not self._meets(values), worst)
            if worst < _CLOSE or not math.isfinite(worst):
                break
            step, *_ = np.linalg.lstsq(np.array(self.slopes).T, -misses, rcond=1e-3)
            moves = np.clip(moves + step, -_FARTHEST, _FARTHEST)
        best = min(tried, key=lambda found: tried[found])
        return None if tried[best][0] else best

    def _meets(self, values: Sequence[float]) -> bool:
        for one, value in zip(self.calibration.rows, values, strict=True):
            machine = self.calibration.machine
            result = read_machine(machine).file.results[one.key]
            point = next(point for point in result.points if point.size_bytes == one.size_bytes)
            if row_of(machine, one.key, result, point, value).verdict == "miss":
                return False
        return True


def calibration_of(machine: Machine, layers: set[str]) -> Calibration | None:
    """The fit of a machine whose results are of these layers; None if nothing was fitted to one of its results.

    What was fitted to a result of another machine stays as it is, and so does the software of a layer that no result
    uses.
    """
    results = machine.file.results
    numbers: list[str] = []
    rows: dict[FittedRow, None] = {}
    for key, quantity in quantities(machine.file):
        unused = [
            layer for section, layer in _LAYER_SECTIONS.items() if key.startswith(section) and layer not in layers
        ]
        named = [name.partition("@") for name in quantity.fitted_to or ()]
        own = [(name, size) for name, _, size in named if name in results]
        if unused or not own:
            continue
        numbers.append(key)
        for name, size in own:
            for point in results[name].points:
                if point.role == "fitted" and size in ("", str(point.size_bytes)):
                    rows[FittedRow(name, point.size_bytes)] = None
    return Calibration(machine.name, tuple(numbers), tuple(rows)) if numbers else None


@cache
def _numbers(machine: str) -> dict[str, Quantity[Any]]:
    return dict(quantities(read_machine(machine).file))


def _setting(machine: str, key: str, move: float) -> tuple[str, float]:
    """The number times exp(move), as a setting, and the move that this is after rounding."""
    value = _numbers(machine)[key].value
    moved = value * math.exp(move)
    rounded = max(1, round(moved)) if isinstance(value, int) else float(f"{moved:.4g}")
    return f"{key}={rounded!r}", math.log(rounded / value)


def _measured(calibration: Calibration, settings: tuple[str, ...]) -> list[float]:
    """The simulated value of each row. Raises MachineError for a machine that cannot be."""
    machine = calibration.machine
    found: dict[FittedRow, float] = {}
    for key in dict.fromkeys(row.key for row in calibration.rows):
        mine = [row for row in calibration.rows if row.key == key]
        result = read_machine(machine).file.results[key]
        sweeps = sweeps_of(machine, result)
        if result.statistic == "at_size":
            sizes = ",".join(str(row.size_bytes) for row in mine)
            sweeps = [replace(sweep, sizes=sizes) for sweep in sweeps]
        points = [replace(sweep, settings=(*settings, *sweep.settings)).measure() for sweep in sweeps]
        for row in mine:
            value = value_of(machine, result, points, row.size_bytes)
            found[row] = math.nan if value is None else value
    return [found[row] for row in calibration.rows]
