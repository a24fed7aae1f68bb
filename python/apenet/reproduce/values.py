"""From the points of a sweep to the value that was published."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from apenet.bench.result import BenchResult
from apenet.errors import InputError
from apenet.machine import machine as read_machine
from apenet.machine.published import PublishedResult

_BYTES_PER_MIB = 2**20
_BYTES_OF = {"bandwidth_mib_s": _BYTES_PER_MIB, "bandwidth_mb_s": 1e6, "bandwidth_gb_s": 1e9}


def value_of(machine: str, published: PublishedResult, results: list[BenchResult], size: int | None) -> float:
    """The simulated value of one point of a published result; `results` are those of its sweeps."""
    measured = results[0]
    if published.quantity == "flat_until_bytes":
        return _flat_until(measured, published.within_us or 0)
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
    """The largest size up to which no time is further than `within_us` from that of the smallest size."""
    far = np.abs(measured.times_us - measured.times_us[0]) > within_us
    first = int(np.argmax(far)) if far.any() else len(far)
    return float(measured.sizes_bytes[first - 1])


def link_mib_s(machine: str) -> float:
    """What one direction of a link carries, headers included."""
    link = read_machine(machine).file.network.link
    if link is None:
        raise InputError("quantity", "link_fraction", "a machine with links")
    return link.word_bytes.value * link.clock_mhz.value * 1e6 / link.word_cycles.value / _BYTES_PER_MIB
