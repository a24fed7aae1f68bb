"""The numbering of the places of a grid, the first coordinate running fastest: as kernel/grid.hpp in the core.

`apenet.machine.cart` has the same for arrays.
"""

from __future__ import annotations

from collections.abc import Sequence


def place_of(extents: Sequence[int], number: int) -> list[int]:
    """The coordinates of a node or process."""
    place = []
    for extent in extents:
        place.append(number % extent)
        number //= extent
    return place


def number_of(extents: Sequence[int], place: Sequence[int]) -> int:
    """The node or process at these coordinates."""
    number = 0
    for extent, coordinate in zip(reversed(extents), reversed(place), strict=True):
        number = number * extent + coordinate
    return number
