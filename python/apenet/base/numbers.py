"""Checks numbers given from Python; numpy's types are accepted."""

from __future__ import annotations

import operator
from typing import SupportsIndex

import numpy as np

from apenet.base.errors import InputError

MOST_SEED = 2**64 - 1


def whole(name: str, value: SupportsIndex, least: int, most: int, expected: str) -> int:
    """Converts a whole number in a range to int. Raises InputError, also for True and False."""
    try:
        number = None if isinstance(value, bool | np.bool_) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        raise InputError(name, value, expected)
    return number


def checked_seed(seed: SupportsIndex) -> int:
    """The seed of a simulation. Raises InputError."""
    return whole("seed", seed, 0, MOST_SEED, "a whole number from 0 to 2^64 - 1")
