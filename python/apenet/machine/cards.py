"""[card]: the schema of each kind of card, and its way into the core."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from apenet import _core
from apenet.base.errors import Problem
from apenet.machine.quantity import (
    Count,
    CountOrZero,
    LargeSize,
    LargeSizeOrZero,
    NonNegative,
    Positive,
    Quantity,
    Section,
)
from apenet.machine.reader import Reader

Switches = Annotated[list[LargeSizeOrZero], Field(min_length=1)]
NonNegatives = Annotated[list[NonNegative], Field(min_length=1)]
Positives = Annotated[list[Positive], Field(min_length=1)]
PathName = Annotated[str, Field(pattern="^[A-Za-z0-9_-]+$")]

Description = (
    _core.IdealDescription
    | _core.ApelinkDescription
    | _core.ApelinkPlusDescription
    | _core.ExtollDescription
    | _core.HcaDescription
    | _core.TnwDescription
)


class Card(Section):
    """What every kind of card has."""

    has_network: ClassVar[bool] = True  # and so links and routers
    has_bus: ClassVar[bool] = True

    @property
    def max_processes(self) -> int | None:
        """How many processes can share a card; None: any number."""
        return None

    def problems(self) -> Iterator[Problem]:
        """What no single key can be blamed for."""
        return iter(())

    def lower(self, read: Reader) -> Description:
        """The description in base units that the C++ core wires."""
        raise NotImplementedError


def copy_numbers(card: Card, description: Description | _core.ApeCardDescription, *keys: str) -> None:
    """Values whose names and units are the same on both sides."""
    for key in keys:
        setattr(description, key, getattr(card, key).value)


class ApeCard(Card):
    """What the cards of APENet have in common, whatever their generation."""

    clock_mhz: Quantity[Positive]
    header_bytes: Quantity[Count]
    footer_bytes: Quantity[CountOrZero]
    granule_bytes: Quantity[Count]
    max_payload_bytes: Quantity[Count]
    max_message_bytes: Quantity[LargeSize]
    queues: Quantity[Count]
    descriptor_bytes: Quantity[Count]
    descriptor_cycles: Quantity[CountOrZero]
    descriptor_fifo_entries: Quantity[Count]
    completion_bytes: Quantity[Count]
    max_pio_bytes: Quantity[CountOrZero]
    ports: Quantity[Count]
    get_service_us: Quantity[NonNegative]

    @property
    def max_processes(self) -> int | None:
        """The ports."""
        return self.ports.value

    def lower_common(self, description: _core.ApeCardDescription, read: Reader) -> None:
        """Fills what every generation has."""
        description.frequency_hz = read.hz("clock_mhz", self.clock_mhz)
        description.get_service_ps = read.ps("get_service_us", self.get_service_us)
        copy_numbers(
            self,
            description,
            "header_bytes",
            "footer_bytes",
            "granule_bytes",
            "max_payload_bytes",
            "max_message_bytes",
            "queues",
            "descriptor_bytes",
            "descriptor_cycles",
            "descriptor_fifo_entries",
            "completion_bytes",
            "max_pio_bytes",
            "ports",
        )


class ApelinkCard(ApeCard):
    """[card] with kind = "apelink"."""

    kind: Literal["apelink"]
    lookup_cycles: Quantity[CountOrZero]

    def lower(self, read: Reader) -> _core.ApelinkDescription:
        """In base units."""
        description = _core.ApelinkDescription()
        self.lower_common(description, read)
        copy_numbers(self, description, "lookup_cycles")
        return description


class ApelinkPlusCard(ApeCard):
    """[card] with kind = "apelink-plus": APEnet+.

    A GPU bandwidth of zero, for reads and writes, says that there is no GPU.
    """

    kind: Literal["apelink-plus"]
    page_bytes: Quantity[Count]
    tlb_entries: Quantity[CountOrZero]
    tlb_hit_ns: Quantity[NonNegative]
    page_walk_ns: Quantity[NonNegative]
    receive_engines: Quantity[Count]
    receive_setup_ns: Quantity[NonNegative]
    max_send_bytes: Quantity[CountOrZero]
    receive_ring_bytes: Quantity[Count]
    gpu_read_latency_ns: Quantity[NonNegative]
    gpu_read_bandwidth_mib_s: Quantity[NonNegative]
    gpu_write_latency_ns: Quantity[NonNegative]
    gpu_write_bandwidth_mib_s: Quantity[NonNegative]

    def lower(self, read: Reader) -> _core.ApelinkPlusDescription:
        """In base units."""
        description = _core.ApelinkPlusDescription()
        self.lower_common(description, read)
        for step in ("tlb_hit", "page_walk", "receive_setup", "gpu_read_latency", "gpu_write_latency"):
            setattr(description, f"{step}_ps", read.ps(f"{step}_ns", getattr(self, f"{step}_ns")))
        for direction in ("read", "write"):
            key = f"gpu_{direction}_bandwidth_mib_s"
            quantity = getattr(self, key)
            rate = read.bytes_per_second(key, quantity) if quantity.value > 0 else 0
            setattr(description, f"gpu_{direction}_bytes_per_second", rate)
        copy_numbers(
            self,
            description,
            "page_bytes",
            "tlb_entries",
            "receive_engines",
            "max_send_bytes",
            "receive_ring_bytes",
        )
        return description


class HcaCard(Card):
    """[card] with kind = "hca": an InfiniBand host channel adapter; with other numbers, one for RoCE."""

    kind: Literal["hca"]
    mtu_bytes: Quantity[Count]
    header_bytes: Quantity[Count]
    trailer_bytes: Quantity[CountOrZero]
    reth_bytes: Quantity[CountOrZero]
    aeth_bytes: Quantity[CountOrZero]
    immediate_bytes: Quantity[CountOrZero]
    granule_bytes: Quantity[Count]
    max_message_bytes: Quantity[LargeSize]
    virtual_lanes: Quantity[Count]
    wqe_bytes: Quantity[Count]
    doorbell_bytes: Quantity[Count]
    cqe_bytes: Quantity[Count]
    max_inline_bytes: Quantity[CountOrZero]
    blueflame_bytes: Quantity[CountOrZero]
    blueflame_entries: Quantity[Literal["inline", "all"]]
    send_queue_entries: Quantity[Count]
    wqe_prefetch_entries: Quantity[Count]
    receive_queue_entries: Quantity[Count]
    context_cache_entries: Quantity[CountOrZero]
    messages_per_ack: Quantity[Count]
    outstanding_rdma_reads: Quantity[Count]
    wqe_latency_ns: Quantity[NonNegative]
    wqe_interval_ns: Quantity[NonNegative]
    receive_latency_ns: Quantity[NonNegative]
    read_service_ns: Quantity[NonNegative]
    receive_repost_us: Quantity[NonNegative]
    rnr_timer_us: Quantity[Positive]
    context_miss_ns: Quantity[NonNegative]

    def lower(self, read: Reader) -> _core.HcaDescription:
        """In base units."""
        description = _core.HcaDescription()
        description.wqe_latency_ps = read.ps("wqe_latency_ns", self.wqe_latency_ns)
        description.wqe_interval_ps = read.ps("wqe_interval_ns", self.wqe_interval_ns)
        description.receive_latency_ps = read.ps("receive_latency_ns", self.receive_latency_ns)
        description.read_service_ps = read.ps("read_service_ns", self.read_service_ns)
        description.receive_repost_ps = read.ps("receive_repost_us", self.receive_repost_us)
        description.rnr_timer_ps = read.ps("rnr_timer_us", self.rnr_timer_us)
        description.is_blueflame_for_all = self.blueflame_entries.value == "all"
        description.context_miss_ps = read.ps("context_miss_ns", self.context_miss_ns)
        copy_numbers(
            self,
            description,
            "mtu_bytes",
            "header_bytes",
            "trailer_bytes",
            "reth_bytes",
            "aeth_bytes",
            "immediate_bytes",
            "granule_bytes",
            "max_message_bytes",
            "virtual_lanes",
            "wqe_bytes",
            "doorbell_bytes",
            "cqe_bytes",
            "max_inline_bytes",
            "blueflame_bytes",
            "send_queue_entries",
            "wqe_prefetch_entries",
            "receive_queue_entries",
            "context_cache_entries",
            "messages_per_ack",
            "outstanding_rdma_reads",
        )
        return description


class ExtollCard(Card):
    """[card] with kind = "extoll"."""

    kind: Literal["extoll"]
    clock_mhz: Quantity[Positive]
    header_bytes: Quantity[Count]
    footer_bytes: Quantity[CountOrZero]
    granule_bytes: Quantity[Count]
    ports: Quantity[Count]
    velo_payload_bytes: Quantity[Count]
    velo_status_bytes: Quantity[Count]
    velo_max_message_bytes: Quantity[LargeSize]
    velo_mailbox_entries: Quantity[Count]
    velo_send_cycles: Quantity[CountOrZero]
    velo_receive_cycles: Quantity[CountOrZero]
    rma_max_message_bytes: Quantity[LargeSize]
    rma_max_payload_bytes: Quantity[Count]
    rma_command_bytes: Quantity[Count]
    rma_header_bytes: Quantity[CountOrZero]
    rma_notification_bytes: Quantity[Count]
    rma_max_immediate_bytes: Quantity[CountOrZero]
    rma_requester_cycles: Quantity[CountOrZero]
    rma_responder_cycles: Quantity[CountOrZero]
    rma_completer_cycles: Quantity[CountOrZero]

    @property
    def max_processes(self) -> int | None:
        """The ports."""
        return self.ports.value

    def lower(self, read: Reader) -> _core.ExtollDescription:
        """In base units."""
        description = _core.ExtollDescription()
        description.frequency_hz = read.hz("clock_mhz", self.clock_mhz)
        copy_numbers(
            self,
            description,
            "header_bytes",
            "footer_bytes",
            "granule_bytes",
            "ports",
            "velo_payload_bytes",
            "velo_status_bytes",
            "velo_max_message_bytes",
            "velo_mailbox_entries",
            "velo_send_cycles",
            "velo_receive_cycles",
            "rma_max_message_bytes",
            "rma_max_payload_bytes",
            "rma_command_bytes",
            "rma_header_bytes",
            "rma_notification_bytes",
            "rma_max_immediate_bytes",
            "rma_requester_cycles",
            "rma_responder_cycles",
            "rma_completer_cycles",
        )
        return description


class IdealCard(Card):
    """[card] with kind = "ideal": a constant latency and bandwidth between any two processes."""

    has_network: ClassVar[bool] = False
    has_bus: ClassVar[bool] = False

    kind: Literal["ideal"]
    latency_ns: Quantity[Positive]
    bandwidth_mib_s: Quantity[Positive]

    def lower(self, read: Reader) -> _core.IdealDescription:
        """In base units."""
        path = _core.IdealPath()
        path.latency_ps = read.ps("latency_ns", self.latency_ns)
        path.rate = read.rate("bandwidth_mib_s", self.bandwidth_mib_s)
        protocol = _core.IdealProtocol()
        protocol.paths = [path]
        description = _core.IdealDescription()
        description.protocols = [protocol]
        return description


class FabricPath(Section):
    """[card.paths.NAME]: a resource that messages pass one after another; a list has one value for each protocol.

    A message of N bytes holds it for gap + N / bandwidth, and arrives latency + N / transit_bandwidth after that.
    """

    latency_ns: Quantity[NonNegatives]
    gap_ns: Quantity[NonNegatives]
    bandwidth_mib_s: Quantity[Positives]
    transit_bandwidth_mib_s: Quantity[Positives] | None = None


class FabricCard(Card):
    """[card] with kind = "fabric": a fabric of which only times are known; the slowest of its paths decides.

    Messages of up to switch_bytes[i] travel by protocol i, larger ones by the last.
    """

    has_network: ClassVar[bool] = False

    kind: Literal["fabric"]
    switch_bytes: Quantity[Switches] | None = None
    paths: dict[PathName, FabricPath] = Field(min_length=1)

    @property
    def switches(self) -> list[int]:
        """Largest messages of all protocols but the last."""
        return self.switch_bytes.value if self.switch_bytes is not None else []

    def problems(self) -> Iterator[Problem]:
        """Sizes that do not rise, and lists of the wrong length."""
        if any(one >= other for one, other in pairwise(self.switches)):
            yield Problem("card.switch_bytes", self.switches, "sizes that rise")
        count = len(self.switches) + 1
        for name, path in self.paths.items():
            for key in FabricPath.model_fields:
                quantity: Quantity[list[float]] | None = getattr(path, key)
                if quantity is not None and len(quantity.value) != count:
                    yield Problem(
                        f"card.paths.{name}.{key}",
                        quantity.value,
                        f"{count} values, one for each protocol: one more than card.switch_bytes has",
                    )

    def lower(self, read: Reader) -> _core.IdealDescription:
        """In base units: the ideal card with more than one path and protocol."""
        protocols = []
        for index in range(len(self.switches) + 1):
            protocol = _core.IdealProtocol()
            if index < len(self.switches):
                protocol.max_message_bytes = self.switches[index]
            protocol.paths = [
                self._lower_path(Reader(read.file, f"{read.section}.paths.{name}"), path, index)
                for name, path in self.paths.items()
            ]
            protocols.append(protocol)
        description = _core.IdealDescription()
        description.protocols = protocols
        return description

    def _lower_path(self, read: Reader, path: FabricPath, index: int) -> _core.IdealPath:
        lowered = _core.IdealPath()
        lowered.latency_ps = read.ps("latency_ns", _one(path.latency_ns, index))
        lowered.gap_ps = read.ps("gap_ns", _one(path.gap_ns, index))
        lowered.rate = read.rate("bandwidth_mib_s", _one(path.bandwidth_mib_s, index))
        if path.transit_bandwidth_mib_s is not None:
            lowered.transit = read.rate("transit_bandwidth_mib_s", _one(path.transit_bandwidth_mib_s, index))
        return lowered


def _one(quantity: Quantity[list[float]], index: int) -> Quantity[float]:
    return Quantity[float](value=float(quantity.value[index]), origin=quantity.origin, source=quantity.source)


class TnwCard(Card):
    """[card] with kind = "tnw": the torus network processor of QPACE, between Cell and links without any bus."""

    has_bus: ClassVar[bool] = False

    kind: Literal["tnw"]
    put_latency_ns: Quantity[Positive]
    notify_latency_ns: Quantity[NonNegative]
    operation_ns: Quantity[NonNegative]
    cpu_links: Quantity[Count]
    cpu_link_bandwidth_mb_s: Quantity[Positive]
    packet_bytes: Quantity[Count]
    header_bytes: Quantity[CountOrZero]
    message_header_bytes: Quantity[CountOrZero]
    acknowledgement_bytes: Quantity[Count]
    message_acknowledgement_bytes: Quantity[Count]
    max_message_bytes: Quantity[LargeSize]
    channels: Quantity[Count]
    ports: Quantity[Count]
    receive_buffer_packets: Quantity[Count]
    ring_bytes: Quantity[Count]
    forward_service_us: Quantity[NonNegative]

    @property
    def max_processes(self) -> int | None:
        """The ports."""
        return self.ports.value

    def lower(self, read: Reader) -> _core.TnwDescription:
        """In base units."""
        description = _core.TnwDescription()
        description.put_latency_ps = read.ps("put_latency_ns", self.put_latency_ns)
        description.notify_latency_ps = read.ps("notify_latency_ns", self.notify_latency_ns)
        description.operation_ps = read.ps("operation_ns", self.operation_ns)
        rate = read.bytes_per_second("cpu_link_bandwidth_mb_s", self.cpu_link_bandwidth_mb_s)
        description.cpu_link_rate = _core.DataRate(rate, 1, 1)
        description.forward_service_ps = read.ps("forward_service_us", self.forward_service_us)
        copy_numbers(
            self,
            description,
            "cpu_links",
            "packet_bytes",
            "header_bytes",
            "message_header_bytes",
            "acknowledgement_bytes",
            "message_acknowledgement_bytes",
            "max_message_bytes",
            "channels",
            "ports",
            "receive_buffer_packets",
            "ring_bytes",
        )
        return description


AnyCard = Annotated[
    ApelinkCard | ApelinkPlusCard | ExtollCard | HcaCard | IdealCard | FabricCard | TnwCard,
    Field(discriminator="kind"),
]
CARDS: dict[str, type[Card]] = {
    "apelink": ApelinkCard,
    "apelink-plus": ApelinkPlusCard,
    "extoll": ExtollCard,
    "hca": HcaCard,
    "ideal": IdealCard,
    "fabric": FabricCard,
    "tnw": TnwCard,
}
