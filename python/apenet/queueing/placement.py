"""Placement policies: which of a machine's free nodes a job gets.

`occupied` is an array of bools, by node. Boxes are those of `apenet partition`: they do not cross the machine's edge.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np

from apenet.base.errors import InputError
from apenet.base.grid import Integers, number_of, place_of
from apenet.machine import Machine

Extents = tuple[int, ...]
SPLIT = "split:"


@dataclass(frozen=True)
class Place:
    """Nodes for a job, and their extents if they are a box."""

    nodes: tuple[int, ...]
    extents: Extents = ()


class Policy(Protocol):
    """Finds places."""

    name: str

    def place(self, occupied: Any, count: int) -> Place | None:  # noqa: ANN401 (numpy's bools)
        """Free nodes for a job of `count` nodes; None if it has to wait."""

    def fits(self, occupied: Any, count: int) -> bool:  # noqa: ANN401
        """Whether there is a place."""


POLICIES = {
    "first-fit": "the first free box of the most compact shape",
    "shape-search": "the first free box of any shape, the most compact ones first",
    "best-fit": "of the free boxes of all shapes, that with the most occupied neighbours",
    "contiguous": "consecutive numbers",
    "random": "any free nodes, drawn",
}
"""Names, and where a job's nodes are. Beside them, `split:BOX`: whole boxes of the divided machine, in their order."""


def policy(name: str, machine: Machine, seed: int) -> Policy:
    """The policy of this name on this machine. Raises InputError."""
    count = machine.node_count
    if count is None:
        raise InputError("machine", machine.name, "a machine with a number of nodes")
    torus = machine.allocation.torus
    dims = () if torus is None else torus.extents
    if name.startswith(SPLIT):
        return _Split(name, tuple(one.nodes for one in machine.split(name.removeprefix(SPLIT))), dims)
    if name == "contiguous":
        return _Contiguous(dims)
    if name == "random":
        return _Random(seed)
    if name not in POLICIES:
        raise InputError("policy", name, f"{', '.join(POLICIES)}, or {SPLIT}1x4x4")
    if torus is None:
        raise InputError("policy", name, f"contiguous or random on {machine.name}, which is no torus and no mesh")
    return _Boxes(name, torus.extents, torus.is_closed)


class _Boxes:
    def __init__(self, name: str, dims: Extents, is_closed: tuple[bool, ...]) -> None:
        self.name = name
        self._dims = dims
        self._is_closed = is_closed

    def place(self, occupied: Any, count: int) -> Place | None:  # noqa: ANN401
        # The first coordinate is the fastest: the last axis of an array in C's order.
        free = ~occupied.reshape(self._dims[::-1])
        best: tuple[int, Place] | None = None
        for extents in self._shapes(count):
            for origin in self._origins(free, extents):
                found = self._box(origin, extents)
                if self.name != "best-fit":
                    return found
                contact = self._contact(free, origin, extents)
                if best is None or contact > best[0]:
                    best = contact, found
        return None if best is None else best[1]

    def fits(self, occupied: Any, count: int) -> bool:  # noqa: ANN401
        free = ~occupied.reshape(self._dims[::-1])
        return any(True for extents in self._shapes(count) for _ in self._origins(free, extents))

    def _shapes(self, count: int) -> tuple[Extents, ...]:
        found = shapes(count, self._dims)
        return found[:1] if self.name == "first-fit" else found

    @staticmethod
    def _origins(free: Any, extents: Extents) -> Iterator[Extents]:  # noqa: ANN401
        windows = np.lib.stride_tricks.sliding_window_view(free, extents[::-1])
        axes = tuple(range(free.ndim, 2 * free.ndim))
        for origin in np.argwhere(windows.all(axis=axes)):
            yield tuple(int(at) for at in origin[::-1])

    def _box(self, origin: Extents, extents: Extents) -> Place:
        within = place_of(extents, np.arange(math.prod(extents)))
        nodes = number_of(self._dims, [along + first for along, first in zip(within, origin, strict=True)])
        return Place(tuple(nodes.tolist()), extents)

    def _contact(self, free: Any, origin: Extents, extents: Extents) -> int:  # noqa: ANN401
        """The links from the box to nodes that are occupied, or that a mesh does not have."""
        total = 0
        for dimension, (first, extent, most) in enumerate(zip(origin, extents, self._dims, strict=True)):
            if extent == most:
                continue
            for beyond in (first - 1, first + extent):
                if not self._is_closed[dimension] and not 0 <= beyond < most:
                    total += math.prod(extents) // extent
                    continue
                face = [slice(at, at + length) for at, length in zip(origin, extents, strict=True)]
                face[dimension] = slice(beyond % most, beyond % most + 1)
                total += int((~free[tuple(reversed(face))]).sum())
        return total


