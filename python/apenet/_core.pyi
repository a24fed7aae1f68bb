from collections.abc import Callable, Sequence
import enum
from typing import Annotated

import numpy
from numpy.typing import NDArray

import apenet.errors


version: str = '0.1.0'

class NetworkPartitioned(apenet.errors.PartitionError):
    pass

class DataRate:
    def __init__(self, bytes: int, per_cycles: int, frequency_hz: int) -> None: ...

    @property
    def bytes(self) -> int: ...

    @property
    def per_cycles(self) -> int: ...

    @property
    def frequency_hz(self) -> int: ...

class LinkDescription:
    def __init__(self) -> None: ...

    @property
    def rate(self) -> DataRate: ...

    @rate.setter
    def rate(self, arg: DataRate, /) -> None: ...

    @property
    def bit_error_rate(self) -> float: ...

    @bit_error_rate.setter
    def bit_error_rate(self, arg: float, /) -> None: ...

    @property
    def latency_ps(self) -> int: ...

    @latency_ps.setter
    def latency_ps(self, arg: int, /) -> None: ...

class Topology(enum.Enum):
    none = 0

    torus = 1

    mesh = 2

    fat_tree = 3

    crossbar = 4

    graph = 5

class Routing(enum.Enum):
    dimension_order = 0

    dimension_order_entry_class = 1

    minimal_adaptive = 2

    destination_mod = 3

    up_down = 4

    table = 5

class Engine(enum.Enum):
    packet = 0

    flit = 1

class Switching(enum.Enum):
    virtual_cut_through = 0

    wormhole = 1

class ChannelSelection(enum.Enum):
    lane = 0

    any = 1

class RouterPipeline:
    def __init__(self) -> None: ...

    @property
    def clock_hz(self) -> int: ...

    @clock_hz.setter
    def clock_hz(self, arg: int, /) -> None: ...

    @property
    def flit_bytes(self) -> int: ...

    @flit_bytes.setter
    def flit_bytes(self, arg: int, /) -> None: ...

    @property
    def routing_delay_cycles(self) -> int: ...

    @routing_delay_cycles.setter
    def routing_delay_cycles(self, arg: int, /) -> None: ...

    @property
    def vc_allocation_delay_cycles(self) -> int: ...

    @vc_allocation_delay_cycles.setter
    def vc_allocation_delay_cycles(self, arg: int, /) -> None: ...

    @property
    def switch_allocation_delay_cycles(self) -> int: ...

    @switch_allocation_delay_cycles.setter
    def switch_allocation_delay_cycles(self, arg: int, /) -> None: ...

    @property
    def switch_traversal_delay_cycles(self) -> int: ...

    @switch_traversal_delay_cycles.setter
    def switch_traversal_delay_cycles(self, arg: int, /) -> None: ...

    @property
    def credit_delay_cycles(self) -> int: ...

    @credit_delay_cycles.setter
    def credit_delay_cycles(self, arg: int, /) -> None: ...

class FatTreeDescription:
    def __init__(self) -> None: ...

    @property
    def children(self) -> list[int]: ...

    @children.setter
    def children(self, arg: Sequence[int], /) -> None: ...

    @property
    def parents(self) -> list[int]: ...

    @parents.setter
    def parents(self, arg: Sequence[int], /) -> None: ...

    @property
    def cables(self) -> list[int]: ...

    @cables.setter
    def cables(self, arg: Sequence[int], /) -> None: ...

