"""LogGP (Alexandrov, Ionescu, Schauser, Scheiman, SPAA 1995): L, o_s, o_r, g, G, as far as the files determine them.

A ping-pong takes o_s + L + (N - 1) G + o_r; a stream takes max(g, o_s, o_r) + (N - 1) G from message to message. A
ping-pong determines L + o_s + o_r and G; with a stream the fit also determines g. o_s and o_r are known only from a
file that contains them, such as the output of `apenet calibrate --json`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from apenet.fit.curvefit import input_json, points_json
from apenet.fit.measurement import PINGPONG, STREAMS, Measurement, require_sizes
from apenet.fit.paths import robust_line
from apenet.fit.statistics import CONFIDENCE, RESAMPLES, Errors, Floats, Interval, errors, interval, resampled

FORMULA = "ping-pong: o_s + L + (N-1) G + o_r; stream: g + (N-1) G"
_LEAST_SIZES = 3


@dataclass(frozen=True)
class LogGpFit:
    """The parameters in us and us/byte; None if the files do not determine one, and `unknown` says why."""

    measurements: tuple[Measurement, ...]
    latency_us: Interval | None
    send_us: float | None
    receive_us: float | None
    sum_us: Interval | None
    """L + o_s + o_r."""
    gap_us: Interval | None
    gap_per_byte_us: Interval
    fitted_us: tuple[Floats, ...]
    in_sample: Errors
    held_out: Errors
    held_out_percent: tuple[Floats, ...]
    unknown: tuple[str, ...]

    @property
    def model(self) -> str:
        """The model's name as in --model."""
        return "loggp"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the quality of the fit."""
        if self.held_out.max_percent > 20:  # noqa: PLR2004 (a fifth: no longer a description)
            return (
                "one line does not describe these times: LogGP has a single G, and no change of protocol; see --model "
                "protocols",
            )
        return ()

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet fit --model loggp --json` prints."""
        parameters = {"L": self.latency_us, "L_plus_o_s_plus_o_r": self.sum_us, "g": self.gap_us}
        return {
            "model": self.model,
            "formula": FORMULA,
            "input": [input_json(measurement) for measurement in self.measurements],
            "units": {"L": "us", "o_s": "us", "o_r": "us", "g": "us", "G": "us/byte", "errors": "percent"},
            "confidence": CONFIDENCE,
            "parameters": {
                **{key: value.to_json() if value is not None else None for key, value in parameters.items()},
                "o_s": self.send_us,
                "o_r": self.receive_us,
                "G": self.gap_per_byte_us.to_json(),
            },
            "unknown": list(self.unknown),
            "in_sample": self.in_sample.to_json(),
            "held_out": {"scheme": "each size but the ends left out once", **self.held_out.to_json()},
            "points": [
                points_json(measurement, fitted, held_out)
                for measurement, fitted, held_out in zip(
                    self.measurements, self.fitted_us, self.held_out_percent, strict=True
                )
            ],
            "warnings": [*(note for measurement in self.measurements for note in measurement.notes), *self.warnings],
        }


