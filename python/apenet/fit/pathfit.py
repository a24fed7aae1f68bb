"""A fitted path model and its report: parameters, intervals, cross-overs, errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from apenet.base.errors import InputError
from apenet.fit import paths as model
from apenet.fit.curvefit import MIB, CurveFit
from apenet.fit.measurement import Measurement, require_sizes
from apenet.fit.statistics import (
    RESAMPLES,
    Floats,
    Interval,
    interval,
    resampled,
)

FORMULA = "T(N, Nvc) = max_i(lambda_i + Nvc*tau_i + Nvc*N/beta_i)"
_FLAT_US_PER_BYTE = 1e-9
"""Below a femtosecond per byte, these sizes do not show the bandwidth of a path."""
_TRACE_US = 1e-9
_FEW = 3
_LOOSE = 1.0
_POOR_PERCENT = 20


@dataclass(frozen=True)
class Path:
    """One path. Parameters that the data do not determine are None, and `unknown` says why."""

    lambda_us: Interval | None
    tau_us: Interval | None
    fixed_us: Interval
    """lambda + Nvc tau ..."""
    fixed_channels: int
    """... at this Nvc, the one at which the path determines most points."""
    beta_mib_s: Interval | None
    decides: tuple[int, int] | None
    """Smallest and largest measured size whose time this path determines."""
    points: int
    unknown: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Intervals as objects, None as null."""
        content: dict[str, Any] = {
            name: value.to_json() if value is not None else None
            for name, value in {
                "lambda_us": self.lambda_us,
                "tau_us": self.tau_us,
                "lambda_plus_nvc_tau_us": self.fixed_us,
                "beta_mib_s": self.beta_mib_s,
            }.items()
        }
        return {
            **content,
            "nvc": self.fixed_channels,
            "decides_bytes": list(self.decides) if self.decides else None,
            "points": self.points,
            "unknown": list(self.unknown),
        }


@dataclass(frozen=True)
class Crossover:
    """The size at which the next path takes over."""

    first: int
    second: int
    channels: int
    size_bytes: Interval

    def to_json(self) -> dict[str, Any]:
        """Paths counted from 1."""
        return {
            "from_path": self.first + 1,
            "to_path": self.second + 1,
            "channels": self.channels,
            "size_bytes": self.size_bytes.to_json(),
        }


@dataclass(frozen=True, kw_only=True)
class PathsFit(CurveFit):
    """T(N, Nvc) with one to three paths, fitted to one measurement."""

    formula = FORMULA
    units: ClassVar[dict[str, str]] = {"lambda": "us", "tau": "us", "beta": "MiB/s, 2^20 bytes"}

    coefficients: Floats
    """One row per path: lambda, tau, 1/beta; with a single Nvc: lambda + Nvc tau, 1/beta. Units: us, us/byte."""
    paths: tuple[Path, ...]
    crossovers: tuple[Crossover, ...]

    @property
    def parameters(self) -> int:
        """The number of fitted parameters."""
        return self.coefficients.size

    @property
    def model(self) -> str:
        """The model's name as in --model."""
        return f"paths:{len(self.paths)}"

    def curve(self, sizes: Floats, channels: int) -> Floats:
        """Times for any sizes, in us."""
        ones = np.ones_like(sizes)
        columns = [ones, channels * ones, channels * sizes]
        if self.coefficients.shape[1] == 2:  # noqa: PLR2004 (with one Nvc)
            columns = [ones, channels * sizes]
        return model.predicted(self.coefficients, np.column_stack(columns))

    def parts_json(self) -> dict[str, Any]:
        """Paths, and where they cross."""
        return {
            "paths": [path.to_json() for path in self.paths],
            "crossovers": [crossover.to_json() for crossover in self.crossovers],
        }


def fit_paths(measurement: Measurement, count: int = 2, resamples: int = RESAMPLES) -> PathsFit:
    """Fits the model with `count` paths.

    Raises InputError for an invalid count, MeasurementError for too few sizes.
    """
    if not 1 <= count <= model.MOST_PATHS:
        raise InputError("--model", f"paths:{count}", f"paths:1 to paths:{model.MOST_PATHS}")
    least = 2 * count + 1
    require_sizes(measurement, least, f"each of {count} paths has two parameters, and one size must be left to test")
    data = model.data_of(measurement)
    coefficients = model.fit_coefficients(data, count)
    fitted = model.predicted(coefficients, data.features)
    samples = resampled(
        fitted,
        measurement.times_us,
        coefficients.size,
        lambda times: model.ordered(
            model.improved(coefficients, model.Data(data.features, times, data.sizes_bytes, data.channels))
        ),
        resamples,
    )
    deciding = (data.features @ coefficients.T).argmax(axis=1)
    paths = tuple(_path(measurement, coefficients, samples, deciding, index) for index in range(count))
    return PathsFit.of(
        measurement,
        fitted,
        _held_out(measurement, count),
        coefficients=coefficients,
        paths=paths,
        crossovers=tuple(_crossovers(measurement, coefficients, samples)),
        warnings=tuple(_warnings(measurement, paths, fitted)),
    )


