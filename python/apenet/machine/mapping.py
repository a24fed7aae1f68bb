"""Which rank runs on which node."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from apenet.base.errors import InputError
from apenet.base.foreign import recognise_text
from apenet.base.grid import number_of
from apenet.base.infiles import UnreadableError, read_text
from apenet.base.numbers import whole
from apenet.base.outfiles import given_path
from apenet.machine import Machine
from apenet.machine.cart import fold

Mapping = str | Path | Sequence[int]
MOST_MAP_BYTES = 2**28
MOST_RANKS = 2**24  # as many as the largest machine has nodes
MOST_GRID_DIMENSIONS = 6
EXPECTED = '"linear", "random:SEED", "cart:PxQxRxS" or a file'
BY_PROGRAM = "cart:auto"
"""The grid of the program's first MPI_Cart_create: only for programs of `apenet run`, which replaces it."""

# A line of a host list: of PBS_NODEFILE, of Open MPI, of MPICH.
_HOST = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9._-]*)(:(?P<colon>[1-9][0-9]{0,7})|\s+slots=(?P<slots>[1-9][0-9]{0,7})(\s+max_slots=[0-9]+)?)?"
)

# The line that `apenet map` writes, so that a map is not taken for one of another machine.
_MADE_FOR = re.compile(r"#\s*map of ([0-9]+) ranks on (\S+), (.+)")


def map_file(mapping: Mapping) -> Path | None:
    """The file that a mapping names, if it is one."""
    if not isinstance(mapping, str | Path) or str(mapping) == "linear" or str(mapping).startswith(("random:", "cart:")):
        return None
    return given_path("map", str(mapping), EXPECTED)


def made_for(machine: Machine, ranks: int) -> str:
    """The first line of a map file: the machine and the ranks that it is for."""
    of_partition = "" if machine.partition is None else "partition "
    return f"# map of {ranks} ranks on {machine.name}, {of_partition}{machine.allocation.shape}"


