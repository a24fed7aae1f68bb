"""The model T(N, Nvc) = max_i(lambda_i + Nvc tau_i + Nvc N / beta_i): its fit, and what the data leave open.

N is the size of a message, Nvc how many are under way at once. Each path i is a resource that messages pass one after
another: tau_i and N/beta_i are how long one holds it, lambda_i what it takes beside that. The slowest path decides.

With one Nvc alone, lambda_i and tau_i stand in the same place: only lambda_i + Nvc tau_i can be found.
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
"""Places where one path may hand over to the next that are tried; with more sizes, evenly among them."""
FEW_CUTS = 8
"""The same for each of the many fits that test the model."""
DECIDES_BY = 0.01
"""A path decides a point clearly if it is slower than all others by this share."""
_ROUNDS = 40
_HUBER = 1.5
"""Residuals beyond so many standard deviations pull linearly, not squarely (Huber)."""
_LEAST_SCALE = 1e-4
_NEGLIGIBLE = 1e-9


@dataclass(frozen=True)
class Data:
    """Points as the fit sees them: one row a point, columns of the model's features; relative errors."""

    features: Floats
    """1, Nvc, Nvc N; without Nvc where it does not vary. us and bytes."""
    times_us: Floats
    sizes_bytes: Floats
    channels: Floats

    @property
    def has_channels(self) -> bool:
        """Whether lambda and tau can be told apart."""
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
    """Times of points, us. Coefficients: one row a path."""
    return np.asarray((features @ coefficients.T).max(axis=1), dtype=np.float64)


def fit_coefficients(data: Data, paths: int, most_cuts: int = MOST_CUTS) -> Floats:
    """The best of all starts, one row a path, ordered by which decides first as messages grow.

    Starts are all ways to cut the sizes into contiguous ranges, one a path: with one Nvc the optimum lies among them,
    because the lines of a maximum decide on contiguous ranges. Each is improved by turns (fit each path to the points
    that it decides, decide anew) and at last all together.
    """
    best: Floats | None = None
    lowest = np.inf
    for assignment in _starts(data, paths, most_cuts):
        candidate = _alternated(data, assignment, paths)
        loss = _loss(candidate, data)
        if loss < lowest * (1 - _NEGLIGIBLE):
            best, lowest = candidate, loss
    assert best is not None  # noqa: S101 (there is at least one start)
    return ordered(improved(best, data))


def improved(start: Floats, data: Data) -> Floats:
    """All coefficients together, by least squares of relative errors with Huber's loss, from a start nearby."""
    from scipy.optimize import least_squares  # noqa: PLC0415 (time that no other command needs to spend)

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
    """Standard deviation of residuals, from their median size: outliers do not move it."""
    return max(float(1.4826 * np.median(np.abs(residual))), _LEAST_SCALE)


def _loss(coefficients: Floats, data: Data) -> float:
    """What is compared between starts: the same scale for all, relative errors of a percent count squarely."""
    residual = np.abs(predicted(coefficients, data.features) / data.times_us - 1) / 0.01
    return float(np.where(residual <= 1, residual**2, 2 * residual - 1).sum())


def _starts(data: Data, paths: int, most_cuts: int) -> Iterator[NDArray[np.intp]]:
    """Which path each point belongs to at first."""
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


def _alternated(data: Data, assignment: NDArray[np.intp], paths: int) -> Floats:
    coefficients = np.zeros((paths, data.features.shape[1]))
    best, lowest = coefficients, np.inf
    seen: set[bytes] = set()
    for _ in range(_ROUNDS):
        for path in range(paths):
            mine = assignment == path
            if mine.any():
                coefficients[path] = robust_line(data.features[mine], data.times_us[mine])
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
    from scipy.optimize import nnls  # noqa: PLC0415 (time that no other command needs to spend)

    weights = np.ones_like(times)
    solution = np.zeros(features.shape[1])
    for _ in range(5):
        rows = features * (weights / times)[:, None]
        # Columns of like size, or a slope of nanoseconds drowns beside a latency.
        norms = np.sqrt((rows**2).sum(axis=0))
        norms[norms == 0] = 1
        solution = nnls(rows / norms, weights)[0] / norms
        residual = features @ solution / times - 1
        spread = _HUBER * _spread(residual)
        weights = np.sqrt(np.minimum(1, spread / np.maximum(np.abs(residual), spread)))
    return np.asarray(solution, dtype=np.float64)


def ordered(coefficients: Floats) -> Floats:
    """Paths by slope: the flattest decides for the smallest messages."""
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
    """Size from which `second` is slower than `first`, None where that never changes or neither decides there."""
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
