"""A measured curve as protocols: ranges of sizes with one line each. A machine file can express any curve so.

A maximum of lines has no steps, but measured curves have (eager to rendezvous, another copy). So the sizes are cut
into the smallest number of contiguous ranges that one line each describes within a tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from apenet.fit.measurement import Measurement
from apenet.fit.statistics import Floats

TOLERANCE = 0.04
"""Largest relative error of a line: below the guaranteed 5 %, to leave room for rounding to picoseconds."""
LEAST_SLOPE_US_PER_BYTE = 1e-9
"""A petabyte per second: at this slope the size does not matter even for the largest messages."""
STREAM_TOLERANCE = 0.1
"""The same for a stream, if it can be met; not guaranteed."""
_LEAST_SHARE = 0.5
"""Share of the shortest measured time that is at least latency: latency limits how far a simulation runs ahead."""


@dataclass(frozen=True)
class Protocol:
    """One range of sizes. A message holds the wire gap + N hold, and arrives latency + N transit later. us, us/byte."""

    max_size_bytes: int
    latency_us: float
    gap_us: float
    hold_us_per_byte: float
    transit_us_per_byte: float
    points: int

    def time_us(self, size_bytes: float) -> float:
        """The time of a single message."""
        per_byte = self.hold_us_per_byte + self.transit_us_per_byte
        return self.latency_us + self.gap_us + size_bytes * per_byte


def least_latency_us(pingpong: Measurement) -> float:
    """The minimum latency of every protocol."""
    return _LEAST_SHARE * float(pingpong.times_us.min())


def protocols(pingpong: Measurement, stream: Measurement | None = None) -> list[Protocol]:
    """Ranges that meet every point of the ping-pong within TOLERANCE.

    Among all such cuts it takes the one with the fewest points of the stream beyond STREAM_TOLERANCE, then the fewest
    ranges, then the least squares. A stream shows which part of a message's time occupies the wire. Without one, the
    part that grows with the size is assumed to occupy it.
    """
    count = len(pingpong)
    best: list[tuple[int, int, float, int]] = [(0, 0, 0.0, 0)]
    for end in range(1, count + 1):
        options = []
        for begin in range(end - 1, -1, -1):
            candidate = _range(pingpong, stream, begin, end)
            if candidate.worst > TOLERANCE:
                continue
            missed, ranges, squares, _ = best[begin]
            options.append((missed + candidate.missed, ranges + 1, squares + candidate.squares, begin))
        best.append(min(options))
    cuts = [count]
    while cuts[-1]:
        cuts.append(best[cuts[-1]][-1])
    return [_range(pingpong, stream, begin, end).protocol for end, begin in reversed(list(pairwise(cuts)))]


@dataclass(frozen=True)
class _Range:
    protocol: Protocol
    worst: float
    squares: float
    missed: int


def _range(pingpong: Measurement, stream: Measurement | None, begin: int, end: int) -> _Range:
    """Fits one protocol to the points from begin to end; returns it with its errors."""
    floor = least_latency_us(pingpong)
    sizes, times = pingpong.sizes_bytes[begin:end].astype(np.float64), pingpong.times_us[begin:end]
    latency, slope = line(sizes, times, floor)
    error = (latency + slope * sizes) / times - 1
    gap, hold, missed = 0.0, slope, 0
    if stream is not None and np.abs(error).max() <= TOLERANCE:
        low = int(pingpong.sizes_bytes[begin - 1]) if begin else -1
        high = int(sizes[-1]) if end < len(pingpong) else int(stream.sizes_bytes.max())
        mine = stream.part((stream.sizes_bytes > low) & (stream.sizes_bytes <= high))
        if len(mine):
            gap, hold = _occupancy(mine, latency - floor, slope)
            relative = (gap + hold * mine.sizes_bytes) / mine.times_us - 1
            missed = int((np.abs(relative) > STREAM_TOLERANCE).sum())
    protocol = Protocol(int(sizes[-1]), latency - gap, gap, hold, slope - hold, end - begin)
    return _Range(protocol, float(np.abs(error).max()), float((error**2).sum()), missed)


def line(sizes: Floats, times: Floats, floor: float) -> tuple[float, float]:
    """Latency of at least `floor` in us, and a slope in us/byte, by least squares of relative errors."""
    from scipy.optimize import nnls  # noqa: PLC0415 (slow import)

    if len(sizes) == 1:
        slope = max((float(times[0]) - 2 * floor) / max(float(sizes[0]), 1.0), LEAST_SLOPE_US_PER_BYTE)
        return float(times[0]) - slope * float(sizes[0]), slope
    rows = np.column_stack([np.ones_like(sizes), sizes]) / times[:, None]
    norms = np.maximum(np.sqrt((rows**2).sum(axis=0)), 1e-300)
    above, slope = nnls(rows / norms, 1 - floor / times)[0] / norms
    return floor + float(above), max(float(slope), LEAST_SLOPE_US_PER_BYTE)


def _occupancy(stream: Measurement, most_gap: float, slope: float) -> tuple[float, float]:
    """Gap and hold of a stream, each limited by the ping-pong's time."""
    from scipy.optimize import lsq_linear  # noqa: PLC0415 (slow import)

    sizes, times = stream.sizes_bytes.astype(np.float64), stream.times_us
    rows = np.column_stack([np.ones_like(sizes), sizes]) / times[:, None]
    scale = np.array([float(times.min()), float(times.max()) / max(float(sizes.max()), 1.0)])
    upper = np.array([max(most_gap, 1e-12), max(slope, 2 * LEAST_SLOPE_US_PER_BYTE)]) / scale
    lower = np.array([0.0, LEAST_SLOPE_US_PER_BYTE]) / scale
    gap, hold = lsq_linear(rows * scale, np.ones_like(times), bounds=(lower, upper)).x * scale
    return float(min(gap, most_gap)), float(min(hold, slope))
