"""Partitions: a part of a machine that a job has to itself, with node numbers and coordinates of its own.

A partition is a list of nodes, which places ranks, and the shape that they have: of a box of a torus or mesh, its
extents, and the dimensions that it has all nodes of. There the ends of its lines are joined as the machine's are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from apenet.base.errors import InputError
from apenet.base.grid import number_of, place_of
from apenet.machine.cart import Torus

_EXTENTS = r"[0-9]{1,8}(?:x[0-9]{1,8})*"
_BOX = re.compile(rf"({_EXTENTS})(?:@([0-9]{{1,8}}(?:,[0-9]{{1,8}})*))?")
_LIST = "nodes:"
_RUNS = re.compile(r"[0-9]{1,8}(?:-[0-9]{1,8})?(?:,[0-9]{1,8}(?:-[0-9]{1,8})?)*")


@dataclass(frozen=True)
class Partition:
    """Nodes of a machine, in the order of their numbers in the partition: in a box, the first coordinate fastest.

    `extents`, `origin` and `spans` are those of a box, and empty without one. A box spans a dimension of which it has
    all nodes.
    """

    given: str
    """As the user wrote it: a name, a box or a list."""
    nodes: tuple[int, ...]
    extents: tuple[int, ...] = ()
    origin: tuple[int, ...] = ()
    spans: tuple[bool, ...] = ()

    @property
    def shape(self) -> str:
        """Its size, for people: `1x4x4`, `12 nodes`."""
        return "x".join(map(str, self.extents)) if self.extents else f"{len(self.nodes)} nodes"

    @property
    def text(self) -> str:
        """The partition without its name, as `--partition` takes it: `1x4x4@3,0,0`, `nodes:0-3,8`."""
        if self.extents:
            return f"{self.shape}@{','.join(map(str, self.origin))}"
        runs: list[list[int]] = []
        for node in self.nodes:
            if runs and runs[-1][-1] + 1 == node:
                runs[-1][1:] = [node]
            else:
                runs.append([node])
        return _LIST + ",".join("-".join(map(str, run)) for run in runs)

    @property
    def spanned(self) -> int:
        """The dimensions that it spans, as bits."""
        return sum(1 << dimension for dimension, spans in enumerate(self.spans) if spans)


@dataclass(frozen=True)
class Allocation:
    """Where ranks can be placed: on a whole machine, or on a partition, whose nodes have numbers of their own."""

    name: str
    shape: str
    node_count: int | None
    """None: as many as are asked for."""
    dims: tuple[int, ...]
    torus: Torus | None
    """As a block of nodes; None if it is no torus, mesh, or box of them."""
    nodes: tuple[int, ...] | None
    """The machine's number of each node; None: the same."""

    def of_machine(self, numbers: Iterable[int]) -> list[int]:
        """The machine's nodes with these numbers in the allocation."""
        return list(numbers) if self.nodes is None else [self.nodes[number] for number in numbers]

    def numbers_of(self, nodes: Iterable[int]) -> list[int]:
        """The numbers in the allocation of these nodes of the machine, which are in it."""
        if self.nodes is None:
            return list(nodes)
        number = {node: number for number, node in enumerate(self.nodes)}
        return [number[node] for node in nodes]


@dataclass(frozen=True)
class Whole:
    """The machine that is divided; `dims` are empty unless it is a torus or mesh."""

    name: str
    dims: tuple[int, ...]
    node_count: int

    @property
    def shape(self) -> str:
        """Its extents, for people."""
        return "x".join(map(str, self.dims))


def is_box_or_list(text: str) -> bool:
    """Whether this describes nodes, and is no name."""
    return text.startswith(_LIST) or _BOX.fullmatch(text) is not None


def parse_partition(text: str, key: str, whole: Whole) -> Partition:
    """A box or a list of nodes of a machine. Raises InputError naming `key`."""
    if text.startswith(_LIST):
        return _parsed_list(text, key, whole)
    if not whole.dims:
        raise InputError(key, text, f"{_LIST}0-3,8 on {whole.name}, which is no torus and no mesh")
    found = _BOX.fullmatch(text)
    if found is None:
        example = f"1{whole.shape[len(str(whole.dims[0])) :]}"
        raise InputError(key, text, f"a box of {whole.name}, {whole.shape}, such as {example} or {example}@0,0,0")
    extents = tuple(int(part) for part in found[1].split("x"))
    origin = tuple(int(part) for part in found[2].split(",")) if found[2] else (0,) * len(whole.dims)
    for what, numbers in (("extents", extents), ("coordinates", origin)):
        if len(numbers) != len(whole.dims):
            expected = f"{len(whole.dims)} {what}, one for each dimension of {whole.name}, {whole.shape}"
            raise InputError(key, text, expected)
    for dimension, (extent, first, most) in enumerate(zip(extents, origin, whole.dims, strict=True)):
        if extent < 1 or first + extent > most:
            where = f"dimension {'XYZUVW'[dimension]} has the nodes 0 to {most - 1}"
            raise InputError(key, text, f"a box inside {whole.name}, {whole.shape}: {where}")
    within = place_of(extents, np.arange(math.prod(extents)))
    nodes = number_of(whole.dims, [along + first for along, first in zip(within, origin, strict=True)])
    spans = tuple(extent == most for extent, most in zip(extents, whole.dims, strict=True))
    return Partition(text, tuple(nodes.tolist()), extents, origin, spans)


def _parsed_list(text: str, key: str, whole: Whole) -> Partition:
    if whole.dims:
        raise InputError(key, text, f"a box such as {whole.shape} on {whole.name}; --map places ranks on any nodes")
    content = text.removeprefix(_LIST)
    if _RUNS.fullmatch(content) is None:
        raise InputError(key, text, f"{_LIST} and numbers or ranges of them, such as {_LIST}0-3,8")
    nodes: list[int] = []
    for part in content.split(","):
        first, _, last = part.partition("-")
        if int(last or first) >= whole.node_count or int(last or first) < int(first):
            raise InputError(key, text, f"nodes of {whole.name}, 0 to {whole.node_count - 1}, in rising ranges")
        nodes += range(int(first), int(last or first) + 1)
    if len(set(nodes)) != len(nodes):
        raise InputError(key, text, "each node once")
    return Partition(text, tuple(nodes))


def split(box: str, key: str, whole: Whole) -> list[Partition]:
    """The machine in equal boxes of these extents, the first coordinate of their origins fastest.

    Raises InputError for extents that do not divide those of the machine.
    """
    first = parse_partition(box, key, whole)
    if any(first.origin) or not first.extents or any(np.remainder(whole.dims, first.extents)):
        raise InputError(key, box, f"extents that divide those of {whole.name}, {whole.shape}")
    counts = [most // one for most, one in zip(whole.dims, first.extents, strict=True)]
    places = (place_of(counts, number) for number in range(math.prod(counts)))
    origins = (",".join(str(at * one) for at, one in zip(place, first.extents, strict=True)) for place in places)
    return [parse_partition(f"{first.shape}@{origin}", key, whole) for origin in origins]
