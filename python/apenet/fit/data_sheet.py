"""A machine file from the numbers of a data sheet. They become `derived`; the rest is `assumed`, with ranges.

docs/reference/data-sheets.md shows the arithmetic.
"""

from __future__ import annotations

import copy
import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apenet import bench
from apenet._core import version as __version__
from apenet.base.errors import InputError
from apenet.base.outfiles import OutFile, begins_with
from apenet.base.rates import parse_rate
from apenet.machine import Machine
from apenet.machine import machine as read_machine
from apenet.machine.check import check
from apenet.machine.write import to_toml

TORUS, MESH, FAT_TREE = "torus", "mesh", "fat-tree"
BASES = {TORUS: "torus-slice", MESH: "torus-slice", FAT_TREE: "my-cluster"}
"""The topologies, and the teaching machine that gives what a data sheet does not."""

MOST_NODES = 2**16
_MOST_LEAF_NODES = 32
_WORD_BYTES = 32
_ROUTER_CLOCK_MHZ = 100
_LEAST_FLIT_BYTES = 8
_LATENCY_BYTES = 8
_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?) ?(ns|us)")
_BUS = re.compile(r"pcie([1-6])x(1|2|4|8|16|32)")
_PCIE = {
    1: (2.5, 8 / 10),
    2: (5, 8 / 10),
    3: (8, 128 / 130),
    4: (16, 128 / 130),
    5: (32, 128 / 130),
    6: (64, 242 / 256),
}
"""GT/s a lane, and the share of the code that is data, of each generation of PCI Express."""
_RANGE_REASON = "half to twice: a guess that no data sheet gives"
_ON_CHIP_MHZ = 1000
_READ_LATENCY_NS = 400
_BUFFER_US = 2
"""More than the time from a buffer's release to the arrival of what may fill it."""
_BURST_BYTES = 256

Table = dict[str, Any]


@dataclass(frozen=True)
class Sheet:
    """What the data sheet says. Texts as on the command line; None for what it does not say."""

    nodes: str
    topology: str
    link: str
    latency: str | None = None
    bus: str | None = None
    leaf: int | None = None
    uplinks: int | None = None


def new_machine(path: Path, sheet: Sheet) -> Machine:
    """Writes a complete machine file. Raises InputError for numbers that no machine can have."""
    if path.suffix != ".toml" or not re.fullmatch(r"[A-Za-z0-9_.-]+", path.name):
        raise InputError("FILE", path, "a file such as my-cluster.toml")
    if sheet.topology not in BASES:
        raise InputError("--topology", sheet.topology, " or ".join(BASES))
    with OutFile("FILE", path, begins_with(b"# Written by apenet ")) as file:
        table = _table(path.stem, sheet)
        checked = Machine(path, check(table, path), table=table)
        checked.wire()
        if sheet.latency is not None:
            _fit_latency(checked, table, sheet.latency)
        head = f"# Written by apenet {__version__} machine new: {_said(sheet)}.\n"
        reason = f"# What the data sheet does not say is assumed, as on {BASES[sheet.topology]}.\n\n"
        file.write((head + reason + to_toml(check(table, path))).encode())
        file.keep()
    return read_machine(path)


def stream_gb_s(machine: Machine) -> float:
    """The payload that a stream of 1 MiB messages between neighbours carries: of link, bus and card, the least."""
    return 2**20 / float(bench.unidirectional(machine, sizes="1M").times_us[0]) / 1000


def _said(sheet: Sheet) -> str:
    options = (("nodes", sheet.nodes), ("topology", sheet.topology), ("link", sheet.link), ("latency", sheet.latency),
               ("bus", sheet.bus), ("leaf", sheet.leaf), ("uplinks", sheet.uplinks))  # fmt: skip
    return " ".join(f"--{name} {value}" for name, value in options if value is not None)


