"""Numbers that come from Python: numpy's are as good as Python's own."""

from __future__ import annotations

import operator
from typing import SupportsIndex

import numpy as np

from apenet.base.errors import InputError

MOST_SEED = 2**64 - 1


def whole(name: str, value: SupportsIndex, least: int, most: int, expected: str) -> int:
    """A whole number in a range, as Python's own. Raises InputError, also for True and False."""
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