class NetworkDescription:
    def __init__(self) -> None: ...

    @property
    def topology(self) -> Topology: ...

    @topology.setter
    def topology(self, arg: Topology, /) -> None: ...

    @property
    def engine(self) -> Engine: ...

    @engine.setter
    def engine(self, arg: Engine, /) -> None: ...

    @property
    def routing(self) -> Routing: ...

    @routing.setter
    def routing(self, arg: Routing, /) -> None: ...

    @property
    def dims(self) -> list[int]: ...

    @dims.setter
    def dims(self, arg: Sequence[int], /) -> None: ...

    @property
    def fat_tree(self) -> FatTreeDescription: ...

    @fat_tree.setter
    def fat_tree(self, arg: FatTreeDescription, /) -> None: ...

    @property
    def nodes(self) -> int: ...

    @nodes.setter
    def nodes(self, arg: int, /) -> None: ...

    @property
    def graph(self) -> str: ...

    @graph.setter
    def graph(self, arg: str, /) -> None: ...

    @property
    def table(self) -> str: ...

    @table.setter
    def table(self, arg: str, /) -> None: ...

    @property
    def link_names(self) -> list[str]: ...

    @link_names.setter
    def link_names(self, arg: Sequence[str], /) -> None: ...

    @property
    def links(self) -> list[LinkDescription]: ...

    @links.setter
    def links(self, arg: Sequence[LinkDescription], /) -> None: ...

    @property
    def local_rate(self) -> DataRate: ...

    @local_rate.setter
    def local_rate(self, arg: DataRate, /) -> None: ...

    @property
    def virtual_channels(self) -> int: ...

    @virtual_channels.setter
    def virtual_channels(self, arg: int, /) -> None: ...

    @property
    def buffer_bytes(self) -> int: ...

    @buffer_bytes.setter
    def buffer_bytes(self, arg: int, /) -> None: ...

    @property
    def injection_buffer_bytes(self) -> int: ...

    @injection_buffer_bytes.setter
    def injection_buffer_bytes(self, arg: int, /) -> None: ...

    @property
    def ejection_buffer_bytes(self) -> int: ...

    @ejection_buffer_bytes.setter
    def ejection_buffer_bytes(self, arg: int, /) -> None: ...

    @property
    def switching(self) -> Switching: ...

    @switching.setter
    def switching(self, arg: Switching, /) -> None: ...

    @property
    def channel_selection(self) -> ChannelSelection: ...

    @channel_selection.setter
    def channel_selection(self, arg: ChannelSelection, /) -> None: ...

    @property
    def pipeline(self) -> RouterPipeline: ...

    @pipeline.setter
    def pipeline(self, arg: RouterPipeline, /) -> None: ...

    @property
    def local_latency_ps(self) -> int: ...

    @local_latency_ps.setter
    def local_latency_ps(self, arg: int, /) -> None: ...

    @property
    def router_latency_ps(self) -> int: ...

    @router_latency_ps.setter
    def router_latency_ps(self, arg: int, /) -> None: ...

    @property
    def credit_latency_ps(self) -> int: ...

    @credit_latency_ps.setter
    def credit_latency_ps(self, arg: int, /) -> None: ...

    @property
    def faults(self) -> list[str]: ...

    @faults.setter
    def faults(self, arg: Sequence[str], /) -> None: ...

    @property
    def reconfiguration_ps(self) -> int: ...

    @reconfiguration_ps.setter
    def reconfiguration_ps(self, arg: int, /) -> None: ...

class BusDescription:
    def __init__(self) -> None: ...

    @property
    def width_bytes(self) -> int: ...

    @width_bytes.setter
    def width_bytes(self, arg: int, /) -> None: ...

    @property
    def full_duplex(self) -> bool: ...

    @full_duplex.setter
    def full_duplex(self, arg: bool, /) -> None: ...

    @property
    def transaction_overhead_cycles(self) -> int: ...

    @transaction_overhead_cycles.setter
    def transaction_overhead_cycles(self, arg: int, /) -> None: ...

    @property
    def max_burst_bytes(self) -> int: ...

    @max_burst_bytes.setter
    def max_burst_bytes(self, arg: int, /) -> None: ...

    @property
    def outstanding_reads(self) -> int: ...

    @outstanding_reads.setter
    def outstanding_reads(self, arg: int, /) -> None: ...

    @property
    def frequency_hz(self) -> int: ...

    @frequency_hz.setter
    def frequency_hz(self, arg: int, /) -> None: ...

    @property
    def read_latency_ps(self) -> int: ...

    @read_latency_ps.setter
    def read_latency_ps(self, arg: int, /) -> None: ...

    @property
    def pio_write_latency_ps(self) -> int: ...

    @pio_write_latency_ps.setter
    def pio_write_latency_ps(self, arg: int, /) -> None: ...

