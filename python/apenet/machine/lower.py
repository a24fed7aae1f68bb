"""From a checked machine file to the description that the C++ core wires."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from apenet import _core
from apenet.base.errors import MachineError
from apenet.base.infiles import UnreadableError, read_text
from apenet.machine.quantity import Quantity
from apenet.machine.reader import MOST_PS, PS_PER_SECOND, Reader
from apenet.machine.schema import (
    DIMENSIONS,
    Bus,
    Host,
    Link,
    LinkOverride,
    MachineFile,
    Network,
    Router,
    SoftwareLayer,
)

T = TypeVar("T", int, float)
MOST_NAMED_BYTES = 2**28
"""Of a file with a graph or a table."""

DEFAULT_RECONFIGURATION_PS = 10**9  # a millisecond: docs/models/faults.md
ALLOCATION_AND_SWITCH = 3  # cycles: VC allocation, switch allocation, switch traversal
STAGES = (
    "routing_delay_cycles",
    "vc_allocation_delay_cycles",
    "switch_allocation_delay_cycles",
    "switch_traversal_delay_cycles",
)


def lower(file: MachineFile, name: Path | str, seed: int, folder: Path) -> _core.MachineDescription:
    """The description that the C++ core wires.

    `name` is the file's, for errors; `folder` is where the files lie that it names.
    """
    description = _core.MachineDescription()
    description.name = file.machine.name
    description.seed = seed
    description.network = _network(file, name, folder)
    description.host = _host(file.host, file.bus, name)
    description.nic = file.card.lower(Reader(name, "card"))
    description.card_software = _software(file.software.card, name, "software.card")
    description.mpi_software = _software(file.software.mpi, name, "software.mpi")
    return description


def _network(file: MachineFile, name: Path | str, folder: Path) -> _core.NetworkDescription:
    network = _core.NetworkDescription()
    network.topology = getattr(_core.Topology, file.network.topology.value.replace("-", "_"))
    _shape(file.network, network, name, folder)
    if file.network.link is not None:
        overrides = _overrides(file.network, file.network.link)
        network.links = [_link(file.network.link, override, name, where) for where, override in overrides]
        network.link_names = list(file.network.links or ())
    reconfiguration = file.network.reconfiguration_us
    network.reconfiguration_ps = (
        DEFAULT_RECONFIGURATION_PS
        if reconfiguration is None
        else Reader(name, "network").ps("reconfiguration_us", reconfiguration)
    )
    if file.router is not None:
        _router(file.router, network, name)
    return network


def _shape(section: Network, network: _core.NetworkDescription, name: Path | str, folder: Path) -> None:
    if section.dims is not None:
        network.dims = section.dims.value
    if section.children is not None and section.parents is not None:
        tree = _core.FatTreeDescription()
        tree.children = section.children.value
        tree.parents = section.parents.value
        tree.cables = section.cables.value if section.cables is not None else [1] * len(tree.parents)
        network.fat_tree = tree
    if section.nodes is not None:
        network.nodes = section.nodes.value
    if section.graph_file is not None:
        network.graph = read_named(section.graph_file, "network.graph_file", name, folder)
    if section.table_file is not None:
        network.table = read_named(section.table_file, "network.table_file", name, folder)
    routing = section.routing.value if section.routing is not None else default_routing(section)
    network.routing = getattr(_core.Routing, routing.replace("-", "_"))


def default_routing(section: Network) -> str:
    """Where nothing needs to be said: on a crossbar every routing is the same."""
    return "up-down" if section.topology.value == "crossbar" else "dimension-order"


def read_named(quantity: Quantity[str], key: str, name: Path | str, folder: Path) -> str:
    """The text of a file that a machine file names, relative to the machine file; with --set, to where one is."""
    path = (Path() if quantity.origin == "set" else folder) / quantity.value
    try:
        return read_text(path, MOST_NAMED_BYTES)
    except UnreadableError as error:
        raise MachineError(name, key, quantity.value, f"a file that can be read ({error})") from error


def _overrides(section: Network, link: Link) -> list[tuple[str, LinkOverride | None]]:
    """What differs from [network.link], in the order in which the core numbers kinds of links, and where it stands."""
    match section.topology.value:
        case "torus" | "mesh" | "none":
            names = DIMENSIONS[: len(section.dims.value)] if section.dims is not None else ()
        case "fat-tree":
            names = ("leaf", "middle")[: len(section.parents.value)] if section.parents is not None else ()
        case "graph":
            named = [(f"network.links.{name}", override) for name, override in (section.links or {}).items()]
            return [("network.link", None), *named]
        case _:
            names = ()
    return [(f"network.link.{name}", getattr(link, name)) for name in names]


def _link(link: Link, override: LinkOverride | None, name: Path | str, where: str) -> _core.LinkDescription:
    def pick(key: str, default: Quantity[T]) -> tuple[Reader, Quantity[T]]:
        chosen: Quantity[T] | None = getattr(override, key) if override is not None else None
        return Reader(name, "network.link" if chosen is None else where), default if chosen is None else chosen

    lowered = _core.LinkDescription()
    clock_reader, clock = pick("clock_mhz", link.clock_mhz)
    lowered.rate = _core.DataRate(
        pick("word_bytes", link.word_bytes)[1].value,
        pick("word_cycles", link.word_cycles)[1].value,
        clock_reader.hz("clock_mhz", clock),
    )
    latency_reader, latency = pick("latency_ns", link.latency_ns)
    lowered.latency_ps = latency_reader.ps("latency_ns", latency)
    own = override.bit_error_rate if override is not None else None
    rate = own if own is not None else link.bit_error_rate
    lowered.bit_error_rate = rate.value if rate is not None else 0.0
    return lowered


def _cycles_ps(read: Reader, key: str, cycles: int, frequency_hz: int) -> int:
    """Duration of whole cycles, rounded up like ClockDomain::cycles: never faster than its clock."""
    return read.at_most(key, -(-cycles * PS_PER_SECOND // frequency_hz), MOST_PS, cycles, "1000 seconds of its clock")


def _router(router: Router, network: _core.NetworkDescription, name: Path | str) -> None:
    read = Reader(name, "router")
    _pipeline(router, network, read)
    network.local_rate = _core.DataRate(
        router.port_word_bytes.value, 1, read.hz("port_clock_mhz", router.port_clock_mhz)
    )
    if router.port_latency_ns is not None:
        network.local_latency_ps = read.ps("port_latency_ns", router.port_latency_ns)
    network.virtual_channels = router.virtual_channels.value
    network.buffer_bytes = _buffer_bytes(router, network)
    network.injection_buffer_bytes = router.injection_buffer_bytes.value
    network.ejection_buffer_bytes = router.ejection_buffer_bytes.value


def _pipeline(router: Router, network: _core.NetworkDescription, read: Reader) -> None:
    clock_hz = read.hz("clock_mhz", router.clock_mhz)
    pipeline = _core.RouterPipeline()
    pipeline.clock_hz = clock_hz
    if router.flit_bytes is not None:
        pipeline.flit_bytes = router.flit_bytes.value
    if router.forward_cycles is not None and router.credit_cycles is not None:
        # The stages of one cycle each that the flit engine has, as far as they fit; the rest is buffer write.
        pipeline.routing_delay_cycles = min(1, max(0, router.forward_cycles.value - ALLOCATION_AND_SWITCH))
        network.router_latency_ps = _cycles_ps(read, "forward_cycles", router.forward_cycles.value, clock_hz)
        network.credit_latency_ps = _cycles_ps(read, "credit_cycles", router.credit_cycles.value, clock_hz)
    else:
        for key in (*STAGES, "credit_delay_cycles"):
            setattr(pipeline, key, getattr(router, key).value)
        stages = sum(getattr(router, key).value for key in STAGES)
        network.router_latency_ps = _cycles_ps(read, "routing_delay_cycles", stages, clock_hz)
        # The engine that counts from a tail's departure: back along the link, less the tail's way through the switch.
        wire_ps = min((link.latency_ps for link in network.links), default=0)
        cycles = pipeline.credit_delay_cycles - pipeline.switch_traversal_delay_cycles
        network.credit_latency_ps = max(0, wire_ps + _cycles_ps(read, "credit_delay_cycles", cycles, clock_hz))
    if router.switching is not None:
        network.switching = getattr(_core.Switching, router.switching.value.replace("-", "_"))
    if router.channel_selection is not None:
        network.channel_selection = getattr(_core.ChannelSelection, router.channel_selection.value)
    network.pipeline = pipeline


def _buffer_bytes(router: Router, network: _core.NetworkDescription) -> int:
    if router.buffer_bytes is not None:
        return router.buffer_bytes.value
    flits = router.buffer_flits.value if router.buffer_flits is not None else 0
    word = network.links[0].rate.bytes if network.links else network.local_rate.bytes
    return flits * (network.pipeline.flit_bytes or word)


def _host(host: Host, bus: Bus | None, name: Path | str) -> _core.HostDescription:
    read = Reader(name, "host")
    lowered = _core.HostDescription()
    lowered.copy_bytes_per_second = read.bytes_per_second("copy_bandwidth_mib_s", host.copy_bandwidth_mib_s)
    lowered.local_latency_ps = read.ps("local_latency_ns", host.local_latency_ns)
    if host.gpu_copy_bandwidth_mib_s is not None:
        lowered.gpu_copy_bytes_per_second = read.bytes_per_second(
            "gpu_copy_bandwidth_mib_s", host.gpu_copy_bandwidth_mib_s
        )
    if host.gpu_copy_latency_us is not None:
        lowered.gpu_copy_latency_ps = read.ps("gpu_copy_latency_us", host.gpu_copy_latency_us)
    lowered.flops_per_second = read.per_second("flops_per_second", host.flops_per_second, "operations")
    if bus is not None:
        lowered.bus = _bus(bus, name)
    return lowered


def _bus(bus: Bus, name: Path | str) -> _core.BusDescription:
    read = Reader(name, "bus")
    lowered = _core.BusDescription()
    lowered.frequency_hz = read.hz("clock_mhz", bus.clock_mhz)
    lowered.width_bytes = bus.width_bytes.value
    lowered.full_duplex = bus.duplex is not None and bus.duplex.value == "full"
    lowered.transaction_overhead_cycles = bus.transaction_overhead_cycles.value
    lowered.max_burst_bytes = bus.max_burst_bytes.value
    lowered.read_latency_ps = read.ps("read_latency_ns", bus.read_latency_ns)
    lowered.outstanding_reads = bus.outstanding_reads.value
    lowered.pio_write_latency_ps = read.ps("pio_write_latency_ns", bus.pio_write_latency_ns)
    return lowered


def _software(layer: SoftwareLayer, name: Path | str, section: str) -> _core.SoftwareDescription:
    read = Reader(name, section)
    lowered = _core.SoftwareDescription()
    for step in (
        "send",
        "receive",
        "after_receive",
        "completion",
        "rendezvous",
        "publish",
        "poll",
        "clock_read",
    ):
        key = f"{step}_us"
        setattr(lowered, f"{step}_ps", read.ps(key, getattr(layer, key)))
    for step in ("send_packet", "receive_packet"):
        quantity = getattr(layer, f"{step}_us")
        if quantity is not None:
            setattr(lowered, f"{step}_ps", read.ps(f"{step}_us", quantity))
    lowered.eager_limit_bytes = layer.eager_limit_bytes.value
    return lowered
