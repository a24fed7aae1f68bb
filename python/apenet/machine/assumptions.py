"""The assumed numbers of a machine, each with the range of its plausible values, and draws from these ranges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apenet.machine import Machine
from apenet.machine.quantity import quantities

METHODS = ("random", "latin", "sobol")
"""How numbers are drawn together: independently, as a Latin hypercube (McKay et al. 1979), as a scrambled Sobol'
sequence (Owen 1998)."""


@dataclass(frozen=True)
class Assumption:
    """An assumed number of a machine with the range of its plausible values."""

    key: str
    value: float
    low: float
    high: float
    reason: str
    is_whole: bool
    fits_ends: bool = True
    """Whether whole numbers divide as both ends do."""

    def at(self, share: float) -> str:
        """The setting for a value in the range: at `share` of it, in the logarithm for a range without zero.

        Three digits, so that times are whole picoseconds. Whole numbers are powers of two if both ends are, and else
        multiples of the largest number that divides both ends, so that sizes fit each other, or any if not `fits_ends`.
        """
        if self.low > 0:
            value = self.low * (self.high / self.low) ** share
        else:
            value = self.low + share * (self.high - self.low)
        if self.is_whole:
            low, high = int(self.low), int(self.high)
            if low.bit_count() == high.bit_count() == 1:
                return f"{self.key}={2 ** round(math.log2(value))}"
            step = math.gcd(low, high) if self.fits_ends else 1
            return f"{self.key}={round(value / step) * step}"
        return f"{self.key}={float(f'{value:.3g}')!r}"


def matters(key: str, with_sockets: bool) -> bool:
    """Whether the number of this key may change a simulation, with or without simulated sockets."""
    return with_sockets or not key.startswith("software.ip.")


def assumptions(machine: Machine, with_sockets: bool = False) -> list[Assumption]:
    """Those that may matter, in the order of the schema."""
    found = []
    for key, quantity in quantities(machine.file):
        if quantity.range is not None and matters(key, with_sockets):
            low, high = quantity.range
            whole = isinstance(quantity.value, int)
            found.append(Assumption(key, quantity.value, low, high, quantity.range_source, whole))
    return found


def drawn_shares(dimensions: int, samples: int, method: str, seed: int) -> Sequence[Sequence[float]]:
    """Points of the unit cube, of shape (samples, dimensions), by one of `METHODS`; none without dimensions.

    A Sobol' sequence is balanced where `samples` is a power of two.
    """
    if dimensions == 0:
        return []
    drawn: Sequence[Sequence[float]]
    if method == "random":
        drawn = np.random.default_rng(seed).random((samples, dimensions)).tolist()
    else:
        from scipy.stats import qmc  # noqa: PLC0415 (slow to load)

        engine = qmc.LatinHypercube(dimensions, seed=seed) if method == "latin" else qmc.Sobol(dimensions, seed=seed)
        drawn = engine.random(samples).tolist()
    return drawn