class HostDescription:
    def __init__(self) -> None: ...

    @property
    def bus(self) -> BusDescription: ...

    @bus.setter
    def bus(self, arg: BusDescription, /) -> None: ...

    @property
    def copy_bytes_per_second(self) -> int: ...

    @copy_bytes_per_second.setter
    def copy_bytes_per_second(self, arg: int, /) -> None: ...

    @property
    def gpu_copy_bytes_per_second(self) -> int: ...

    @gpu_copy_bytes_per_second.setter
    def gpu_copy_bytes_per_second(self, arg: int, /) -> None: ...

    @property
    def flops_per_second(self) -> int: ...

    @flops_per_second.setter
    def flops_per_second(self, arg: int, /) -> None: ...

    @property
    def local_latency_ps(self) -> int: ...

    @local_latency_ps.setter
    def local_latency_ps(self, arg: int, /) -> None: ...

    @property
    def gpu_copy_latency_ps(self) -> int: ...

    @gpu_copy_latency_ps.setter
    def gpu_copy_latency_ps(self, arg: int, /) -> None: ...

class ApelinkDescription:
    def __init__(self) -> None: ...

    @property
    def header_bytes(self) -> int: ...

    @header_bytes.setter
    def header_bytes(self, arg: int, /) -> None: ...

    @property
    def footer_bytes(self) -> int: ...

    @footer_bytes.setter
    def footer_bytes(self, arg: int, /) -> None: ...

    @property
    def granule_bytes(self) -> int: ...

    @granule_bytes.setter
    def granule_bytes(self, arg: int, /) -> None: ...

    @property
    def max_payload_bytes(self) -> int: ...

    @max_payload_bytes.setter
    def max_payload_bytes(self, arg: int, /) -> None: ...

    @property
    def max_message_bytes(self) -> int: ...

    @max_message_bytes.setter
    def max_message_bytes(self, arg: int, /) -> None: ...

    @property
    def queues(self) -> int: ...

    @queues.setter
    def queues(self, arg: int, /) -> None: ...

    @property
    def descriptor_bytes(self) -> int: ...

    @descriptor_bytes.setter
    def descriptor_bytes(self, arg: int, /) -> None: ...

    @property
    def descriptor_cycles(self) -> int: ...

    @descriptor_cycles.setter
    def descriptor_cycles(self, arg: int, /) -> None: ...

    @property
    def descriptor_fifo_entries(self) -> int: ...

    @descriptor_fifo_entries.setter
    def descriptor_fifo_entries(self, arg: int, /) -> None: ...

    @property
    def lookup_cycles(self) -> int: ...

    @lookup_cycles.setter
    def lookup_cycles(self, arg: int, /) -> None: ...

    @property
    def completion_bytes(self) -> int: ...

    @completion_bytes.setter
    def completion_bytes(self, arg: int, /) -> None: ...

    @property
    def max_pio_bytes(self) -> int: ...

    @max_pio_bytes.setter
    def max_pio_bytes(self, arg: int, /) -> None: ...

    @property
    def ports(self) -> int: ...

    @ports.setter
    def ports(self, arg: int, /) -> None: ...

    @property
    def frequency_hz(self) -> int: ...

    @frequency_hz.setter
    def frequency_hz(self, arg: int, /) -> None: ...

    @property
    def get_service_ps(self) -> int: ...

    @get_service_ps.setter
    def get_service_ps(self, arg: int, /) -> None: ...

class IdealDescription:
    def __init__(self) -> None: ...

    @property
    def rate(self) -> DataRate: ...

    @rate.setter
    def rate(self, arg: DataRate, /) -> None: ...

    @property
    def latency_ps(self) -> int: ...

    @latency_ps.setter
    def latency_ps(self, arg: int, /) -> None: ...

class SoftwareDescription:
    def __init__(self) -> None: ...

    @property
    def eager_limit_bytes(self) -> int: ...

    @eager_limit_bytes.setter
    def eager_limit_bytes(self, arg: int, /) -> None: ...

    @property
    def send_ps(self) -> int: ...

    @send_ps.setter
    def send_ps(self, arg: int, /) -> None: ...

    @property
    def receive_ps(self) -> int: ...

    @receive_ps.setter
    def receive_ps(self, arg: int, /) -> None: ...

    @property
    def after_receive_ps(self) -> int: ...

    @after_receive_ps.setter
    def after_receive_ps(self, arg: int, /) -> None: ...

    @property
    def completion_ps(self) -> int: ...

    @completion_ps.setter
    def completion_ps(self, arg: int, /) -> None: ...

    @property
    def rendezvous_ps(self) -> int: ...

    @rendezvous_ps.setter
    def rendezvous_ps(self, arg: int, /) -> None: ...

    @property
    def publish_ps(self) -> int: ...

    @publish_ps.setter
    def publish_ps(self, arg: int, /) -> None: ...

    @property
    def poll_ps(self) -> int: ...

    @poll_ps.setter
    def poll_ps(self, arg: int, /) -> None: ...

    @property
    def clock_read_ps(self) -> int: ...

    @clock_read_ps.setter
    def clock_read_ps(self, arg: int, /) -> None: ...

