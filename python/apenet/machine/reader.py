"""Reads quantities in base units: picoseconds, hertz, bytes. The only place where a unit is converted.

A time that is no whole number of picoseconds, or a clock that is no whole number of hertz, is refused: nothing is
rounded silently. Bandwidths are rounded down to a whole number of bytes per second, so that nothing becomes faster
than its rate.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from apenet import _core
from apenet.base.errors import MachineError
from apenet.machine.quantity import Quantity
from apenet.machine.units import scaled

PS_PER_SECOND = 10**12
MOST_BYTES_PER_SECOND = 2**60  # the core counts in 64 bits
MOST_PER_SECOND = 2**60
# A thousand seconds: the clock ends after 104 days, and a run has many steps.
MOST_PS = 10**15
MOST_HZ = 10**12  # a cycle is a picosecond


class Reader:
    """Reads quantities of one section; raises MachineError with the file's and section's names."""

    def __init__(self, file: Path | str, section: str) -> None:
        self.file = file
        self.section = section

    def whole(self, key: str, exact: Fraction, value: float, unit: str) -> int:
        """An exact value that has to be a whole number."""
        if exact.denominator != 1:
            raise MachineError(self.file, f"{self.section}.{key}", value, f"a whole number of {unit}")
        return int(exact)

    def ps(self, key: str, quantity: Quantity[float]) -> int:
        """A time in picoseconds."""
        time_ps = self.whole(key, scaled(key, quantity.value) * PS_PER_SECOND, quantity.value, "picoseconds")
        return self.at_most(key, time_ps, MOST_PS, quantity.value, "1000 seconds")

    def hz(self, key: str, quantity: Quantity[float]) -> int:
        """A clock in hertz."""
        clock_hz = self.whole(key, scaled(key, quantity.value), quantity.value, "hertz")
        return self.at_most(key, clock_hz, MOST_HZ, quantity.value, "1 THz")

    def per_second(self, key: str, quantity: Quantity[float], unit: str) -> int:
        """A rate in whole operations per second."""
        rate = self.whole(key, Fraction(str(quantity.value)), quantity.value, unit)
        return self.at_most(key, rate, MOST_PER_SECOND, quantity.value, f"2^60 {unit} per second")

    def at_most(self, key: str, number: int, most: int, value: float, limit: str) -> int:
        """A number within what the core counts."""
        if number > most:
            raise MachineError(self.file, f"{self.section}.{key}", value, f"at most {limit}")
        return number

    def bytes_per_second(self, key: str, quantity: Quantity[float]) -> int:
        """A bandwidth, rounded down."""
        rate = int(scaled(key, quantity.value))
        if rate < 1:
            raise MachineError(self.file, f"{self.section}.{key}", quantity.value, "at least one byte per second")
        if rate > MOST_BYTES_PER_SECOND:
            raise MachineError(self.file, f"{self.section}.{key}", quantity.value, "at most 2^60 bytes per second")
        return rate

    def rate(self, key: str, quantity: Quantity[float]) -> _core.DataRate:
        """The same as the core takes it."""
        return _core.DataRate(self.bytes_per_second(key, quantity), 1, 1)
