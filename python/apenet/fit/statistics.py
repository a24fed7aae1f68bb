"""The quality of a fit: errors on used points and on left-out sizes; intervals from resampled residuals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RESAMPLES = 200
CONFIDENCE = 0.95
SEED = 1


class AsJson:
    """A dataclass whose JSON object has its fields."""

    def to_json(self) -> dict[str, Any]:
        """The fields as a dict."""
        return dict(vars(self))


@dataclass(frozen=True)
class Interval(AsJson):
    """An estimate and its bootstrap interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Errors(AsJson):
    """Relative errors over points."""

    rms_percent: float
    max_percent: float
    max_at_bytes: int
    points: int


@dataclass(frozen=True)
class Alternative(AsJson):
    """One of the compared models: its error on left-out sizes, and its number of parameters."""

    model: str
    held_out_rms_percent: float
    parameters: int


def errors(relative: Floats, sizes_bytes: NDArray[np.int64]) -> Errors:
    """The errors of relative residuals."""
    worst = int(np.abs(relative).argmax())
    return Errors(
        rms_percent=100 * float(np.sqrt((relative**2).mean())),
        max_percent=100 * float(np.abs(relative[worst])),
        max_at_bytes=int(sizes_bytes[worst]),
        points=len(relative),
    )


def interval(value: float, samples: Floats) -> Interval:
    """Percentiles of the resampled estimates; an estimate that is not finite had no such parameter."""
    finite = samples[np.isfinite(samples)]
    if 2 * len(finite) < len(samples):
        return Interval(value, float("nan"), float("nan"))
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(finite, [tail, 100 - tail])
    return Interval(value, min(float(low), value), max(float(high), value))


def resampled(
    fitted: Floats, times: Floats, parameters: int, refit: Callable[[Floats], Floats], count: int = RESAMPLES
) -> Floats:
    """Estimates from data that combine the fit with its own residuals, drawn with replacement (seeded).

    Residuals are relative and scaled up for the degrees of freedom that the fit used. One row per resample.
    """
    generator = np.random.Generator(np.random.PCG64(SEED))
    residual = times / fitted - 1
    residual = residual - residual.mean()
    residual = residual * np.sqrt(len(times) / max(1, len(times) - parameters))
    rows = []
    for _ in range(count):
        drawn = residual[generator.integers(0, len(residual), len(residual))]
        rows.append(refit(fitted * np.maximum(1 + drawn, 0.05)))
    return np.array(rows)