class MachineDescription:
    def __init__(self) -> None: ...

    @property
    def name(self) -> str: ...

    @name.setter
    def name(self, arg: str, /) -> None: ...

    @property
    def network(self) -> NetworkDescription: ...

    @network.setter
    def network(self, arg: NetworkDescription, /) -> None: ...

    @property
    def host(self) -> HostDescription: ...

    @host.setter
    def host(self, arg: HostDescription, /) -> None: ...

    @property
    def nic(self) -> IdealDescription | ApelinkDescription: ...

    @nic.setter
    def nic(self, arg: IdealDescription | ApelinkDescription, /) -> None: ...

    @property
    def card_software(self) -> SoftwareDescription: ...

    @card_software.setter
    def card_software(self, arg: SoftwareDescription, /) -> None: ...

    @property
    def mpi_software(self) -> SoftwareDescription: ...

    @mpi_software.setter
    def mpi_software(self, arg: SoftwareDescription, /) -> None: ...

    @property
    def seed(self) -> int: ...

    @seed.setter
    def seed(self, arg: int, /) -> None: ...

class ArrangementFacts:
    @property
    def nodes(self) -> int: ...

    @property
    def routers(self) -> int: ...

    @property
    def ports_per_router(self) -> int: ...

    @property
    def cables(self) -> int: ...

    @property
    def channel_classes(self) -> int: ...

    @property
    def is_free_of_deadlock(self) -> bool: ...

    @property
    def proof(self) -> str: ...

def inspect_arrangement(network: NetworkDescription) -> ArrangementFacts:
    """
    Topology, routing and the deadlock check; raises ValueError when the network cannot be built.
    """

def count_network_nodes(network: NetworkDescription) -> int:
    """Nodes of a network; raises ValueError when it cannot be built."""

def wire(description: MachineDescription, node_of_process: Sequence[int]) -> int:
    """
    Wires the machine and drops it: raises ValueError when that cannot be done. Returns the number of nodes.
    """

class CardTest(enum.Enum):
    pingpong = 0

    pingping = 1

    roundtrip = 2

    oneway = 3

    unidirectional = 4

    bidirectional = 5

    flush = 6

    rate = 7

class Buffer(enum.Enum):
    host = 0

    host_copied = 1

    gpu = 2

    gpu_staged = 3

class Path(enum.Enum):
    automatic = 0

    send = 1

    put = 2

class CardTestOptions:
    def __init__(self) -> None: ...

    @property
    def sizes(self) -> list[int]: ...

    @sizes.setter
    def sizes(self, arg: Sequence[int], /) -> None: ...

    @property
    def iterations(self) -> int: ...

    @iterations.setter
    def iterations(self, arg: int, /) -> None: ...

    @property
    def warmup(self) -> int: ...

    @warmup.setter
    def warmup(self, arg: int, /) -> None: ...

    @property
    def channels(self) -> int: ...

    @channels.setter
    def channels(self, arg: int, /) -> None: ...

    @property
    def nodes(self) -> list[int]: ...

    @nodes.setter
    def nodes(self, arg: Sequence[int], /) -> None: ...

    @property
    def window(self) -> int: ...

    @window.setter
    def window(self, arg: int, /) -> None: ...

    @property
    def local(self) -> Buffer: ...

    @local.setter
    def local(self, arg: Buffer, /) -> None: ...

    @property
    def remote(self) -> Buffer: ...

    @remote.setter
    def remote(self, arg: Buffer, /) -> None: ...

    @property
    def path(self) -> Path: ...

    @path.setter
    def path(self, arg: Path, /) -> None: ...

    @property
    def until_landed(self) -> bool: ...

    @until_landed.setter
    def until_landed(self, arg: bool, /) -> None: ...

    @property
    def region_bytes(self) -> int: ...

    @region_bytes.setter
    def region_bytes(self, arg: int, /) -> None: ...

