"""A machine's topology in the files of Slurm, and what such a file says of a machine.

`topology.yaml` (Slurm 25.05 and newer; `torus3d` 26.05) and `topology.conf`, by their manual pages. Slurm numbers the
nodes of a torus as a machine does, the first coordinate fastest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apenet import _core
from apenet.base.errors import InputError
from apenet.base.infiles import UnreadableError, read_text
from apenet.machine import Machine

_AXES = "xyz"
MOST_NODES = 4096
"""A machine of more nodes is not written: the pairs of its nodes are too many."""
_MOST_FILE_BYTES = 2**24


@dataclass(frozen=True)
class Switch:
    """A switch of Slurm's tree: with nodes if it is a leaf, else with switches."""

    name: str
    nodes: tuple[int, ...]
    children: tuple[str, ...]


def tree_of(machine: Machine) -> tuple[Switch, ...]:
    """The switches of a machine, the leaves first: nodes belong together that are equally few links apart.

    Empty for a network in which they do not form a tree, such as a torus. Raises InputError for too many nodes.
    """
    count = _node_count(machine)
    if machine.dims:
        return ()
    hops = np.array(_core.hop_counts(machine.description().network)).reshape(count, count)
    switches: list[Switch] = []
    below: dict[int, str] = {}  # the switch of each node
    for level, most in enumerate(sorted(set(hops[~np.eye(count, dtype=bool)].tolist()))):
        groups: dict[bytes, list[int]] = {}
        near = hops <= most
        for node in range(count):
            groups.setdefault(near[node].tobytes(), []).append(node)
        if any(not near[np.ix_(nodes, nodes)].all() or near[nodes[0]].sum() != len(nodes) for nodes in groups.values()):
            return ()
        for number, nodes in enumerate(groups.values()):
            name = f"level{level}-{number}"
            children = tuple(dict.fromkeys(below[node] for node in nodes)) if below else ()
            switches.append(Switch(name, () if children else tuple(nodes), children))
        below = {node: f"level{level}-{number}" for number, nodes in enumerate(groups.values()) for node in nodes}
    return tuple(switches)


def topology_yaml(machine: Machine) -> str:
    """topology.yaml: a torus of up to three dimensions, a tree of switches, or else blocks of neighbours."""
    count = _node_count(machine)
    names = _names(machine)
    switches = tree_of(machine)
    lines = [f"# {machine.name}: {machine.shape}, {machine.file.network.topology.value}", "- topology: apenet"]
    lines.append("  cluster_default: true")
    if _is_torus(machine):
        lines += _torus(machine, names)
    elif switches:
        lines += ["  tree:", "    switches:"]
        for one in switches:
            lines.append(f"      - switch: {one.name}")
            lines.append(f"        children: {','.join(one.children)}" if one.children else _nodes(names, one.nodes))
    else:
        size = count // machine.dims[-1] if machine.dims else count
        lines += ["  block:", "    block_sizes:", f"      - {size}", "    blocks:"]
        for first in range(0, count, size):
            lines.append(f"      - block: block{first // size}")
            lines.append(_nodes(names, range(first, first + size)))
    return "\n".join(lines) + "\n"


def topology_conf(machine: Machine) -> str:
    """topology.conf of the plugin topology/tree. Raises InputError for a network that is no tree."""
    switches = tree_of(machine)
    if not switches:
        raise InputError("slurm", "conf", f"a tree of switches, which {machine.name} is not: --slurm yaml")
    names = _names(machine)
    lines = [
        f"SwitchName={one.name} Switches={','.join(one.children)}"
        if one.children
        else f"SwitchName={one.name} Nodes={','.join(names[node] for node in one.nodes)}"
        for one in switches
    ]
    return "\n".join(lines) + "\n"


def _node_count(machine: Machine) -> int:
    machine.require_whole("Slurm's topology")
    count = machine.node_count
    if count is None or count > MOST_NODES or not machine.topology.has_routers:
        raise InputError("machine", machine.name, f"a machine with a network of at most {MOST_NODES} nodes")
    return count


def _names(machine: Machine) -> list[str]:
    description = machine.description()
    return [description.node_name(node) for node in range(machine.node_count or 0)]


def _nodes(names: Sequence[str], nodes: Sequence[int]) -> str:
    return f"        nodes: {','.join(names[node] for node in nodes)}"


def _is_torus(machine: Machine) -> bool:
    torus = machine.allocation.torus
    return torus is not None and all(torus.is_closed) and len(torus.extents) <= len(_AXES)


def _torus(machine: Machine, names: Sequence[str]) -> Iterator[str]:
    """With a placement for each box whose extents divide those of the torus: other numbers of nodes get none."""
    dims = (*machine.dims, *(1 for _ in range(len(_AXES) - len(machine.dims))))
    yield from ("  torus3d:", "    toruses:", f"      - name: {machine.name}", f"        dims: {_flow(dims)}")
    yield _nodes(names, range(len(names)))
    yield "        placements:"
    divisors = [[extent for extent in range(1, most + 1) if most % extent == 0] for most in dims]
    for extents in sorted(itertools.product(*divisors), key=lambda extents: (math.prod(extents), extents)):
        yield f"          - dims: {_flow(extents)}"


def _flow(extents: Sequence[int]) -> str:
    return "{" + ", ".join(f"{axis}: {extent}" for axis, extent in zip(_AXES, extents, strict=True)) + "}"


@dataclass(frozen=True)
class Described:
    """What a topology.yaml says of a machine: as `--nodes`, `--topology` and `--leaf` of `apenet machine new`."""

    nodes: str
    topology: str
    leaf: int | None


def read_topology(path: Path) -> Described:
    """The default topology of a topology.yaml, or its first one. Raises InputError."""
    try:
        import yaml  # noqa: PLC0415 (not a dependency)
    except ImportError as error:
        raise InputError("slurm", path, "PyYAML, which reads it: pip install pyyaml") from error
    try:
        content = yaml.safe_load(read_text(path, _MOST_FILE_BYTES))
    except (UnreadableError, yaml.YAMLError) as error:
        raise InputError("slurm", path, f"a topology.yaml ({' '.join(str(error).split())})") from error
    try:
        default = [one for one in content if one.get("cluster_default")]
        return _described([*default, *content][0])
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise InputError("slurm", path, "a topology.yaml with torus3d, or with a tree of equal leaves") from error


def _described(topology: dict[str, Any]) -> Described:
    if "torus3d" in topology:
        dims = topology["torus3d"]["toruses"][0]["dims"]
        extents = [int(dims[axis]) for axis in _AXES]
        while len(extents) > 1 and extents[-1] == 1:
            extents.pop()
        return Described("x".join(map(str, extents)), "torus", None)
    leaves = [_counted(one["nodes"]) for one in topology["tree"]["switches"] if one.get("nodes")]
    if not leaves or len(set(leaves)) > 1:
        raise ValueError(leaves)
    return Described(str(sum(leaves)), "fat-tree", leaves[0])


def _counted(hosts: str) -> int:
    """How many hosts an expression such as `a[1-4,7],b2` names; within brackets, no more brackets."""
    total = 0
    for part in _parts(hosts):
        factor = 1
        for inside in (piece.partition("]")[0] for piece in part.split("[")[1:]):
            factor *= sum(int(one.rpartition("-")[2]) - int(one.partition("-")[0]) + 1 for one in inside.split(","))
        total += factor
    return total


def _parts(hosts: str) -> list[str]:
    """The expression at its commas outside of brackets."""
    parts, depth = [""], 0
    for character in hosts:
        depth += {"[": 1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part]
