"""The model T(N, Nvc) = max_i(lambda_i + Nvc tau_i + Nvc N / beta_i), and its fit.

N is the size of a message, Nvc the number of messages under way at once. Each path i is a resource that messages pass
one after another: a message holds it for tau_i + N/beta_i, and lambda_i is latency in addition. The slowest path
determines the time.

With a single Nvc only the sum lambda_i + Nvc tau_i is determined.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apenet.fit.measurement import Measurement

Floats = NDArray[np.float64]

MOST_PATHS = 3
MOST_CUTS = 24
"""Largest number of places that are tried for a change of path; with more sizes they are spread evenly."""
FEW_CUTS = 8
"""The same limit for each of the many fits that test the model."""
DECIDES_BY = 0.01
"""A path clearly determines a point if it is slower than all others by this share."""
_ROUNDS = 40
_HUBER = 1.5
"""Residuals beyond this number of standard deviations count linearly, not squarely (Huber)."""
_LEAST_SCALE = 1e-4
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True)
class Data:
    """The points of a fit: one row per point, one column per feature of the model; errors are relative."""

    features: Floats
    """The features 1, Nvc, Nvc N; without Nvc if it does not vary. Units: us, bytes."""
    times_us: Floats
    sizes_bytes: Floats
    channels: Floats

    @property
    def has_channels(self) -> bool:
        """Whether lambda and tau can be separated."""
        return bool(self.features.shape[1] == 3)  # noqa: PLR2004 (1, Nvc, Nvc N)


def data_of(measurement: Measurement) -> Data:
    """The features of a measurement."""
    sizes = measurement.sizes_bytes.astype(np.float64)
    channels = measurement.channels.astype(np.float64)
    ones = np.ones_like(sizes)
    varies = len(measurement.distinct_channels()) > 1
    columns = [ones, channels, channels * sizes] if varies else [ones, channels * sizes]
    return Data(np.column_stack(columns), measurement.times_us, sizes, channels)


def predicted(coefficients: Floats, features: Floats) -> Floats:
    """Times of points in us. Coefficients have one row per path."""
    return np.asarray((features @ coefficients.T).max(axis=1), dtype=np.float64)


def fit_coefficients(data: Data, paths: int, most_cuts: int = MOST_CUTS) -> Floats:
    """The best fit of all starts; one row per path, in the order in which paths dominate as messages grow.

    Starts are all ways to cut the sizes into contiguous ranges, one per path. With a single Nvc the optimum is among
    them, because each line of a maximum dominates one contiguous range. Each start is improved by alternation (fit
    each path to its points, then reassign the points), and the best one finally in all parameters together.
    """
    best: Floats | None = None
    lowest = np.inf
    lines: dict[bytes, Floats] = {}
    for assignment in _starts(data, paths, most_cuts):
        candidate = _alternated(data, assignment, paths, lines)
        loss = _loss(candidate, data)
        if loss < lowest * (1 - _NEGLIGIBLE):
            best, lowest = candidate, loss
    assert best is not None  # noqa: S101 (there is at least one start)
    return ordered(improved(best, data))


def improved(start: Floats, data: Data) -> Floats:
    """Fits all coefficients together, by least squares of relative errors with Huber's loss, from a near start."""
    from scipy.optimize import least_squares  # noqa: PLC0415 (slow import)

    scale = np.maximum(start, _column_scale(data) * 1e-6)
    residual = predicted(start, data.features) / data.times_us - 1

    def residuals(free: Floats) -> Floats:
        return predicted((free * scale.ravel()).reshape(start.shape), data.features) / data.times_us - 1

    def jacobian(free: Floats) -> Floats:
        values = data.features @ (free * scale.ravel()).reshape(start.shape).T
        deciding = values.argmax(axis=1)
        matrix = np.zeros((len(data.times_us), *start.shape))
        matrix[np.arange(len(deciding)), deciding] = data.features / data.times_us[:, None]
        return np.asarray((matrix * scale).reshape(len(deciding), -1))

    found = least_squares(
        residuals,
        (start / scale).ravel(),
        jac=jacobian,
        bounds=(0, np.inf),
        loss="huber",
        f_scale=_HUBER * _spread(residual),
        xtol=1e-12,
        ftol=1e-12,
        gtol=1e-12,
        max_nfev=200,
    )
    better = (found.x * scale.ravel()).reshape(start.shape)
    return better if _loss(better, data) <= _loss(start, data) else start


def _column_scale(data: Data) -> Floats:
    return np.asarray(np.median(data.times_us) / np.maximum(data.features.mean(axis=0), 1.0))


