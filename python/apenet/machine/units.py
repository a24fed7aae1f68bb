"""Units in key names: what the last part of a key says about its value."""

from __future__ import annotations

import math
from fractions import Fraction

# Suffix of a key: how the unit is printed, and how much of the base unit of its kind it is. Kinds: frequency (Hz),
# time (s), size (bytes), rate (bytes per second), and bare counts.
UNITS: dict[str, tuple[str, str, Fraction]] = {
    "hz": ("Hz", "frequency", Fraction(1)),
    "khz": ("kHz", "frequency", Fraction(10**3)),
    "mhz": ("MHz", "frequency", Fraction(10**6)),
    "ghz": ("GHz", "frequency", Fraction(10**9)),
    "ps": ("ps", "time", Fraction(1, 10**12)),
    "ns": ("ns", "time", Fraction(1, 10**9)),
    "us": ("us", "time", Fraction(1, 10**6)),
    "ms": ("ms", "time", Fraction(1, 10**3)),
    "s": ("s", "time", Fraction(1)),
    "bytes": ("bytes", "size", Fraction(1)),
    "bits": ("bits", "size", Fraction(1, 8)),
    "kib": ("KiB", "size", Fraction(2**10)),
    "mib": ("MiB", "size", Fraction(2**20)),
    "kb": ("kB", "size", Fraction(10**3)),
    "mb": ("MB", "size", Fraction(10**6)),
    "mib_s": ("MiB/s", "rate", Fraction(2**20)),
    "gib_s": ("GiB/s", "rate", Fraction(2**30)),
    "kib_s": ("KiB/s", "rate", Fraction(2**10)),
    "mb_s": ("MB/s", "rate", Fraction(10**6)),
    "gb_s": ("GB/s", "rate", Fraction(10**9)),
    "gbit_s": ("Gbit/s", "rate", Fraction(10**9, 8)),
    "bytes_s": ("bytes/s", "rate", Fraction(1)),
    "cycles": ("cycles", "count", Fraction(1)),
    "entries": ("entries", "count", Fraction(1)),
    "per_second": ("per second", "count", Fraction(1)),
    "percent": ("percent", "count", Fraction(1)),
}


def split_unit(key: str) -> tuple[str, str]:
    """('clock', 'mhz') for 'clock_mhz'; the suffix is empty where the key names no unit."""
    parts = key.split("_")
    for length in (2, 1):
        suffix = "_".join(parts[-length:])
        if suffix in UNITS and len(parts) > length:
            return "_".join(parts[:-length]), suffix
    return key, ""


def unit_name(key: str) -> str:
    """The unit as it is printed, 'MHz' for 'clock_mhz', or the empty string."""
    suffix = split_unit(key)[1]
    return UNITS[suffix][0] if suffix else ""


def scaled(key: str, value: float) -> Fraction:
    """The value in the base unit of its key. Exact: the decimal digits that the file shows are what is meant."""
    return Fraction(str(value)) * UNITS[split_unit(key)[1]][2]


def conversion_hint(wrong_key: str, known_key: str, value: object) -> str | None:
    """'the unit is MHz: clock_mhz = 133' when two keys name the same thing in different units."""
    wrong_stem, wrong_suffix = split_unit(wrong_key)
    known_stem, known_suffix = split_unit(known_key)
    if not known_suffix or wrong_suffix == known_suffix or known_stem not in (wrong_stem, wrong_key):
        return None
    name, kind, factor = UNITS[known_suffix]
    if not wrong_suffix:
        return f'"{known_key}": keys carry their unit, here {name}'
    _, wrong_kind, wrong_factor = UNITS[wrong_suffix]
    if wrong_kind != kind:
        return f'"{known_key}", in {name}'
    converted = ""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        converted = f": {known_key} = {float(Fraction(str(value)) * wrong_factor / factor):.12g}"
    return f'"{known_key}", in {name}{converted}'