def _table(name: str, sheet: Sheet) -> Table:
    table: Table = copy.deepcopy(read_machine(BASES[sheet.topology]).table)
    rate = round(parse_rate("--link", sheet.link))
    count, network = _network(sheet)
    gbit = f"{rate * 8 / 1e9:g} Gbit/s"
    table["machine"] = {
        "name": name,
        "title": f"{count} nodes, {sheet.topology}, {gbit}",
        "summary": f"{count} nodes on a {sheet.topology} with links of {gbit}, from a data sheet",
    }
    table["network"] = {**network, "routing": table["network"]["routing"], "link": table["network"]["link"]}
    link = f"--link {sheet.link}: {rate / 1e9:g} GB/s a direction in words of {_WORD_BYTES} bytes"
    clock = _quantity(round(rate / _WORD_BYTES) / 1e6, "derived", link)
    word = _quantity(_WORD_BYTES, "derived", link)
    table["network"]["link"].update(clock_mhz=clock, word_bytes=word, word_cycles=_quantity(1, "derived", link))
    table["router"].update(port_clock_mhz=clock, port_word_bytes=word)
    _set_router_clock(table["router"], rate)
    buffer = 2 ** math.ceil(math.log2(rate * _BUFFER_US * 1e-6))
    for key in ("buffer_bytes", "injection_buffer_bytes", "ejection_buffer_bytes"):
        if table["router"][key]["value"] < buffer:
            table["router"][key] = _quantity(buffer, "assumed", f"what a link moves in {_BUFFER_US} us, or more")
    if sheet.topology != FAT_TREE:
        ports = 2 * len(network["dims"]["value"])
        for key in ("injection_fifos", "ejection_ports"):
            table["router"][key] = _quantity(ports, "assumed", "one for each link")
    table["bus"].update(_bus(sheet, rate))
    for section in ("network", "router", "card", "bus", "software"):
        _add_ranges(table[section])
    return table


def _network(sheet: Sheet) -> tuple[int, Table]:
    said = f"--nodes {sheet.nodes} --topology {sheet.topology}"
    topology = _quantity(sheet.topology, "derived", said)
    dims = (
        [int(part) for part in sheet.nodes.split("x")]
        if re.fullmatch(r"[1-9][0-9]*(x[1-9][0-9]*)*", sheet.nodes)
        else []
    )
    count = math.prod(dims)
    if not dims or not 2 <= count <= MOST_NODES:  # noqa: PLR2004
        raise InputError(
            "--nodes", sheet.nodes, f"a number of nodes from 2 to {MOST_NODES}, such as 64, or 8x4x4 on a torus"
        )
    if sheet.topology != FAT_TREE:
        for option, value in (("--leaf", sheet.leaf), ("--uplinks", sheet.uplinks)):
            if value is not None:
                raise InputError(option, value, f"none on a {sheet.topology}, which has no leaf switches")
        is_given = len(dims) > 1
        shape = dims if is_given else _near_cube(count)
        source = said if is_given else f"{said}: the most cubic shape"
        return count, {"topology": topology, "dims": _quantity(shape, "derived" if is_given else "assumed", source)}
    if len(dims) > 1:
        raise InputError("--nodes", sheet.nodes, "a number on a fat tree, such as 64")
    leaf = _leaf(count, sheet)
    uplinks = leaf if sheet.uplinks is None else sheet.uplinks
    if uplinks < 1:
        raise InputError("--uplinks", uplinks, "the number of uplinks of a leaf switch, at least 1")
    leaves = count // leaf
    told = "derived" if sheet.leaf is not None else "assumed"
    above = (
        f"{leaf} nodes of a leaf share {uplinks} uplinks" if leaves > 1 else "one switch: nothing passes a second one"
    )
    tree: Table = {
        "topology": topology,
        "children": _quantity([leaf, leaves], told, f"{leaf} nodes on each of {leaves} leaf switches"),
        "parents": _quantity([uplinks if leaves > 1 else 1], "assumed" if sheet.uplinks is None else "derived", above),
        "cables": _quantity([1], "assumed", "one cable from each leaf to each spine"),
    }
    return count, tree


def _leaf(count: int, sheet: Sheet) -> int:
    if sheet.leaf is None:
        return next(size for size in range(min(count, _MOST_LEAF_NODES), 0, -1) if count % size == 0)
    if not 1 <= sheet.leaf <= count or count % sheet.leaf:
        raise InputError("--leaf", sheet.leaf, f"nodes on a leaf switch that divide {count}")
    return sheet.leaf


