"""What partitions share: the links that their routes take, and the faults that touch them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apenet import _core
from apenet.base.errors import InputError
from apenet.base.infiles import UnreadableError, read_text
from apenet.base.tomltext import TomlError, parse_toml
from apenet.machine import Machine
from apenet.machine.partition import Partition, is_box_or_list

MOST_NODES = 4096
"""A machine of more nodes is not checked: the pairs of its nodes are too many."""

_MOST_FLOWS = 2**20
_MOST_FILE_BYTES = 2**20


@dataclass(frozen=True)
class CheckedPartition:
    """A partition, the links that packets between its nodes take, those that leave it, and its faults.

    A link leaves a box if the node at one of its ends is outside. On a network of switches no link does: switches
    belong to no partition.
    """

    partition: Partition
    links: tuple[str, ...]
    leaving: tuple[str, ...]
    faults: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The object of `apenet partition check --json`."""
        return {
            "name": self.partition.given,
            "partition": self.partition.text,
            "nodes": list(self.partition.nodes),
            "links": list(self.links),
            "leaving": list(self.leaving),
            "faults": list(self.faults),
        }


@dataclass(frozen=True)
class PartitionCheck:
    """Partitions that have no node in common, and the links that two of them share, by their places in the list."""

    machine: Machine
    partitions: tuple[CheckedPartition, ...]
    shared: dict[tuple[int, int], tuple[str, ...]]

    def to_json(self) -> dict[str, Any]:
        """The object of `apenet partition check --json`."""
        names = [one.partition.given for one in self.partitions]
        return {
            "machine": self.machine.name,
            "partitions": [one.to_json() for one in self.partitions],
            "shared": [
                {"partitions": [names[one], names[other]], "links": list(links)}
                for (one, other), links in self.shared.items()
            ],
        }


def chosen_partitions(machine: Machine, file: str | Path | None, box: str | None) -> tuple[Partition, ...]:
    """The partitions of a file, of a split into equal boxes, or else of the machine's own file.

    Raises InputError.
    """
    if box is not None:
        if file is not None:
            raise InputError("split", box, "no file with it")
        return machine.split(box)
    named = machine.partitions if file is None else _of_file(machine, Path(file))
    if not named:
        raise InputError("partition", machine.label, "a machine that names partitions; otherwise --split 1x4x4 or FILE")
    return named


def _of_file(machine: Machine, file: Path) -> tuple[Partition, ...]:
    """A file with the section [partition] of a machine file."""
    try:
        table = parse_toml(read_text(file, _MOST_FILE_BYTES))
    except (UnreadableError, TomlError) as error:
        raise InputError("partitions", file, f"a file in TOML with [partition] ({error})") from error
    unknown = [key for key in table if key != "partition"]
    if unknown or not isinstance(table.get("partition"), dict) or not table["partition"]:
        found = unknown[0] if unknown else "nothing"
        raise InputError(str(file), found, '[partition] alone, with a line such as plane0 = "1x4x4@0,0,0"')
    partitions = []
    for name, text in table["partition"].items():
        if not isinstance(text, str) or not is_box_or_list(text):
            raise InputError(f"{file}: partition.{name}", text, "a box such as 1x4x4@0,0,0, or nodes:0-3,8")
        partitions.append(machine.named_partition(name, text, str(file)))
    return tuple(partitions)


def require_apart(partitions: Sequence[Partition], names: Iterable[str] = ()) -> None:
    """Raises InputError for two partitions with a node in common."""
    shown = list(names) or [one.given for one in partitions]
    owner: dict[int, int] = {}
    for place, one in enumerate(partitions):
        for node in one.nodes:
            other = owner.setdefault(node, place)
            if other != place:
                both = f"{shown[other]} and {shown[place]}"
                raise InputError("partition", both, f"partitions without a common node; both have node {node}")


def check_partitions(machine: Machine, partitions: Sequence[Partition]) -> PartitionCheck:
    """Follows the routes between all nodes of each partition, by the machine's own routing.

    Of an adaptive routing, these are its steps without the escape. Raises InputError for partitions with common nodes,
    and MachineError for a routing whose packets take detours at random: they leave every partition.
    """
    require_apart(partitions)
    count = machine.node_count or 0
    if not machine.topology.has_routers or count > MOST_NODES:
        raise InputError("machine", f"{machine.name}, {machine.shape}", f"a network of at most {MOST_NODES} nodes")
    description = machine.description()
    try:
        wiring = _core.wiring(description.network)
        used = [_used(machine, description.network, one) for one in partitions]
        faulty = _core.faulty_parts(description.network)
    except ValueError as error:
        raise machine.refused(error) from error
    names = np.array([name for name, _, _ in wiring.links], dtype=object)
    ends = np.array([(one, other) for _, one, other in wiring.links])
    checked = []
    for one, of_links in zip(partitions, used, strict=True):
        routers = [wiring.routers_of_nodes[node] for node in one.nodes]
        leaving = of_links & ~np.isin(ends, routers).all(axis=1) if one.extents else np.zeros_like(of_links)
        links = tuple(names[of_links])
        faults = tuple(text for fault in faulty for text in _touched(fault, one, links))
        checked.append(CheckedPartition(one, links, tuple(names[leaving]), faults))
    both = {
        (one, other): tuple(names[used[one] & used[other]])
        for one, other in itertools.combinations(range(len(used)), 2)
    }
    return PartitionCheck(machine, tuple(checked), {pair: links for pair, links in both.items() if links})


def _used(machine: Machine, network: _core.NetworkDescription, one: Partition) -> Any:  # noqa: ANN401 (numpy's bools)
    """Whether packets between two of its nodes take each link."""
    nodes = np.array(one.nodes)
    used: Any = False
    senders = max(1, _MOST_FLOWS // len(nodes))
    for first in range(0, len(nodes), senders):
        part = nodes[first : first + senders]
        sources, targets = np.repeat(part, len(nodes)), np.tile(nodes, len(part))
        loads = _core.link_loads(network, sources.tolist(), targets.tolist(), [1] * len(sources))
        used = used | (np.array(loads.bytes) > 0)
    return used


def _touched(fault: _core.FaultyParts, one: Partition, links: Sequence[str]) -> list[str]:
    nodes = [str(node) for node in fault.nodes if node in one.nodes]
    cut = [link for link in fault.links if link in links]
    if nodes:
        return [f"{fault.fault}: it has node {', '.join(nodes)}"]
    return [f"{fault.fault}: its routes take {cut[0]}"] if cut else []