@cache
def shapes(count: int, dims: Extents) -> tuple[Extents, ...]:
    """The extents of the smallest boxes with at least `count` nodes, the most compact ones first."""
    for nodes in range(count, math.prod(dims) + 1):
        found = [
            extents
            for extents in _extents(nodes, dims)
            if all(extent <= most for extent, most in zip(extents, dims, strict=True))
        ]
        if found:
            return tuple(sorted(found, key=lambda extents: _compactness(extents, dims)))
    return ()


def _extents(nodes: int, dims: Extents) -> Iterator[Extents]:
    if len(dims) == 1:
        yield (nodes,)
        return
    for extent in range(1, min(nodes, dims[0]) + 1):
        if nodes % extent == 0:
            for rest in _extents(nodes // extent, dims[1:]):
                yield (extent, *rest)


def _compactness(extents: Extents, dims: Extents) -> tuple[int, int, Extents]:
    """Less for a box that fewer links leave in one direction of each dimension; then for one that spans more."""
    nodes = math.prod(extents)
    open_ends = [extent for extent, most in zip(extents, dims, strict=True) if extent < most]
    return sum(nodes // extent for extent in open_ends), len(open_ends), extents[::-1]


def _first_run(free: Any, length: int) -> int | None:  # noqa: ANN401 (numpy's bools)
    """Where the first run of this length begins."""
    if length > len(free):
        return None
    begins = np.flatnonzero(np.lib.stride_tricks.sliding_window_view(free, length).all(axis=1))
    return int(begins[0]) if len(begins) else None


def _box_of(nodes: tuple[int, ...], dims: Extents) -> Place:
    """The place of these nodes: a box if they fill one."""
    if not dims:
        return Place(nodes)
    numbers = np.sort(nodes)
    place = place_of(dims, numbers)
    extents = tuple(int(along.max() - along.min()) + 1 for along in place)
    return Place(tuple(numbers.tolist()), extents) if math.prod(extents) == len(nodes) else Place(nodes)


class _Contiguous:
    name = "contiguous"

    def __init__(self, dims: Extents) -> None:
        self._dims = dims

    def place(self, occupied: Any, count: int) -> Place | None:  # noqa: ANN401
        first = _first_run(~occupied, count)
        return None if first is None else _box_of(tuple(range(first, first + count)), self._dims)

    def fits(self, occupied: Any, count: int) -> bool:  # noqa: ANN401
        return self.place(occupied, count) is not None


class _Random:
    name = "random"

    def __init__(self, seed: int) -> None:
        self._numbers = np.random.default_rng(seed)

    def place(self, occupied: Any, count: int) -> Place | None:  # noqa: ANN401
        if not self.fits(occupied, count):
            return None
        free: Integers = np.flatnonzero(~occupied)
        return Place(tuple(self._numbers.permutation(free)[:count].tolist()))

    def fits(self, occupied: Any, count: int) -> bool:  # noqa: ANN401
        return bool(np.count_nonzero(~occupied) >= count)


class _Split:
    """Fixed partitions: a job gets as many as it needs, with consecutive numbers."""

    def __init__(self, name: str, parts: tuple[tuple[int, ...], ...], dims: Extents) -> None:
        self.name = name
        self._parts = parts
        self._dims = dims

    def place(self, occupied: Any, count: int) -> Place | None:  # noqa: ANN401
        wanted = -(-count // len(self._parts[0]))
        free = np.array([not occupied[list(nodes)].any() for nodes in self._parts])
        first = _first_run(free, wanted)
        if first is None:
            return None
        return _box_of(tuple(node for nodes in self._parts[first : first + wanted] for node in nodes), self._dims)

    def fits(self, occupied: Any, count: int) -> bool:  # noqa: ANN401
        return self.place(occupied, count) is not None
