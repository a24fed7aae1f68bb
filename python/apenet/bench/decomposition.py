"""The division of a lattice among ranks in four dimensions, and the node of each rank.

On a torus or mesh each dimension of the grid of ranks lies along one dimension of the machine. Two dimensions of two
ranks each also fold onto a ring of four nodes, in the order of a Gray code, because a ring of four is a square.

`apenet.machine.cart` searches the placements. Here the grid itself is chosen, among those that it places straight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from apenet.base.errors import InputError
from apenet.base.grid import number_of, place_of
from apenet.machine import Machine
from apenet.machine.cart import GRAY, factors, open_rings, straight

DIMENSIONS = 4


@dataclass(frozen=True)
class Decomposition:
    """A grid of ranks, the extents of each rank's part of the lattice, and the node of each rank.

    Ranks and nodes are numbered with the first coordinate fastest.
    """

    grid: tuple[int, ...]
    local: tuple[int, ...]
    nodes: tuple[int, ...]

    @property
    def surface_to_volume(self) -> float:
        """Sites whose half-spinors leave a rank, both ways in each divided dimension, over the sites of a rank."""
        return _surface(self.local, self.grid)

    @property
    def whole(self) -> tuple[int, ...]:
        """The extents of the whole lattice."""
        return tuple(extent * ranks for extent, ranks in zip(self.local, self.grid, strict=True))


def decompose(machine: Machine, ranks: int, lattice: Sequence[int], *, strong: bool) -> Decomposition:
    """The best grid among those that keep the most neighbours on neighbouring nodes.

    `lattice` is the whole lattice if `strong`, and the grid gives its parts the smallest surface. Otherwise it is the
    part of each rank, and the grid gives the whole lattice the smallest surface, as lattices of a study grow in all
    dimensions: a line of ranks would have fewer faces. Parts have even extents, so that both parities have the same
    sites everywhere. Raises InputError if no grid divides the lattice so.
    """
    divided = (
        (grid, local)
        for grid in factors((ranks,) * DIMENSIONS, ranks)
        if (local := _divided(lattice, grid) if strong else tuple(lattice)) is not None
    )
    torus = machine.allocation.torus
    scored = [
        ((0 if torus is None else open_rings(nodes, grid, torus), surface, grid[::-1], along), nodes, local)
        for grid, local in divided
        for surface in [_surface(local, grid) if strong else _whole_surface(local, grid)]
        for along, nodes in (straight(grid, torus) if torus else [((), np.arange(ranks).reshape(grid[::-1]).T)])
    ]
    if not scored:
        on_machine = f" on a box of {machine.allocation.shape}" if machine.allocation.dims else ""
        raise InputError(
            "ranks",
            ranks,
            f"a number that divides {'x'.join(map(str, lattice))} into parts of even extents{on_machine}",
        )
    (_, _, backwards, _), nodes, local = min(scored, key=itemgetter(0))
    grid = backwards[::-1]
    return Decomposition(grid, local, tuple(nodes.reshape(grid).T.ravel().tolist()))


def folded(grid: tuple[int, ...]) -> tuple[tuple[int, ...], list[int]]:
    """A grid with a fourth dimension of two, and the place of each of its ranks in the grid of three.

    The new dimension shares a line with one of extent 4, as a square on a ring, or with the longest even one: there
    both ranks of each pair are neighbours, and the other dimension goes in steps of two. Raises InputError for a grid
    without an even extent.
    """
    even = [extent for extent in grid if extent % 2 == 0]
    if not even:
        raise InputError("n", math.prod(grid), f"an even extent in the grid {'x'.join(map(str, grid))} for halo4d")
    dimension = grid.index(len(GRAY) if len(GRAY) in even else max(even))
    half = grid[dimension] // 2
    finer = (*grid[:dimension], half, *grid[dimension + 1 :], 2)
    places = []
    for rank in range(math.prod(finer)):
        *place, side = place_of(finer, rank)
        along = place[dimension]
        place[dimension] = int(GRAY[along + 2 * side]) if half * 2 == len(GRAY) else 2 * along + side
        places.append(number_of(grid, place))
    return finer, places


def _divided(lattice: Sequence[int], grid: tuple[int, ...]) -> tuple[int, ...] | None:
    """The part of each rank; None if its extents would not be even."""
    if any(extent % (2 * ranks) for extent, ranks in zip(lattice, grid, strict=True)):
        return None
    return tuple(extent // ranks for extent, ranks in zip(lattice, grid, strict=True))


def _surface(local: tuple[int, ...], grid: tuple[int, ...]) -> float:
    return sum(2 / extent for extent, ranks in zip(local, grid, strict=True) if ranks > 1)


def _whole_surface(local: tuple[int, ...], grid: tuple[int, ...]) -> float:
    return sum(2 / (extent * ranks) for extent, ranks in zip(local, grid, strict=True))