class TestPoint:
    @property
    def size_bytes(self) -> int: ...

    @property
    def time_ps(self) -> int: ...

    @property
    def bandwidth_mib_s(self) -> float: ...

def run_card_test(description: MachineDescription, test: CardTest, options: CardTestOptions) -> list[TestPoint]: ...

class WorkDone:
    @property
    def nodes(self) -> int: ...

    @property
    def messages(self) -> int: ...

    @property
    def packets(self) -> int: ...

    @property
    def hops(self) -> int: ...

    @property
    def events(self) -> int: ...

    @property
    def virtual_ps(self) -> int: ...

class PacketWorkOptions:
    def __init__(self) -> None: ...

    @property
    def packets_per_node(self) -> int: ...

    @packets_per_node.setter
    def packets_per_node(self, arg: int, /) -> None: ...

    @property
    def payload_bytes(self) -> int: ...

    @payload_bytes.setter
    def payload_bytes(self, arg: int, /) -> None: ...

    @property
    def far_percent(self) -> int: ...

    @far_percent.setter
    def far_percent(self, arg: int, /) -> None: ...

    @property
    def interval_ps(self) -> int: ...

    @interval_ps.setter
    def interval_ps(self, arg: int, /) -> None: ...

class PacketWork:
    def __init__(self, description: MachineDescription, options: PacketWorkOptions) -> None: ...

    def run(self) -> WorkDone: ...

class HaloWorkOptions:
    def __init__(self) -> None: ...

    @property
    def exchanges(self) -> int: ...

    @exchanges.setter
    def exchanges(self, arg: int, /) -> None: ...

    @property
    def bytes(self) -> int: ...

    @bytes.setter
    def bytes(self, arg: int, /) -> None: ...

class HaloWork:
    def __init__(self, description: MachineDescription, options: HaloWorkOptions) -> None: ...

    def run(self) -> WorkDone: ...

class LinkUse:
    @property
    def name(self) -> str: ...

    @property
    def packets(self) -> int: ...

    @property
    def wire_bytes(self) -> int: ...

    @property
    def corrupted_packets(self) -> int: ...

    @property
    def retransmitted_bytes(self) -> int: ...

    @property
    def busy_ps(self) -> int: ...

class FaultUse:
    @property
    def events(self) -> int: ...

    @property
    def reconfigurations(self) -> int: ...

    @property
    def packets_taken_back(self) -> int: ...

    @property
    def corrupted_packets(self) -> int: ...

    @property
    def retransmitted_bytes(self) -> int: ...

class LinkHistory:
    @property
    def name(self) -> str: ...

    @property
    def busy_ps(self) -> list[int]: ...

    @property
    def peak_queue_bytes(self) -> int: ...

    @property
    def queue_byte_picoseconds(self) -> int: ...

class HopLatency:
    @property
    def hops(self) -> int: ...

    @property
    def packets(self) -> int: ...

    @property
    def least_ps(self) -> int: ...

    @property
    def most_ps(self) -> int: ...

    @property
    def sum_ns(self) -> int: ...

    @property
    def counts(self) -> list[int]: ...

    @staticmethod
    def lower_bound_ps(bin: int) -> int: ...

class NetworkHistory:
    @property
    def bin_ps(self) -> int: ...

    @property
    def links(self) -> list[LinkHistory]: ...

    @property
    def by_hops(self) -> list[HopLatency]: ...

class RankEnd(enum.Enum):
    running = 0

    exited = 1

    killed = 2

class RankReport:
    @property
    def end(self) -> RankEnd: ...

    @property
    def status(self) -> int: ...

    @property
    def attached(self) -> bool: ...

    @property
    def initialised(self) -> bool: ...

    @property
    def used_provider(self) -> bool: ...

    @property
    def finalised(self) -> bool: ...

    @property
    def virtual_us(self) -> float: ...

    @property
    def waited_us(self) -> float: ...

    @property
    def computed_us(self) -> float: ...

    @property
    def library(self) -> str: ...

class Outcome(enum.Enum):
    completed = 0

    failed = 1

    aborted = 2

    deadlock = 3

    interrupted = 4

    output_closed = 5