def _path(measurement: Measurement, coefficients: Floats, samples: Floats, deciding: Floats, index: int) -> Path:
    row, drawn = coefficients[index], samples[:, index]
    mine = deciding == index
    sizes = measurement.sizes_bytes[mine]
    distinct = len(np.unique(sizes))
    unknown: list[str] = []
    slope_us_per_byte = float(row[-1])
    beta = None
    if slope_us_per_byte > _FLAT_US_PER_BYTE and distinct > 1:
        with np.errstate(divide="ignore"):
            beta = interval(1e6 / MIB / slope_us_per_byte, 1e6 / MIB / drawn[:, -1])
    else:
        unknown.append("beta: the times that this path determines do not depend on the size")
    at = _reported_channels(measurement, mine)
    fixed = row[:-1] @ np.array([1.0, at][: len(row) - 1])
    fixed_drawn = drawn[:, :-1] @ np.array([1.0, at][: len(row) - 1])
    lambda_us = tau_us = None
    if len(row) == 3 and _separates(measurement, coefficients, index):  # noqa: PLR2004 (lambda, tau, beta)
        lambda_us, tau_us = interval(float(row[0]), drawn[:, 0]), interval(float(row[1]), drawn[:, 1])
    else:
        seen = measurement.channels[model.clearly_deciding(coefficients, model.data_of(measurement).features, index)]
        counts = ", ".join(map(str, np.unique(seen))) or "none"
        unknown.append(f"lambda and tau separately, only their sum: this path determines times only at Nvc = {counts}")
    if distinct < _FEW:
        unknown.append(f"the error of this path: it determines only {distinct} {'size' if distinct == 1 else 'sizes'}")
    return Path(
        lambda_us=lambda_us,
        tau_us=tau_us,
        fixed_us=interval(_tidy(float(fixed)), fixed_drawn),
        fixed_channels=at,
        beta_mib_s=beta,
        decides=(int(sizes.min()), int(sizes.max())) if len(sizes) else None,
        points=int(mine.sum()),
        unknown=tuple(unknown),
    )


def _reported_channels(measurement: Measurement, mine: Floats) -> int:
    counts = {
        channels: int((measurement.channels[mine] == channels).sum()) for channels in measurement.distinct_channels()
    }
    return max(counts, key=lambda channels: (counts[channels], -channels))


def _tidy(value: float) -> float:
    """Sets values that are only the optimiser's rounding errors to zero."""
    return value if value > _TRACE_US else 0.0


def _separates(measurement: Measurement, coefficients: Floats, index: int) -> bool:
    """Whether the points that this path clearly determines separate lambda from tau and beta."""
    features = model.data_of(measurement).features
    mine = model.clearly_deciding(coefficients, features, index)
    columns = features[mine] / np.maximum(features.max(axis=0), 1)
    return len(columns) > columns.shape[1] and bool(np.linalg.matrix_rank(columns) == columns.shape[1])


def _crossovers(measurement: Measurement, coefficients: Floats, samples: Floats) -> list[Crossover]:
    found = []
    for channels in measurement.distinct_channels():
        for first in range(len(coefficients)):
            for second in range(first + 1, len(coefficients)):
                size = model.crossover_bytes(coefficients, first, second, channels)
                if size is None:
                    continue
                drawn = [model.crossover_bytes(sample, first, second, channels) for sample in samples]
                values = np.array([np.nan if value is None else value for value in drawn])
                found.append(Crossover(first, second, channels, interval(size, values)))
    return found


def _held_out(measurement: Measurement, count: int) -> Floats:
    """Percent error of each point in a fit without its size, except for the end sizes (extrapolations)."""
    held_out = np.full(len(measurement), np.nan)
    sizes = np.unique(measurement.sizes_bytes)
    for size in sizes[1:-1]:
        rest = measurement.without(int(size))
        coefficients = model.fit_coefficients(model.data_of(rest), count, model.FEW_CUTS)
        left = measurement.sizes_bytes == size
        features = model.data_of(measurement).features[left]
        held_out[left] = 100 * (measurement.times_us[left] / model.predicted(coefficients, features) - 1)
    return held_out


def _warnings(measurement: Measurement, paths: tuple[Path, ...], fitted: Floats) -> list[str]:
    found = []
    worst = 100 * float(np.abs(measurement.times_us / fitted - 1).max())
    if worst > _POOR_PERCENT:
        found.append(
            f"the model misses a point by {worst:.0f} %: a maximum of lines follows neither noise nor a change of "
            "protocol, and the intervals do not show it; see --model protocols"
        )
    if measurement.test in ("unidirectional", "oneway"):
        found.append(f"the test is {measurement.test}: its times are gaps between messages, lambda is no latency")
    for number, path in enumerate(paths, start=1):
        if path.points == 0:
            found.append(f"path {number} determines no point: fewer paths give the same times")
        elif path.beta_mib_s is not None and np.isfinite(path.beta_mib_s.high):
            width = (path.beta_mib_s.high - path.beta_mib_s.low) / path.beta_mib_s.value
            if width > _LOOSE:
                found.append(f"beta of path {number} is hardly determined: see its interval")
    return found
