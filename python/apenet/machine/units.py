"""Units in key names: what the last part of a key says about its value."""

from __future__ import annotations

import math
from fractions import Fraction

from apenet import _core

# Suffix of a key: how the unit is printed, its dimension, and how much of the base unit of that it is.
UNITS: dict[str, tuple[str, _core.Dimension, Fraction]] = {
    unit.suffix: (unit.printed, unit.dimension, Fraction(unit.multiplier, unit.divisor)) for unit in _core.units()
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


def conversion_hint(wrong_key: str, known_key: str, value: object) -> str | None:
    """'the unit is MHz: clock_mhz = 133' when two keys name the same thing in different units."""
    wrong_stem, wrong_suffix = split_unit(wrong_key)
    known_stem, known_suffix = split_unit(known_key)
    if not known_suffix or wrong_suffix == known_suffix or known_stem not in (wrong_stem, wrong_key):
        return None
    name, dimension, factor = UNITS[known_suffix]
    if not wrong_suffix:
        return f'"{known_key}": keys carry their unit, here {name}'
    _, wrong_dimension, wrong_factor = UNITS[wrong_suffix]
    if wrong_dimension != dimension:
        return f'"{known_key}", in {name}'
    converted = ""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        converted = f": {known_key} = {float(Fraction(str(value)) * wrong_factor / factor):.12g}"
    return f'"{known_key}", in {name}{converted}'