def _spread(residual: Floats) -> float:
    """Robust standard deviation of residuals, from their median size."""
    return max(1.4826 * _median(np.abs(residual)), _LEAST_SCALE)


def _median(values: Floats) -> float:
    """The bits of np.median for finite values; for the few points of a fit, its checks take ten times as long."""
    rising = np.sort(values)
    middle = len(rising) // 2
    return float(rising[middle] if len(rising) % 2 else (rising[middle - 1] + rising[middle]) / 2)


def _loss(coefficients: Floats, data: Data) -> float:
    """The loss by which starts are compared: one scale for all; relative errors up to a percent count squarely."""
    residual = np.abs(predicted(coefficients, data.features) / data.times_us - 1) / 0.01
    return float(np.where(residual <= 1, residual**2, 2 * residual - 1).sum())


def _starts(data: Data, paths: int, most_cuts: int) -> Iterator[NDArray[np.intp]]:
    """The initial path of each point."""
    keys = [data.sizes_bytes]
    if data.has_channels:
        keys.append(data.sizes_bytes * data.channels)
    for key in keys:
        distinct = np.unique(key)
        cuts = distinct[1:]
        if len(cuts) > most_cuts:
            cuts = cuts[np.linspace(0, len(cuts) - 1, most_cuts).round().astype(np.intp)]
        for chosen in itertools.combinations(cuts, paths - 1):
            yield np.searchsorted(np.array(chosen), key, side="right")


def _alternated(data: Data, assignment: NDArray[np.intp], paths: int, lines: dict[bytes, Floats]) -> Floats:
    """Improves one start. `lines` keeps the line of every set of points: most starts share their ranges with others."""
    coefficients = np.zeros((paths, data.features.shape[1]))
    best, lowest = coefficients, np.inf
    seen: set[bytes] = set()
    for _ in range(_ROUNDS):
        for path in range(paths):
            mine = assignment == path
            if mine.any():
                key = mine.tobytes()
                if key not in lines:
                    lines[key] = robust_line(data.features[mine], data.times_us[mine])
                coefficients[path] = lines[key]
        loss = _loss(coefficients, data)
        if loss < lowest:
            best, lowest = coefficients.copy(), loss
        assignment = (data.features @ coefficients.T).argmax(axis=1)
        if assignment.tobytes() in seen:
            break
        seen.add(assignment.tobytes())
    return best


def robust_line(features: Floats, times: Floats) -> Floats:
    """Coefficients of at least zero that minimise relative errors with Huber's weights."""
    from scipy.optimize import nnls  # noqa: PLC0415 (slow import)

    weights = np.ones_like(times)
    solution = np.zeros(features.shape[1])
    for _ in range(5):
        rows = features * (weights / times)[:, None]
        # Scales the columns to similar size; otherwise a slope of nanoseconds is lost next to a latency.
        norms = np.sqrt((rows**2).sum(axis=0))
        norms[norms == 0] = 1
        solution = nnls(rows / norms, weights)[0] / norms
        residual = features @ solution / times - 1
        spread = _HUBER * _spread(residual)
        weights = np.sqrt(np.minimum(1, spread / np.maximum(np.abs(residual), spread)))
    return np.asarray(solution, dtype=np.float64)


def ordered(coefficients: Floats) -> Floats:
    """Paths ordered by slope: the flattest one dominates the smallest messages."""
    keys = [(row[-1], -row[0]) for row in coefficients]
    return coefficients[sorted(range(len(keys)), key=lambda index: keys[index])]


def clearly_deciding(coefficients: Floats, features: Floats, path: int) -> NDArray[np.bool_]:
    """Points at which this path is slower than every other one by more than DECIDES_BY."""
    values = features @ coefficients.T
    others = np.delete(values, path, axis=1)
    if others.shape[1] == 0:
        return np.ones(len(values), dtype=np.bool_)
    return np.asarray(values[:, path] > others.max(axis=1) * (1 + DECIDES_BY))


def crossover_bytes(coefficients: Floats, first: int, second: int, channels: int) -> float | None:
    """Size above which `second` is slower than `first`; None if there is none, or if neither dominates there."""
    ones = (1.0, float(channels)) if coefficients.shape[1] == 3 else (1.0,)  # noqa: PLR2004 (1, Nvc, Nvc N)
    fixed = coefficients[:, :-1] @ np.array(ones)
    slope = coefficients[:, -1] * channels
    if slope[second] <= slope[first] * (1 + _NEGLIGIBLE):
        return None
    size = float((fixed[first] - fixed[second]) / (slope[second] - slope[first]))
    if size <= 0:
        return None
    at = fixed + slope * size
    return size if at[first] >= at.max() * (1 - 1e-6) else None