def _near_cube(count: int) -> list[int]:
    """Three dimensions, the longest first, of which the longest is as short as it can be."""
    divisors = [one for one in range(1, count + 1) if count % one == 0]
    shapes = [
        (count // (one * other), one, other)
        for one, other in itertools.product(divisors, divisors)
        if count % (one * other) == 0 and count // (one * other) >= one >= other
    ]
    return list(min(shapes))


def _set_router_clock(router: Table, rate: int) -> None:
    """Cycles of 10 ns; a flit is what a link moves in one, because the flit engine counts whole cycles."""
    scale = _ROUTER_CLOCK_MHZ / router["clock_mhz"]["value"]
    for key in ("forward_cycles", "credit_cycles"):
        old = router[key]
        router[key] = {**old, "value": max(1, round(old["value"] * scale))}
    router["clock_mhz"] = _quantity(_ROUTER_CLOCK_MHZ, "assumed", "10 ns a cycle, to count latencies in")
    flit = max(_LEAST_FLIT_BYTES, round(rate / (_ROUTER_CLOCK_MHZ * 1e6)))
    router["flit_bytes"] = _quantity(flit, "derived", f"what a link of {rate / 1e9:g} GB/s moves in a cycle of 10 ns")


def _bus(sheet: Sheet, rate: int) -> Table:
    if sheet.bus is None and sheet.topology != FAT_TREE:
        width = 2 ** math.ceil(math.log2(max(512e9, 8 * rate) / (_ON_CHIP_MHZ * 1e6)))
        reason = "no --bus: a network on the chip that keeps all links busy"
        return {
            "clock_mhz": _quantity(_ON_CHIP_MHZ, "assumed", reason),
            "width_bytes": _quantity(width, "assumed", reason),
        }
    origin = "derived"
    said = f"--bus {sheet.bus}"
    if sheet.bus is None:
        enough = next((one for one in _PCIE if _pcie_rate(one, 16) >= rate), max(_PCIE))
        generation, lanes, origin = enough, 16, "assumed"
        is_enough = _pcie_rate(enough, 16) >= rate
        found_bus = "slowest PCI Express of 16 lanes that keeps the link busy" if is_enough else "fastest PCI Express"
        said = f"no --bus: the {found_bus}"
    else:
        found = _BUS.fullmatch(sheet.bus)
        if found is None:
            raise InputError(
                "--bus", sheet.bus, "pcieGxL with a generation from 1 to 6 and its lanes, such as pcie4x16"
            )
        generation, lanes = int(found[1]), int(found[2])
    bus_rate = _pcie_rate(generation, lanes)
    under_way = 2 * bus_rate * _READ_LATENCY_NS * 1e-9 / _BURST_BYTES
    source = (
        f"{said}: {_PCIE[generation][0]:g} GT/s by {lanes} lanes less the code, {bus_rate / 1e9:.4g} GB/s a direction"
    )
    return {
        "clock_mhz": _quantity(round(bus_rate / _WORD_BYTES) / 1e6, origin, source),
        "width_bytes": _quantity(_WORD_BYTES, origin, source),
        "max_burst_bytes": _quantity(
            _BURST_BYTES, "assumed", "the payload of a PCI Express packet that the system's tools print"
        ),
        "read_latency_ns": _quantity(_READ_LATENCY_NS, "assumed", "read of DRAM by a device"),
        "outstanding_reads": _quantity(
            max(64, 2 ** math.ceil(math.log2(under_way))), "assumed", "enough to hide twice the read latency"
        ),
        "pio_write_latency_ns": _quantity(150, "assumed", "CPU store to the adapter"),
    }


def _pcie_rate(generation: int, lanes: int) -> float:
    transfers, code = _PCIE[generation]
    return transfers * 1e9 * lanes * code / 8


def _fit_latency(machine: Machine, table: Table, latency: str) -> None:
    """Send and receive of software.card, so that the card's ping-pong of neighbours has the latency."""
    found = _TIME.fullmatch(latency)
    if found is None:
        raise InputError("--latency", latency, "a time such as 1.2us or 800ns")
    wanted_us = float(found[1]) * (1e-3 if found[2] == "ns" else 1)
    keys = [f"software.card.{key}" for key in ("send_us", "receive_us")]
    hardware_us = _latency_us(machine.with_settings(*(f"{key}=0" for key in keys)))
    if wanted_us < hardware_us:
        expected = f"at least {hardware_us:.3g}us, what bus, card, links and router take by their assumed numbers"
        raise InputError("--latency", latency, expected)
    share = round((wanted_us - hardware_us) / 2, 6)
    origin = (
        f"--latency {latency}: the card's ping-pong of {_LATENCY_BYTES} bytes between neighbours, half of what is left"
    )
    for key in ("send_us", "receive_us"):
        table["software"]["card"][key] = _quantity(share, "fitted", origin)


def _latency_us(machine: Machine) -> float:
    return float(bench.make_request("pingpong", machine).at_sizes([_LATENCY_BYTES]).measure().times_us[0])


def _quantity(value: object, origin: str, source: str) -> Table:
    return {"value": value, "class": origin, "source": source}


def _add_ranges(table: Table) -> None:
    """Assumed times get a range, over which `apenet sweep` draws them."""
    for entry in _times(table):
        entry.setdefault("range", [entry["value"] / 2, entry["value"] * 2])
        entry.setdefault("range_source", _RANGE_REASON)


def _times(table: Table) -> Iterator[Table]:
    for key, entry in table.items():
        if not isinstance(entry, dict):
            continue
        if "value" not in entry:
            yield from _times(entry)
        elif entry["class"] == "assumed" and key.endswith(("_ns", "_us")) and entry["value"] > 0:
            yield entry
