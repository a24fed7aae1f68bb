"""The machine files' schema: sections, keys, units and ranges. Plain data; nothing is computed here.

Every parameter is a `Quantity`: its value, the class of its origin and its source. The unit of a value is the
last part of its key. `apenet.machine.lower` turns a checked file into base units.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from pydantic import Field

from apenet.machine.cards import AnyCard
from apenet.machine.published import PublishedResult
from apenet.machine.quantity import (
    Count,
    CountOrZero,
    Dims,
    LargeSizeOrZero,
    Levels,
    LevelsButLast,
    NonNegative,
    Positive,
    Probability,
    Quantity,
    Section,
    Text,
)


class About(Section):
    """[machine]: what the file describes."""

    name: Text
    title: Text
    summary: Text


class LinkOverride(Section):
    """[network.link.x] and its kin, [network.links.NAME]: what differs along one dimension, level or kind of cable."""

    clock_mhz: Quantity[Positive] | None = None
    word_bytes: Quantity[Count] | None = None
    word_cycles: Quantity[Count] | None = None
    latency_ns: Quantity[NonNegative] | None = None
    bit_error_rate: Quantity[Probability] | None = None


class Link(Section):
    """[network.link]: one direction of a link moves word_bytes in word_cycles of its clock.

    bit_error_rate is the probability that a bit arrives wrong; without it, zero.

    Below it what differs: along dimensions x to w of a torus or mesh, in a fat tree above leaves and above middle
    switches.
    """

    clock_mhz: Quantity[Positive]
    word_bytes: Quantity[Count]
    word_cycles: Quantity[Count]
    latency_ns: Quantity[NonNegative]
    bit_error_rate: Quantity[Probability] | None = None
    x: LinkOverride | None = None
    y: LinkOverride | None = None
    z: LinkOverride | None = None
    u: LinkOverride | None = None
    v: LinkOverride | None = None
    w: LinkOverride | None = None
    leaf: LinkOverride | None = None
    middle: LinkOverride | None = None


Routing = Literal[
    "dimension-order", "dimension-order-entry-class", "minimal-adaptive", "destination-mod", "up-down", "table"
]


class Network(Section):
    """[network]: topology and its shape, routing and links. Which keys go with which topology: `SHAPES`.

    reconfiguration_us is the time from a fault until the network runs with routes around it; without it, 1000.
    """

    topology: Quantity[Literal["none", "torus", "mesh", "fat-tree", "crossbar", "graph"]]
    dims: Quantity[Dims] | None = None
    children: Quantity[Levels] | None = None
    parents: Quantity[LevelsButLast] | None = None
    cables: Quantity[LevelsButLast] | None = None
    nodes: Quantity[Count] | None = None
    graph_file: Quantity[Text] | None = None
    routing: Quantity[Routing] | None = None
    table_file: Quantity[Text] | None = None
    link: Link | None = None
    links: dict[str, LinkOverride] | None = None
    reconfiguration_us: Quantity[NonNegative] | None = None


class Shape(NamedTuple):
    """What belongs to one topology."""

    needs: tuple[str, ...]
    allows: tuple[str, ...]
    routings: tuple[str, ...]
    overrides: tuple[str, ...] = ()  # of [network.link]; those of a cube: as many as it has dimensions


DIMENSIONS = tuple("xyzuvw")
OVERRIDES = (*DIMENSIONS, "leaf", "middle")  # the tables below [network.link]
_CUBE = Shape(
    ("dims", "routing", "link"),
    ("table_file", "reconfiguration_us"),
    ("dimension-order", "minimal-adaptive", "up-down", "table"),
    DIMENSIONS,
)
SHAPES: dict[str, Shape] = {
    "none": Shape((), ("dims", "routing", "link"), ("dimension-order",), DIMENSIONS),
    "torus": _CUBE._replace(routings=("dimension-order", "dimension-order-entry-class", *_CUBE.routings[1:])),
    "mesh": _CUBE,
    "fat-tree": Shape(
        ("children", "parents", "routing", "link"),
        ("cables", "table_file", "reconfiguration_us"),
        ("destination-mod", "up-down", "table"),
        ("leaf", "middle"),
    ),
    "crossbar": Shape(("nodes",), ("routing", "table_file", "reconfiguration_us"), ("up-down", "table")),
    "graph": Shape(
        ("graph_file", "routing", "link"), ("links", "table_file", "reconfiguration_us"), ("up-down", "table")
    ),
}


class Router(Section):
    """[router]: a switch. Its ports towards cards move port_word_bytes a clock.

    port_latency_ns is the cable's where card and switch are apart; without it, zero.

    Its latency is given as a whole, forward_cycles and credit_cycles, or by the stages of its pipeline, the keys that
    end in _delay_cycles; its buffers in bytes or in flits.
    """

    clock_mhz: Quantity[Positive]
    forward_cycles: Quantity[CountOrZero] | None = None
    credit_cycles: Quantity[CountOrZero] | None = None
    routing_delay_cycles: Quantity[CountOrZero] | None = None
    vc_allocation_delay_cycles: Quantity[Count] | None = None
    switch_allocation_delay_cycles: Quantity[Count] | None = None
    switch_traversal_delay_cycles: Quantity[Count] | None = None
    credit_delay_cycles: Quantity[CountOrZero] | None = None
    port_clock_mhz: Quantity[Positive]
    port_word_bytes: Quantity[Count]
    port_latency_ns: Quantity[NonNegative] | None = None
    virtual_channels: Quantity[Count]
    buffer_bytes: Quantity[Count] | None = None
    buffer_flits: Quantity[Count] | None = None
    injection_buffer_bytes: Quantity[Count]
    ejection_buffer_bytes: Quantity[Count]
    flit_bytes: Quantity[Count] | None = None
    switching: Quantity[Literal["virtual-cut-through", "wormhole"]] | None = None
    channel_selection: Quantity[Literal["lane", "any"]] | None = None


# Two ways to say the same: exactly one of each pair, all of it. Setting a key of one takes the other away.
_WHOLE = ("forward_cycles", "credit_cycles")
_STAGES = (
    "routing_delay_cycles",
    "vc_allocation_delay_cycles",
    "switch_allocation_delay_cycles",
    "switch_traversal_delay_cycles",
    "credit_delay_cycles",
)
ROUTER_ALTERNATIVES = ((_WHOLE, _STAGES), (("buffer_bytes",), ("buffer_flits",)))


class Bus(Section):
    """[bus]: the I/O bus between host and card.

    duplex: half, the default, is one set of wires for both directions (PCI-X); full is one for each (PCI Express).
    """

    clock_mhz: Quantity[Positive]
    width_bytes: Quantity[Count]
    duplex: Quantity[Literal["half", "full"]] | None = None
    transaction_overhead_cycles: Quantity[CountOrZero]
    max_burst_bytes: Quantity[Count]
    read_latency_ns: Quantity[NonNegative]
    outstanding_reads: Quantity[Count]
    pio_write_latency_ns: Quantity[Positive]


class Host(Section):
    """[host]: memory copies and computation of one node.

    gpu_copy_*: a copy between the GPU and a pinned buffer of the host, for what is staged; together, or not at all.
    """

    copy_bandwidth_mib_s: Quantity[Positive]
    gpu_copy_bandwidth_mib_s: Quantity[Positive] | None = None
    gpu_copy_latency_us: Quantity[NonNegative] | None = None
    local_latency_ns: Quantity[Positive]
    flops_per_second: Quantity[Positive]


class SoftwareLayer(Section):
    """[software.card], [software.mpi]: CPU time of each step of one software layer.

    send_packet_us and receive_packet_us are for each further packet of a message, where the library and not the card
    cuts messages into packets (VELO); without them, zero.
    """

    send_us: Quantity[NonNegative]
    receive_us: Quantity[NonNegative]
    after_receive_us: Quantity[NonNegative]
    completion_us: Quantity[NonNegative]
    rendezvous_us: Quantity[NonNegative]
    publish_us: Quantity[NonNegative]
    poll_us: Quantity[NonNegative]
    clock_read_us: Quantity[NonNegative]
    eager_limit_bytes: Quantity[LargeSizeOrZero]
    send_packet_us: Quantity[NonNegative] | None = None
    receive_packet_us: Quantity[NonNegative] | None = None


class Software(Section):
    """[software]: the card's own library, and MPI over the libfabric provider."""

    card: SoftwareLayer
    mpi: SoftwareLayer


class MachineFile(Section):
    """A whole file. Which sections a machine needs depends on its card: see `apenet.machine.check`."""

    machine: About
    network: Network
    router: Router | None = None
    card: AnyCard
    bus: Bus | None = None
    host: Host
    software: Software
    results: dict[str, PublishedResult] = Field(default_factory=dict)


RawTable = dict[str, Any]
