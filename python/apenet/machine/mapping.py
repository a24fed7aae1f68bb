"""Which rank runs on which node."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from apenet.base.errors import InputError
from apenet.base.infiles import UnreadableError, read_text
from apenet.base.numbers import whole
from apenet.base.outfiles import given_path
from apenet.machine import Machine

Mapping = str | Path | Sequence[int]
MOST_MAP_BYTES = 2**28
MOST_RANKS = 2**24  # as many as the largest machine has nodes


def map_file(mapping: Mapping) -> Path | None:
    """The file that a mapping names, if it is one."""
    named = isinstance(mapping, str | Path) and str(mapping) != "linear" and not str(mapping).startswith("random:")
    return given_path("map", str(mapping), '"linear", "random:SEED" or a file') if named else None


def map_ranks(machine: Machine, ranks: int, ranks_per_node: int = 1, mapping: Mapping = "linear") -> list[int]:
    """The node of every rank.

    `linear` fills node after node, X first. `random:SEED` fills the nodes in a random order that depends on nothing but
    the seed. Everything else is a file with one line per rank: a node's number, or its coordinates as `1 0 2`.
    A sequence gives the nodes themselves. Raises InputError when the ranks do not fit the machine.
    """
    ranks = whole("ranks", ranks, 1, MOST_RANKS, f"a whole number from 1 to {MOST_RANKS}")
    ranks_per_node = whole("ranks-per-node", ranks_per_node, 1, MOST_RANKS, "a whole number of at least 1")
    if machine.ports is not None and ranks_per_node > machine.ports:
        raise InputError("ranks-per-node", ranks_per_node, f"at most {machine.ports}: card.ports of {machine.name}")
    if isinstance(mapping, str | Path):
        nodes = _mapped(machine, ranks, ranks_per_node, mapping)
    else:
        nodes = _given(machine, ranks, mapping)
    _check_sharing(machine, nodes)
    return nodes


def _mapped(machine: Machine, ranks: int, ranks_per_node: int, mapping: str | Path) -> list[int]:
    text = str(mapping)
    file = map_file(mapping)
    if file is not None:
        return _from_file(machine, ranks, file)
    needed = -(-ranks // ranks_per_node)
    available = machine.node_count if machine.node_count is not None else needed
    if needed > available:
        size = f"{machine.shape} = {available} nodes" if machine.dims else machine.shape
        raise InputError(
            "ranks",
            ranks,
            f"at most {available * ranks_per_node}: {machine.name} has {size}, with {ranks_per_node} rank(s) on each",
        )
    order = list(range(available))
    if text != "linear":
        seed = text.removeprefix("random:")
        if not re.fullmatch(r"\d+", seed):
            raise InputError("map", text, "random:SEED with a whole number, such as random:7")
        # A hash as the sorting key: the same order in every version of Python.
        order.sort(key=lambda node: hashlib.sha256(f"{int(seed)}:{node}".encode()).digest())
    return [order[rank // ranks_per_node] for rank in range(ranks)]


def _given(machine: Machine, ranks: int, nodes: Sequence[int]) -> list[int]:
    if len(nodes) != ranks:
        raise InputError("map", list(nodes), f"one node for each of the {ranks} ranks")
    expected = _node_expected(machine)
    most = (machine.node_count or MOST_RANKS) - 1
    return [whole("map", node, 0, most, expected) for node in nodes]


def _from_file(machine: Machine, ranks: int, path: Path) -> list[int]:
    try:
        lines = read_text(path, MOST_MAP_BYTES).splitlines()
    except UnreadableError as error:
        raise InputError("map", path, f'"linear", "random:SEED" or a file that can be read ({error})') from error
    nodes = []
    for number, line in enumerate(lines, start=1):
        content = line.partition("#")[0].strip()
        if content:
            nodes.append(_node_of_line(machine, content, f"{path}:{number}"))
    if len(nodes) != ranks:
        raise InputError(
            str(path),
            f"{len(nodes)} lines",
            f"one line for each of the {ranks} ranks: a node, or its coordinates",
        )
    return nodes


def _node_of_line(machine: Machine, content: str, place: str) -> int:
    numbers = [part for part in re.split(r"[\s,()]+", content) if part]
    if not all(re.fullmatch(r"\d+", part) for part in numbers) or len(numbers) not in {1, len(machine.dims)}:
        expected = "a node's number"
        if len(machine.dims) > 1:
            expected += f", or its {len(machine.dims)} coordinates"
        raise InputError(place, content, expected)
    values = [int(part) for part in numbers]
    if len(values) == 1:
        if machine.node_count is not None and values[0] >= machine.node_count:
            raise InputError(place, content, _node_expected(machine))
        return values[0]
    node, stride = 0, 1
    for value, extent in zip(values, machine.dims, strict=True):
        if value >= extent:
            raise InputError(place, content, "coordinates below " + " ".join(map(str, machine.dims)))
        node += value * stride
        stride *= extent
    return node


def _node_expected(machine: Machine) -> str:
    most = "" if machine.node_count is None else f" below {machine.node_count}"
    return f"a node of {machine.name}: a number{most}, 0 or more"


def _check_sharing(machine: Machine, nodes: Sequence[int]) -> None:
    if machine.ports is None:
        return
    for node, ranks in Counter(nodes).items():
        if ranks > machine.ports:
            raise InputError("map", f"{ranks} ranks on node {node}", f"at most card.ports = {machine.ports}")
