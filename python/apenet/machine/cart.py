"""Folds a grid of ranks onto a torus or mesh, so that neighbours in the grid are neighbours in the network.

Each dimension of the grid is closed, as in lattice QCD. The search splits the dimensions of the grid, and the axes of a
block of nodes, into groups, and gives each group of the one a group of the other with the same number of places. Within
a group the places are numbered along a walk of neighbours, which is closed if an extent is even. So a ring of 8 ranks
lies on 4x2 nodes, and a grid of 2x2 ranks on a ring of 4 nodes, without a pair that is not adjacent. Of all candidates
the one with the fewest links between neighbours wins; of equal ones, the one with the smallest largest distance, then
the first. `straight` gives the candidates in which no dimension of the grid is bent.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from apenet.base.grid import Integers, number_of, place_of

Extents = tuple[int, ...]
GRAY: Integers = np.array([0, 1, 3, 2])
"""The place in a ring of four of each corner of a square."""


@dataclass(frozen=True)
class Torus:
    """The nodes of a machine as a block: their number along each dimension, and whether its ends are joined."""

    extents: Extents
    is_closed: tuple[bool, ...]

    @property
    def is_all_closed(self) -> bool:
        """Whether the ends are joined along each dimension of more than one node."""
        return all(closed or extent == 1 for extent, closed in zip(self.extents, self.is_closed, strict=True))


def fold(grid: Sequence[int], torus: Torus, ranks_per_node: int) -> Integers | None:
    """The node of each rank, in the order of `MPI_Cart_create`: the last coordinate changes fastest.

    Nodes are numbered with the first dimension fastest. None if the ranks do not fill whole nodes of a block.
    """
    best: tuple[int, int] | None = None
    chosen: Integers | None = None
    ranks = _coordinates(tuple(grid))
    for inner in factors(tuple(grid), ranks_per_node):
        outer = tuple(extent // part for extent, part in zip(grid, inner, strict=True))
        for nodes_of_outer in _embeddings(outer, torus):
            nodes = nodes_of_outer[_number(ranks // np.array(inner), outer)]
            cost = _distances(nodes, tuple(grid), torus)
            if best is None or cost < best:
                best, chosen = cost, nodes
            if cost[1] <= 1:  # with this division into nodes, no candidate has fewer links
                break
    return chosen


def _coordinates(extents: Extents) -> Integers:
    """The coordinates of all places, the last one fastest: shape (places, dimensions)."""
    return np.stack(place_of(extents[::-1], np.arange(math.prod(extents)))[::-1], axis=1)


def _number(coordinates: Integers, extents: Extents) -> Integers:
    return number_of(extents[::-1], list(coordinates.T[::-1]))


def factors(extents: Extents, product: int) -> Iterator[Extents]:
    """All ways to divide the extents so that the divisors multiply to `product`."""
    if not extents:
        if product == 1:
            yield ()
        return
    for divisor in range(1, min(extents[0], product) + 1):
        if extents[0] % divisor == 0 and product % divisor == 0:
            for rest in factors(extents[1:], product // divisor):
                yield (divisor, *rest)


def _blocks(torus: Torus, nodes: int) -> Iterator[Extents]:
    """The extents of all blocks at the origin with this number of nodes."""

    def from_dimension(dimension: int, left: int) -> Iterator[Extents]:
        if dimension == len(torus.extents):
            if left == 1:
                yield ()
            return
        for extent in range(min(torus.extents[dimension], left), 0, -1):
            if left % extent == 0:
                for rest in from_dimension(dimension + 1, left // extent):
                    yield (extent, *rest)

    yield from from_dimension(0, nodes)


def _groupings(count: int) -> Iterator[tuple[int, ...]]:
    """All ways to put `count` things into groups: the group of each, numbered in the order of appearance."""
    for groups in itertools.product(range(count), repeat=count):
        if all(group <= max(groups[:i], default=-1) + 1 for i, group in enumerate(groups)):
            yield groups


def _embeddings(grid: Extents, torus: Torus) -> Iterator[Integers]:
    """The node of each place of the grid, once for each candidate."""
    wide = [dimension for dimension, extent in enumerate(grid) if extent > 1]
    for block in _blocks(torus, math.prod(grid)):
        for axes in _axes(block, torus, torus.is_closed):
            for groups in _groupings(len(wide)):
                dimensions_of = _members(wide, groups, max(groups, default=-1) + 1)
                for owners in itertools.product(range(len(dimensions_of)), repeat=len(axes)):
                    axes_of = _members(range(len(axes)), owners, len(dimensions_of))
                    if all(
                        math.prod(grid[d] for d in dimensions) == math.prod(axes[a].extent for a in members)
                        for dimensions, members in zip(dimensions_of, axes_of, strict=True)
                    ):
                        yield _joined(grid, torus, axes, dimensions_of, axes_of)


def straight(grid: Extents, torus: Torus) -> Iterator[tuple[tuple[Extents, ...], Integers]]:
    """The dimensions of the grid along each dimension of the nodes, and the node of each place of the grid.

    A line of four nodes is a square too, although one of its sides is open.
    """
    wide = [dimension for dimension, extent in enumerate(grid) if extent > 1]
    for block in _blocks(torus, math.prod(grid)):
        for axes in _axes(block, torus, (True,) * len(block)):
            for order in itertools.permutations(wide):
                if [grid[dimension] for dimension in order] != [axis.extent for axis in axes]:
                    continue
                along = tuple(
                    tuple(d for d, axis in zip(order, axes, strict=True) if axis.dimension == dimension)
                    for dimension in range(len(block))
                )
                if all(of_square[0] >= of_square[-1] for of_square in along if of_square):  # each square once
                    each = [[axis] for axis in range(len(axes))]
                    yield tuple(d[::-1] for d in along), _joined(grid, torus, axes, [[d] for d in order], each)


@dataclass(frozen=True)
class _Axis:
    """A direction in the block. A ring of four is also a square: two axes of two, in the order of a Gray code."""

    dimension: int
    extent: int


def _axes(block: Extents, torus: Torus, may_be_square: Sequence[bool]) -> Iterator[list[_Axis]]:
    """The axes of the block, with each ring of four as one or as two."""
    choices = []
    for dimension, extent in enumerate(block):
        if extent > 1:
            is_square = extent == torus.extents[dimension] == len(GRAY) and may_be_square[dimension]
            choices.append([[_Axis(dimension, extent)], *([[_Axis(dimension, 2)] * 2] if is_square else [])])
    for chosen in itertools.product(*choices):
        yield [axis for axes in chosen for axis in axes]


def _members(things: Sequence[int], groups: Sequence[int], count: int) -> list[list[int]]:
    """The things of each of `count` groups."""
    return [[thing for thing, group in zip(things, groups, strict=True) if group == wanted] for wanted in range(count)]


def _joined(
    grid: Extents, torus: Torus, axes: list[_Axis], dimensions_of: list[list[int]], axes_of: list[list[int]]
) -> Integers:
    places = _coordinates(grid)
    along = np.zeros((len(places), len(axes)), dtype=np.int64)
    for dimensions, members in zip(dimensions_of, axes_of, strict=True):
        extents = tuple(grid[d] for d in dimensions)
        walk_of_grid = _walk(extents)
        position = np.empty(len(walk_of_grid), dtype=np.int64)  # position of each place of the group on its walk
        position[_number(walk_of_grid, extents)] = np.arange(len(walk_of_grid))
        walk = _walk(tuple(axes[a].extent for a in members))
        along[:, members] = walk[position[_number(places[:, dimensions], extents)]]
    at = []
    for dimension in range(len(torus.extents)):
        columns = along[:, [a for a, axis in enumerate(axes) if axis.dimension == dimension]]
        is_square = columns.shape[1] == 2  # noqa: PLR2004
        at.append(GRAY[2 * columns[:, 0] + columns[:, 1]] if is_square else columns.sum(axis=1))
    return number_of(torus.extents, at)


@cache
def _walk(extents: Extents) -> Integers:
    """Visits every place once, from neighbour to neighbour; with several extents, closed if one of them is even."""
    if len(extents) == 1:
        return np.arange(extents[0], dtype=np.int64)[:, np.newaxis]
    for axis, extent in enumerate(extents):
        if extent % 2 == 0:
            rest = [other for other in range(len(extents)) if other != axis]
            line = _line(tuple(extents[other] for other in rest))
            return _comb(line, rest, axis, extent)
    return _line(extents)


def _line(extents: Extents) -> Integers:
    """The reflected Gray code: all places, from neighbour to neighbour, not closed."""
    if len(extents) == 1:
        return np.arange(extents[0], dtype=np.int64)[:, np.newaxis]
    rest = _line(extents[1:])
    rows = [
        np.column_stack([np.full(len(rest), row), rest if row % 2 == 0 else rest[::-1]]) for row in range(extents[0])
    ]
    return np.concatenate(rows).astype(np.int64)


def _comb(line: Integers, rest: list[int], axis: int, extent: int) -> Integers:
    """A closed walk over a line of places times an axis of an even extent: a comb, and back along its spine."""
    places = []
    for row in range(extent):
        tooth = list(range(1, len(line)))
        places += [(row, column) for column in (tooth if row % 2 == 0 else tooth[::-1])]
    places += [(row, 0) for row in reversed(range(extent))]
    walk = np.empty((len(places), len(rest) + 1), dtype=np.int64)
    walk[:, axis] = [row for row, _ in places]
    walk[:, rest] = line[[column for _, column in places]]
    return walk


def _distances(nodes: Integers, grid: Extents, torus: Torus) -> tuple[int, int]:
    """The links between all neighbours in the grid together, and between the two that are farthest apart."""
    links = _links(nodes, grid, torus)
    return sum(int(one.sum()) for one in links), max((int(one.max()) for one in links), default=0)


def open_rings(nodes: Integers, grid: Extents, torus: Torus) -> int:
    """The dimensions of the grid in which some neighbours are not on neighbouring nodes."""
    return sum(int(one.max()) > 1 for one in _links(nodes, grid, torus))


def _links(nodes: Integers, grid: Extents, torus: Torus) -> list[Integers]:
    """The links between the neighbours along each wide dimension of the grid."""
    placed = nodes.reshape(grid)
    wide = [dimension for dimension, extent in enumerate(grid) if extent > 1]
    return [hops(placed, np.roll(placed, -1, axis=dimension), torus) for dimension in wide]


def hops(nodes: Integers, others: Integers, torus: Torus) -> Integers:
    """The links between two nodes of a torus or mesh, element by element."""
    total = np.zeros(nodes.shape, dtype=np.int64)
    places = zip(place_of(torus.extents, nodes), place_of(torus.extents, others), strict=True)
    for extent, is_closed, (here, there) in zip(torus.extents, torus.is_closed, places, strict=True):
        distance = np.abs(here - there)
        total += np.minimum(distance, extent - distance) if is_closed else distance
    return total