def fit_loggp(measurements: Sequence[Measurement], resamples: int = RESAMPLES) -> LogGpFit:
    """Fits a ping-pong, a stream, or both at once with one G.

    Raises MeasurementError for other tests, two of a kind, or too few sizes.
    """
    pingpong, stream = _sorted(measurements)
    given = tuple(measurement for measurement in (pingpong, stream) if measurement is not None)
    rows, times = _rows(given), np.concatenate([measurement.times_us for measurement in given])
    solution = robust_line(rows, times)
    fitted = rows @ solution
    samples = resampled(fitted, times, rows.shape[1], lambda drawn: robust_line(rows, drawn), resamples)
    estimates = [interval(float(solution[index]), samples[:, index]) for index in range(rows.shape[1])]
    total = estimates[0] if pingpong is not None else None
    gap = estimates[len(given) - 1] if stream is not None else None
    overheads = next((given_us for one in given if (given_us := one.overheads_us) is not None), None)
    latency = None
    if total is not None and overheads is not None and sum(overheads) < total.value:
        latency = Interval(*(max(0.0, bound - sum(overheads)) for bound in (total.value, total.low, total.high)))
    held_out = _held_out(given)
    sizes = np.concatenate([measurement.sizes_bytes for measurement in given])
    tested = np.isfinite(held_out)
    cuts = np.cumsum([len(measurement) for measurement in given])[:-1]
    return LogGpFit(
        measurements=given,
        latency_us=latency,
        send_us=overheads[0] if overheads else None,
        receive_us=overheads[1] if overheads else None,
        sum_us=total,
        gap_us=gap,
        gap_per_byte_us=estimates[-1],
        fitted_us=tuple(np.split(fitted, cuts)),
        in_sample=errors(times / fitted - 1, sizes),
        held_out=errors(held_out[tested] / 100, sizes[tested]),
        held_out_percent=tuple(np.split(held_out, cuts)),
        unknown=tuple(_unknown(pingpong, stream, overheads, total)),
    )


def _sorted(measurements: Sequence[Measurement]) -> tuple[Measurement | None, Measurement | None]:
    pingpong: Measurement | None = None
    stream: Measurement | None = None
    for measurement in measurements:
        is_stream = measurement.test in STREAMS
        if not is_stream and measurement.test != PINGPONG:
            raise measurement.error(f"the test {measurement.test}", "a ping-pong or a stream for LogGP")
        if (stream if is_stream else pingpong) is not None:
            raise measurement.error(f"a second {measurement.test}", "one ping-pong and one stream at most")
        if measurement.distinct_channels() != [1]:
            raise measurement.error("several messages at once", "one message at a time for LogGP")
        require_sizes(measurement, _LEAST_SIZES, "a line has two parameters, and one size must be left to test")
        if is_stream:
            stream = measurement
        else:
            pingpong = measurement
    return pingpong, stream


def _rows(given: Sequence[Measurement]) -> Floats:
    """The features: one column for the fixed part of each measurement, and one for G."""
    count = sum(len(measurement) for measurement in given)
    rows = np.zeros((count, len(given) + 1))
    at = 0
    for column, measurement in enumerate(given):
        rows[at : at + len(measurement), column] = 1
        rows[at : at + len(measurement), -1] = np.maximum(measurement.sizes_bytes - 1, 0)
        at += len(measurement)
    return rows


def _held_out(given: Sequence[Measurement]) -> Floats:
    sizes = np.concatenate([measurement.sizes_bytes for measurement in given])
    times = np.concatenate([measurement.times_us for measurement in given])
    rows = _rows(given)
    held_out = np.full(len(times), np.nan)
    for size in np.unique(sizes)[1:-1]:
        left = sizes == size
        solution = robust_line(rows[~left], times[~left])
        held_out[left] = 100 * (times[left] / (rows[left] @ solution) - 1)
    return held_out


def _unknown(
    pingpong: Measurement | None,
    stream: Measurement | None,
    overheads: tuple[float, float] | None,
    total: Interval | None,
) -> list[str]:
    unknown = []
    if pingpong is None:
        unknown.append("L: a stream does not show it; add a ping-pong")
    elif overheads is None:
        unknown.append("L, o_s and o_r separately, only their sum: a ping-pong cannot tell them apart")
    elif total is not None and sum(overheads) >= total.value:
        unknown.append(
            f"L: o_s + o_r = {sum(overheads):.3g} us is all of L + o_s + o_r = {total.value:.3g} us: in a ping-pong "
            "they overlap with the transfer, or they were measured under other conditions"
        )
    if stream is None:
        unknown.append("g: a ping-pong has one message under way; add a stream (osu_bw, ib_write_bw)")
    elif overheads is None:
        unknown.append("whether g is the card's or a CPU's: a stream shows the largest of g, o_s and o_r")
    return unknown