class SessionReport:
    @property
    def outcome(self) -> Outcome: ...

    @property
    def exit_status(self) -> int: ...

    @property
    def message(self) -> str: ...

    @property
    def ranks(self) -> list[RankReport]: ...

    @property
    def virtual_ps(self) -> int: ...

    @property
    def messages(self) -> int: ...

    @property
    def bytes(self) -> int: ...

    @property
    def trace_hash(self) -> int: ...

    @property
    def links(self) -> list[LinkUse]: ...

    @property
    def faults(self) -> FaultUse: ...

    @property
    def network(self) -> NetworkHistory | None: ...

    @property
    def warnings(self) -> list[str]: ...

class ObservationOptions:
    def __init__(self) -> None: ...

    @property
    def network_history(self) -> bool: ...

    @network_history.setter
    def network_history(self, arg: bool, /) -> None: ...

    @property
    def trace_path(self) -> str: ...

    @trace_path.setter
    def trace_path(self, arg: str, /) -> None: ...

class SessionOptions:
    def __init__(self) -> None: ...

    @property
    def observation(self) -> ObservationOptions: ...

    @observation.setter
    def observation(self, arg: ObservationOptions, /) -> None: ...

    @property
    def measure_compute(self) -> bool: ...

    @measure_compute.setter
    def measure_compute(self, arg: bool, /) -> None: ...

    @property
    def compute_scale(self) -> float: ...

    @compute_scale.setter
    def compute_scale(self, arg: float, /) -> None: ...

    @property
    def deadlock_wait_ms(self) -> int: ...

    @deadlock_wait_ms.setter
    def deadlock_wait_ms(self, arg: int, /) -> None: ...

    @property
    def startup_wait_ms(self) -> int: ...

    @startup_wait_ms.setter
    def startup_wait_ms(self, arg: int, /) -> None: ...

    @property
    def pin(self) -> bool: ...

    @pin.setter
    def pin(self, arg: bool, /) -> None: ...

    @property
    def output_fd(self) -> int: ...

    @output_fd.setter
    def output_fd(self, arg: int, /) -> None: ...

    @property
    def error_fd(self) -> int: ...

    @error_fd.setter
    def error_fd(self, arg: int, /) -> None: ...

class RankProcess:
    def __init__(self, process_id: int = 0, pmi_fd: int = -1, output_fd: int = -1, error_fd: int = -1) -> None: ...

class GoalSummary:
    @property
    def operations(self) -> int: ...

    @property
    def puts(self) -> int: ...

    @property
    def gets(self) -> int: ...

    @property
    def unreceived(self) -> int: ...

    @property
    def earlier(self) -> int: ...

    @property
    def unclosed(self) -> int: ...

def write_goal(fd: int, rank_count: int, heading: str, path: str) -> GoalSummary: ...

class Session:
    def __init__(self, description: MachineDescription, node_of_process: Sequence[int], options: SessionOptions) -> None: ...

    @property
    def mapping_path(self) -> str: ...

    def run(self, ranks: Sequence[RankProcess], launcher_id: int, interrupted: Callable[[], bool]) -> SessionReport: ...

class TrafficOptions:
    def __init__(self) -> None: ...

    @property
    def pattern(self) -> str: ...

    @pattern.setter
    def pattern(self, arg: str, /) -> None: ...

    @property
    def load(self) -> float: ...

    @load.setter
    def load(self, arg: float, /) -> None: ...

    @property
    def packet_flits(self) -> int: ...

    @packet_flits.setter
    def packet_flits(self, arg: int, /) -> None: ...

    @property
    def seed(self) -> int: ...

    @seed.setter
    def seed(self, arg: int, /) -> None: ...

    @property
    def warmup_cycles(self) -> int: ...

    @warmup_cycles.setter
    def warmup_cycles(self, arg: int, /) -> None: ...

    @property
    def measure_cycles(self) -> int: ...

    @measure_cycles.setter
    def measure_cycles(self, arg: int, /) -> None: ...

    @property
    def drain_cycles(self) -> int: ...

    @drain_cycles.setter
    def drain_cycles(self, arg: int, /) -> None: ...

