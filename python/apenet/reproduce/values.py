"""Computes the published quantity from the points of a sweep."""

from __future__ import annotations

import json
import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from apenet.base.errors import InputError
from apenet.bench.result import BenchResult
from apenet.fit.paths import data_of, fit_coefficients
from apenet.fit.reading import parse
from apenet.machine import machine as read_machine
from apenet.machine.published import PublishedResult

_BYTES_PER_MIB = 2**20
_BYTES_OF = {"bandwidth_mib_s": _BYTES_PER_MIB, "bandwidth_mb_s": 1e6, "bandwidth_gb_s": 1e9}


def value_of(machine: str, published: PublishedResult, results: list[BenchResult], size: int | None) -> float | None:
    """The simulated value of one point of a published result; `results` are those of its sweeps.

    None if the simulated points do not determine it.
    """
    measured = results[0]
    if published.quantity == "flat_until_bytes":
        return _flat_until(measured, published.within_us or 0)
    if published.quantity == "crossover_bytes" or published.quantity.startswith("fit."):
        return _fitted(measured, published.quantity)
    values = _values(machine, published.quantity, results)
    if published.statistic == "at_size":
        at = measured.sizes_bytes == size
        if at.sum() != 1:
            raise InputError("size_bytes", size, f"one of {published.sizes}, for one number of channels")
        return float(values[at][0])
    return float(values.min() if published.statistic == "minimum" else values.max())


def _values(machine: str, quantity: str, results: list[BenchResult]) -> NDArray[np.float64]:
    measured = results[0]
    if quantity == "time_us":
        return measured.times_us
    if quantity == "rate_per_s":
        rates = measured.rates_per_s
        if rates is None:
            raise InputError("quantity", quantity, f"what the points of {measured.test} have")
        return rates
    if quantity == "gain_percent":
        return np.asarray((measured.bandwidths_mib_s / results[1].bandwidths_mib_s - 1) * 100)
    per_unit = link_mib_s(machine) if quantity == "link_fraction" else _BYTES_OF[quantity] / _BYTES_PER_MIB
    return np.asarray(measured.bandwidths_mib_s / per_unit)


def _flat_until(measured: BenchResult, within_us: float) -> float:
    """The largest size up to which all times are within `within_us` of that of the smallest size."""
    far = np.abs(measured.times_us - measured.times_us[0]) > within_us
    first = int(np.argmax(far)) if far.any() else len(far)
    return float(measured.sizes_bytes[first - 1])


def _fitted(measured: BenchResult, quantity: str) -> float | None:
    """A parameter of the two paths, or their crossing with the largest number of channels; NaN without a crossing.

    None for lambda and tau of a path that dominates at one number of channels only: only their sum is determined.
    """
    fast, slow = path_coefficients(measured)
    channels = float(measured.channels.max())
    if quantity == "crossover_bytes":
        fixed = (fast[0] - slow[0]) + channels * (fast[1] - slow[1])
        size = fixed / (channels * (slow[2] - fast[2])) if slow[2] != fast[2] else math.nan
        return size if size > 0 else math.nan
    _, which, name = quantity.split(".")
    if name in ("lambda_us", "tau_us") and _is_of_one_number(measured):
        raise InputError("channels", int(measured.channels[0]), "several, to separate lambda from tau")
    path, other = (fast, slow) if which == "fast" else (slow, fast)
    decides = _times_of(measured, path) >= _times_of(measured, other)
    if name in ("lambda_us", "tau_us") and len(set(measured.channels[decides].tolist())) < 2:  # noqa: PLR2004
        return None
    lambda_us, tau_us, us_per_byte = path
    values = {
        "lambda_us": lambda_us,
        "tau_us": tau_us,
        "fixed_us": lambda_us + channels * tau_us,
        "beta_mb_s": 1 / us_per_byte if us_per_byte > 0 else math.inf,
    }
    return float(values[name])


def _times_of(measured: BenchResult, path: tuple[float, ...]) -> NDArray[np.float64]:
    lambda_us, tau_us, us_per_byte = path
    return np.asarray(lambda_us + measured.channels * (tau_us + us_per_byte * measured.sizes_bytes))


@cache
def _paths_of(content: bytes) -> tuple[tuple[float, ...], ...]:
    measurement = parse("sweep", content)
    coefficients = fit_coefficients(data_of(measurement), 2)
    # The fit's last bits depend on the host's processor, by which the library of linear algebra chooses its code.
    return tuple(tuple(float(f"{value:.9e}") for value in row) for row in coefficients)


def path_coefficients(measured: BenchResult) -> tuple[tuple[float, ...], ...]:
    """Two fitted paths, that of the higher beta first: lambda (us), tau (us) and 1 / beta (us per byte).

    With one number of channels, lambda includes tau, and tau is zero.
    """
    paths = _paths_of(json.dumps(measured.to_json()).encode())
    return tuple((path[0], 0.0, path[1]) if _is_of_one_number(measured) else path for path in paths)


def _is_of_one_number(measured: BenchResult) -> bool:
    return len(set(measured.channels.tolist())) == 1


def link_mib_s(machine: str) -> float:
    """The bandwidth of one direction of a link, including headers."""
    link = read_machine(machine).file.network.link
    if link is None:
        raise InputError("quantity", "link_fraction", "a machine with links")
    return float(link.word_bytes.value * link.clock_mhz.value * 1e6 / link.word_cycles.value / _BYTES_PER_MIB)