def map_ranks(machine: Machine, ranks: int, ranks_per_node: int = 1, mapping: Mapping = "linear") -> list[int]:
    """The node of every rank.

    `linear` fills node after node, X first. `random:SEED` fills the nodes in a random order that depends on nothing but
    the seed. `cart:PxQxRxS` folds a grid of ranks, numbered as by `MPI_Cart_create`, onto a torus or mesh. Everything
    else is a file with one line per rank: a node's number, its coordinates as `1 0 2`, or its host name as
    `ape16-1-0-2`, so that it may be a host list of a batch system or of an MPI library. A sequence gives the nodes
    themselves. On a partition, all of these number its nodes and coordinates. What is returned are always the machine's
    nodes. Raises InputError when the ranks do not fit the machine or its partition.
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
    return machine.allocation.of_machine(nodes)


def _mapped(machine: Machine, ranks: int, ranks_per_node: int, mapping: str | Path) -> list[int]:
    text = str(mapping)
    file = map_file(mapping)
    if file is not None:
        return _from_file(machine, ranks, ranks_per_node, file)
    if text.startswith("cart:"):
        return _folded(machine, ranks, ranks_per_node, text)
    needed = -(-ranks // ranks_per_node)
    allocation = machine.allocation
    available = allocation.node_count if allocation.node_count is not None else needed
    if needed > available:
        size = f"{allocation.shape} = {available} nodes" if allocation.dims else allocation.shape
        raise InputError(
            "ranks",
            ranks,
            f"at most {available * ranks_per_node}: {allocation.name} has {size}, "
            f"with {ranks_per_node} rank(s) on each",
        )
    order = list(range(available))
    if text != "linear":
        seed = text.removeprefix("random:")
        if not re.fullmatch(r"[0-9]+", seed):
            raise InputError("map", text, "random:SEED with a whole number, such as random:7")
        # A hash as the sorting key: the same order in every version of Python.
        order.sort(key=lambda node: hashlib.sha256(f"{int(seed)}:{node}".encode()).digest())
    return [order[rank // ranks_per_node] for rank in range(ranks)]


def _folded(machine: Machine, ranks: int, ranks_per_node: int, text: str) -> list[int]:
    torus = machine.allocation.torus
    if torus is None:
        raise InputError("map", text, f"a machine that is a torus or a mesh; {machine.allocation.name} is not")
    content = text.removeprefix("cart:")
    if text == BY_PROGRAM:
        raise InputError("map", text, "cart:PxQxRxS: only apenet run finds the grid of a program")
    if not re.fullmatch(r"[0-9]{1,8}(x[0-9]{1,8})*", content):
        raise InputError("map", text, "cart:PxQxRxS with the extents of the grid of ranks, such as cart:4x4x2x2")
    grid = [int(extent) for extent in content.split("x")]
    if len(grid) > MOST_GRID_DIMENSIONS:
        raise InputError("map", text, f"at most {MOST_GRID_DIMENSIONS} extents")
    if math.prod(grid) != ranks:
        raise InputError("map", text, f"extents whose product is the number of ranks, {ranks}")
    nodes = fold(grid, torus, ranks_per_node)
    if nodes is None:
        raise InputError(
            "map",
            text,
            f"a grid that fills a block of the {machine.allocation.shape} nodes, with {ranks_per_node} rank(s) on each",
        )
    return [int(node) for node in nodes]


def _given(machine: Machine, ranks: int, nodes: Sequence[int]) -> list[int]:
    if len(nodes) != ranks:
        raise InputError("map", list(nodes), f"one node for each of the {ranks} ranks")
    expected = _node_expected(machine)
    most = (machine.allocation.node_count or MOST_RANKS) - 1
    return [whole("map", node, 0, most, expected) for node in nodes]


def _from_file(machine: Machine, ranks: int, ranks_per_node: int, path: Path) -> list[int]:
    try:
        text = read_text(path, MOST_MAP_BYTES)
    except UnreadableError as error:
        raise InputError("map", path, f"{EXPECTED} that can be read ({error})") from error
    try:
        nodes = _nodes_of_lines(machine, ranks, ranks_per_node, path, text.splitlines())
    except InputError as error:
        found = recognise_text(text)
        if found is None:
            raise
        raise InputError("map", path, f"a map, a node for each rank: {found}") from error
    if len(nodes) != ranks:
        raise InputError(
            str(path),
            f"{len(nodes)} lines",
            f"one line for each of the {ranks} ranks: a node, its coordinates, or its host name",
        )
    return nodes


def _nodes_of_lines(machine: Machine, ranks: int, ranks_per_node: int, path: Path, lines: Sequence[str]) -> list[int]:
    nodes: list[int] = []
    on_node: Counter[int] = Counter()
    hosts = _Hosts(machine)
    for number, line in enumerate(lines, start=1):
        made = _MADE_FOR.fullmatch(line.strip())
        if made and line.strip() != made_for(machine, ranks):
            raise InputError(f"{path}:{number}", line.strip(), f"a {made_for(machine, ranks).removeprefix('# ')}")
        content = line.partition("#")[0].strip()
        if not content:
            continue
        place = f"{path}:{number}"
        host = _HOST.fullmatch(content)
        if host is None:
            of_line = [_node_of_line(machine, content, place)]
        else:
            # A host list may have slots for more ranks, as for mpiexec.
            slots = min(int(host["colon"] or host["slots"] or 1), ranks - len(nodes))
            of_line = [hosts.node(host["name"], place)] * slots
        for node in of_line:
            on_node[node] += 1
            if on_node[node] > ranks_per_node:
                raise InputError(place, content, f"at most {ranks_per_node} rank(s) on a node: see --ranks-per-node")
        nodes += of_line
        if len(nodes) > ranks:
            raise InputError(place, content, f"{ranks} lines at most, one for each rank")
    return nodes


class _Hosts:
    """The nodes of a machine or its partition by their host names."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._numbers: dict[str, int] = {}

    def node(self, name: str, place: str) -> int:
        """The node's number. A domain behind its name does not matter."""
        machine = self._machine
        if not self._numbers:
            description, allocation = machine.description(), machine.allocation
            count = allocation.node_count or 0
            nodes = allocation.of_machine(range(count))
            self._numbers = {description.node_name(node): number for number, node in enumerate(nodes)}
        found = self._numbers.get(name.partition(".")[0])
        if found is None:
            ends = f", such as {next(iter(self._numbers))}" if self._numbers else ": it has no number of nodes"
            raise InputError(place, name, f"the host name of a node of {machine.allocation.name}{ends}")
        return found


def _node_of_line(machine: Machine, content: str, place: str) -> int:
    allocation = machine.allocation
    numbers = [part for part in re.split(r"[\s,()]+", content) if part]
    if not all(re.fullmatch(r"[0-9]+", part) for part in numbers) or len(numbers) not in {1, len(allocation.dims)}:
        expected = "a node's number or its host name"
        if len(allocation.dims) > 1:
            expected = f"a node's number, its host name, or its {len(allocation.dims)} coordinates"
        raise InputError(place, content, expected)
    values = [int(part) for part in numbers]
    if len(values) == 1:
        if allocation.node_count is not None and values[0] >= allocation.node_count:
            raise InputError(place, content, _node_expected(machine))
        return values[0]
    if any(value >= extent for value, extent in zip(values, allocation.dims, strict=True)):
        raise InputError(place, content, "coordinates below " + " ".join(map(str, allocation.dims)))
    return number_of(allocation.dims, values)


def _node_expected(machine: Machine) -> str:
    allocation = machine.allocation
    most = "" if allocation.node_count is None else f" below {allocation.node_count}"
    return f"a node of {allocation.name}: a number{most}, 0 or more"


def _check_sharing(machine: Machine, nodes: Sequence[int]) -> None:
    if machine.ports is None:
        return
    for node, ranks in Counter(nodes).items():
        if ranks > machine.ports:
            raise InputError("map", f"{ranks} ranks on node {node}", f"at most card.ports = {machine.ports}")