class TrafficPoint:
    @property
    def offered(self) -> float: ...

    @property
    def accepted(self) -> float: ...

    @property
    def packet_latency_cycles(self) -> float: ...

    @property
    def network_latency_cycles(self) -> float: ...

    @property
    def min_latency_cycles(self) -> float: ...

    @property
    def max_latency_cycles(self) -> float: ...

    @property
    def hops(self) -> float: ...

    @property
    def is_saturated(self) -> bool: ...

    @property
    def packets(self) -> int: ...

    @property
    def link_flits(self) -> int: ...

    @property
    def cycles(self) -> int: ...

    @property
    def warnings(self) -> list[str]: ...

def traffic_patterns() -> list[str]: ...

def run_traffic(network: NetworkDescription, options: TrafficOptions) -> TrafficPoint: ...

class Workload(enum.Enum):
    halo = 0

    alltoall = 1

    allreduce = 2

    randomaccess = 3

    bisection = 4

class AllreduceAlgorithm(enum.Enum):
    ring = 0

    recursive_doubling = 1

    torus = 2

class WorkloadOptions:
    def __init__(self) -> None: ...

    @property
    def bytes(self) -> int: ...

    @bytes.setter
    def bytes(self, arg: int, /) -> None: ...

    @property
    def iterations(self) -> int: ...

    @iterations.setter
    def iterations(self, arg: int, /) -> None: ...

    @property
    def algorithm(self) -> AllreduceAlgorithm: ...

    @algorithm.setter
    def algorithm(self, arg: AllreduceAlgorithm, /) -> None: ...

    @property
    def grid(self) -> list[int]: ...

    @grid.setter
    def grid(self, arg: Sequence[int], /) -> None: ...

    @property
    def periodic(self) -> bool: ...

    @periodic.setter
    def periodic(self, arg: bool, /) -> None: ...

    @property
    def nodes(self) -> list[int]: ...

    @nodes.setter
    def nodes(self, arg: Sequence[int], /) -> None: ...

class WorkloadResult:
    @property
    def time_ps(self) -> int: ...

    @property
    def finish_ps(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    @property
    def messages(self) -> int: ...

    @property
    def payload_bytes(self) -> int: ...

    @property
    def links(self) -> list[LinkUse]: ...

def run_workload(description: MachineDescription, workload: Workload, options: WorkloadOptions) -> WorkloadResult: ...

any_rank: int = 4294967295

any_tag: int = 4294967295

class Time:
    @property
    def ps(self) -> int: ...

class Envelope:
    @property
    def source(self) -> int: ...

    @property
    def tag(self) -> int: ...

    @property
    def bytes(self) -> int: ...

class RankProgram:
    def __init__(self) -> None: ...

class RanksReport:
    @property
    def waited_ps(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    @property
    def computed_ps(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    @property
    def sends(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    @property
    def receives(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    @property
    def sent_bytes(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    @property
    def messages(self) -> int: ...

    @property
    def bytes(self) -> int: ...

    @property
    def trace_hash(self) -> int: ...

    @property
    def links(self) -> list[LinkUse]: ...

    @property
    def faults(self) -> FaultUse: ...

    @property
    def network(self) -> NetworkHistory | None: ...

    @property
    def warnings(self) -> list[str]: ...

class MessagePassing:
    def __init__(self, description: MachineDescription, node_of_rank: Sequence[int], program: RankProgram) -> None: ...

    def send(self, rank: int, operation: int, target: int, bytes: int, tag: int) -> None: ...

    def receive(self, rank: int, operation: int, source: int, tag: int) -> None: ...

    def compute(self, rank: int, operation: int, span_ps: int) -> None: ...

    def run(self) -> None: ...

    def clock_ps(self, rank: int) -> int: ...

    def unreceived(self, rank: int) -> Envelope | None: ...

    def report(self) -> RanksReport: ...

class GoalSchedule:
    @property
    def rank_count(self) -> int: ...

    @property
    def operation_count(self) -> int: ...

def read_goal(path: str) -> GoalSchedule: ...

def parse_goal(text: str, file: str) -> GoalSchedule: ...

class ReplayDeadlock(Exception):
    pass

class ReplayReport(RanksReport):
    @property
    def finish_ps(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    @property
    def operations(self) -> int: ...

def replay_goal(description: MachineDescription, node_of_rank: Sequence[int], schedule: GoalSchedule, observed: ObservationOptions) -> ReplayReport: ...
