from collections.abc import Callable, Sequence
import enum
from typing import Annotated

import numpy
from numpy.typing import NDArray

import apenet.base.errors


version: str = '0.1.0'

class NetworkPartitioned(apenet.base.errors.PartitionError):
    pass

class Dimension(enum.Enum):
    time = 0

    frequency = 1

    data_rate = 2

    work_rate = 3

    size = 4

    count = 5

class Unit:
    @property
    def suffix(self) -> str: ...

    @property
    def printed(self) -> str: ...

    @property
    def dimension(self) -> Dimension: ...

    @property
    def multiplier(self) -> int: ...

    @property
    def divisor(self) -> int: ...

def units() -> list[Unit]:
    """Every unit that a key may name."""

class FieldKind(enum.Enum):
    whole = 0

    measured = 1

    probability = 2

    choice = 3

    text = 4

    file = 5

class Field:
    @property
    def key(self) -> str: ...

    @property
    def kind(self) -> FieldKind: ...

    @property
    def unit(self) -> str: ...

    @property
    def meaning(self) -> str: ...

    @property
    def least(self) -> int: ...

    @property
    def most(self) -> int | None: ...

    @property
    def is_list(self) -> bool: ...

    @property
    def list_least(self) -> int: ...

    @property
    def list_most(self) -> int | None: ...

    @property
    def choices(self) -> list[str]: ...

    @property
    def is_optional(self) -> bool: ...

    @property
    def default_value(self) -> str: ...

class Section:
    @property
    def name(self) -> str: ...

    @property
    def fields(self) -> list[Field]: ...

    @property
    def tables(self) -> list[tuple[str, list[Field]]]: ...

class CardKind:
    @property
    def name(self) -> str: ...

    @property
    def has_network(self) -> bool: ...

    @property
    def has_bus(self) -> bool: ...

class CardSection:
    @property
    def kind(self) -> CardKind: ...

    @property
    def section(self) -> Section: ...

class TopologyKeys:
    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> list[str]: ...

    @property
    def allows(self) -> list[str]: ...

    @property
    def routings(self) -> list[str]: ...

    @property
    def links(self) -> list[str]: ...

class Schema:
    @property
    def sections(self) -> list[Section]: ...

    @property
    def cards(self) -> list[CardSection]: ...

    @property
    def topologies(self) -> list[TopologyKeys]: ...

def schema() -> Schema:
    """Every key that a machine file may have."""

class Engine(enum.Enum):
    packet = 0

    flit = 1

class NetworkDescription:
    pass

class MachineDescription:
    @property
    def network(self) -> NetworkDescription: ...

    @property
    def processes_per_node(self) -> int | None:
        """That can share a card; None: any number."""

    def base_units(self) -> dict[str, int | float | str | list[int]]:
        """What the machine is in base units, by the keys of its file."""

def describe(values: Sequence[tuple[str, int | float | str | Sequence[int] | Sequence[float]]], seed: int, engine: Engine, faults: Sequence[str]) -> MachineDescription:
    """
    The machine of these values, by their keys. Raises ValueError naming key, value and expectation.
    """

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

    @property
    def warnings(self) -> list[str]: ...

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
    def stall_timeout_ms(self) -> int: ...

    @stall_timeout_ms.setter
    def stall_timeout_ms(self, arg: int, /) -> None: ...

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

    @property
    def told_fd(self) -> int: ...

    @told_fd.setter
    def told_fd(self, arg: int, /) -> None: ...

    @property
    def tag_output(self) -> bool: ...

    @tag_output.setter
    def tag_output(self, arg: bool, /) -> None: ...

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

    def run(self, ranks: Sequence[RankProcess], launcher_id: int, warden_fd: int, interrupted: Callable[[], bool]) -> SessionReport: ...

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
    def face_bytes(self) -> list[int]: ...

    @face_bytes.setter
    def face_bytes(self, arg: Sequence[int], /) -> None: ...

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

    @property
    def warnings(self) -> list[str]: ...

def run_workload(description: MachineDescription, workload: Workload, options: WorkloadOptions) -> WorkloadResult: ...

any_rank: int = 4294967295

any_tag: int = 4294967295

end_of_time_ps: int = 9000000000000000000

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

    def send(self, rank: int, operation: int, target: int, bytes: int, tag: int, address: int) -> None: ...

    def receive(self, rank: int, operation: int, source: int, tag: int, address: int) -> None: ...

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

def read_goal(path: str, name: str) -> GoalSchedule: ...

def parse_goal(text: str, file: str) -> GoalSchedule: ...

class ReplayDeadlock(Exception):
    pass

class ReplayReport(RanksReport):
    @property
    def finish_ps(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    @property
    def operations(self) -> int: ...

def replay_goal(description: MachineDescription, node_of_rank: Sequence[int], schedule: GoalSchedule, observed: ObservationOptions) -> ReplayReport: ...
