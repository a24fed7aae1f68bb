"""The numbering of the places of a grid, the first coordinate running fastest: as kernel/grid.hpp in the core."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Number = TypeVar("Number", int, Integers)
"""The number of one place, or of many, element by element."""


def place_of(extents: Sequence[int], number: Number) -> list[Number]:
    """The coordinates of a node or process."""
    place = []
    for extent in extents:
        place.append(number % extent)
        number = number // extent
    return place


def number_of(extents: Sequence[int], place: Sequence[Number]) -> Number:
    """The node or process at these coordinates, of which there is at least one."""
    *lower, number = place
    for extent, coordinate in zip(reversed(extents[:-1]), reversed(lower), strict=True):
        number = number * extent + coordinate
    return number


def nearly_cubic(count: int, dimensions: int) -> tuple[int, ...]:
    """Nearly equal factors of count, largest first: assigns the prime factors greedily, greatest first."""
    grid = [1] * dimensions
    for prime in reversed(_prime_factors(count)):
        smallest = grid.index(min(grid))
        grid[smallest] *= prime
    return tuple(sorted(grid, reverse=True))


def _prime_factors(number: int) -> list[int]:
    factors = []
    divisor = 2
    while divisor <= math.isqrt(number):
        while number % divisor == 0:
            factors.append(divisor)
            number //= divisor
        divisor += 1
    return [*factors, number] if number > 1 else factors
