"""A measured curve fitted by protocols, one line for each range of sizes, and its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from apenet.fit.curvefit import MIB, CurveFit
from apenet.fit.measurement import Measurement, require_sizes
from apenet.fit.protocols import LEAST_SLOPE_US_PER_BYTE, TOLERANCE, Protocol, least_latency_us, line, protocols
from apenet.fit.statistics import (
    RESAMPLES,
    Floats,
    Interval,
    interval,
    resampled,
)

MODEL = "protocols"
FORMULA = "T(N) = latency_i + N/beta_i, i by the size N"
_LEAST_SIZES = 4
_MANY = 3


@dataclass(frozen=True)
class Range:
    """One protocol: its range of measured sizes, and its line."""

    sizes_bytes: tuple[int, int]
    points: int
    latency_us: Interval
    beta_mib_s: Interval | None
    """None if the times do not depend on the size, or the range has a single size."""

    def to_json(self) -> dict[str, Any]:
        """Intervals as objects, None as null."""
        return {
            "size_bytes": list(self.sizes_bytes),
            "points": self.points,
            "latency_us": self.latency_us.to_json(),
            "beta_mib_s": self.beta_mib_s.to_json() if self.beta_mib_s is not None else None,
        }


@dataclass(frozen=True, kw_only=True)
class ProtocolsFit(CurveFit):
    """T(N) as contiguous ranges of sizes with a line each, as few as meet every point within TOLERANCE."""

    formula = FORMULA
    units: ClassVar[dict[str, str]] = {"latency": "us", "beta": "MiB/s, 2^20 bytes"}

    protocols: tuple[Protocol, ...]
    ranges: tuple[Range, ...]

    @property
    def model(self) -> str:
        """The model's name as in --model."""
        return MODEL

    @property
    def parameters(self) -> int:
        """The number of fitted parameters: two per line, and the ends of the ranges."""
        return 3 * len(self.protocols) - 1

    def curve(self, sizes: Floats) -> Floats:
        """Times for any sizes, in us."""
        return _times(self.protocols, sizes)

    def parts_json(self) -> dict[str, Any]:
        """The ranges."""
        return {"protocols": [one.to_json() for one in self.ranges]}


def fit_protocols(measurement: Measurement, resamples: int = RESAMPLES) -> ProtocolsFit:
    """Fits the ranges, and their lines. Raises MeasurementError for too few sizes, or several messages at once."""
    if measurement.distinct_channels() != [1]:
        raise measurement.error("several messages at once", "one message at a time for --model protocols")
    require_sizes(measurement, _LEAST_SIZES, "a line has two parameters, and one size must be left to test")
    found = tuple(protocols(measurement))
    sizes = measurement.sizes_bytes.astype(np.float64)
    fitted = _times(found, sizes)
    return ProtocolsFit.of(
        measurement,
        fitted,
        _held_out(measurement),
        protocols=found,
        ranges=_ranges(measurement, found, fitted, resamples),
        warnings=_warnings(measurement, len(found)),
    )


def _times(found: Sequence[Protocol], sizes: Floats) -> Floats:
    ends = np.array([protocol.max_size_bytes for protocol in found[:-1]])
    chosen = np.searchsorted(ends, sizes)
    return np.array([found[index].time_us(float(size)) for index, size in zip(chosen, sizes, strict=True)])


def _held_out(measurement: Measurement) -> Floats:
    held_out = np.full(len(measurement), np.nan)
    for index, size in enumerate(measurement.sizes_bytes[1:-1], start=1):
        predicted = _times(protocols(measurement.without(int(size))), np.array([float(size)]))
        held_out[index] = 100 * (measurement.times_us[index] / predicted[0] - 1)
    return held_out


def _ranges(measurement: Measurement, found: Sequence[Protocol], fitted: Floats, resamples: int) -> tuple[Range, ...]:
    floor = least_latency_us(measurement)
    sizes = measurement.sizes_bytes.astype(np.float64)
    cuts = np.cumsum([protocol.points for protocol in found])[:-1]
    parts = np.split(np.arange(len(sizes)), cuts)

    def refit(times: Floats) -> Floats:
        return np.array([line(sizes[part], times[part], floor) for part in parts])

    drawn = resampled(fitted, measurement.times_us, 2 * len(found), refit, resamples)
    ranges = []
    for index, (protocol, part) in enumerate(zip(found, parts, strict=True)):
        slope = protocol.hold_us_per_byte + protocol.transit_us_per_byte
        beta = None
        if len(part) > 1 and slope > LEAST_SLOPE_US_PER_BYTE:
            beta = interval(1e6 / MIB / slope, 1e6 / MIB / drawn[:, index, 1])
        latency = interval(protocol.latency_us + protocol.gap_us, drawn[:, index, 0])
        ends = (int(sizes[part[0]]), int(sizes[part[-1]]))
        ranges.append(Range(ends, len(part), latency, beta))
    return tuple(ranges)


def _warnings(measurement: Measurement, count: int) -> tuple[str, ...]:
    found = []
    if count > max(_MANY, len(measurement) // 3):
        found.append(
            f"{count} ranges for {len(measurement)} sizes: the curve is noisy, and this is a table rather than a model"
        )
    if measurement.test in ("unidirectional", "oneway"):
        found.append(f"the test is {measurement.test}: its times are gaps between messages and not latencies")
    return tuple(found)


def formula_text(fit: ProtocolsFit) -> str:
    """The formula, with the criterion for the ranges."""
    count = len(fit.protocols)
    return f"{FORMULA}: {count} {'range' if count == 1 else 'ranges'}, every point within {100 * TOLERANCE:.0f} %"
