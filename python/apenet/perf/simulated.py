"""Benchmarks without processes of the host: the engines alone, and scripted ranks over the card.

CPU seconds are those of the simulating thread, because numerical libraries start threads that spin for a moment. The
fastest of several runs counts, because other load only makes a run slower.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from apenet import _core
from apenet.perf.request import Figures, PerfRequest, peak_memory_bytes

PS_PER_US = 10**6
# Settings of card and buffers with which a message of 4 KiB is one packet and its DMA one burst (the longest that
# PCI-X allows). The buffers hold two such packets.
PACKETS_OF_4_KIB = (
    "card.max_payload_bytes=4096",
    "bus.max_burst_bytes=4096",
    "router.buffer_bytes=8224",
    "router.injection_buffer_bytes=8224",
    "router.ejection_buffer_bytes=8224",
)
PACKET_PAYLOAD_BYTES = 512
FAR_PERCENT = 20
# Keeps the six links of a node about half busy: 3.2 links per packet on average, 861 ns each (528 bytes at 613 MB/s).
PACKET_INTERVAL_PS = 1_000_000
FLIT_LOAD = 0.3
SMALL = "network.dims=[8,8,8]"
RUNS = 3
SMALL_RUNS = 15


@dataclass(frozen=True)
class Timed:
    """The work, and the CPU seconds of wiring and of the run."""

    work: _core.WorkDone
    wiring_s: float
    running_s: float

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds of both."""
        return self.wiring_s + self.running_s

    def details(self) -> dict[str, float]:
        """The values for the result's details."""
        return {
            "nodes": self.work.nodes,
            "messages": self.work.messages,
            "packets": self.work.packets,
            "hops": self.work.hops,
            "events": self.work.events,
            "virtual_us": self.work.virtual_ps / PS_PER_US,
            "wiring_cpu_seconds": self.wiring_s,
        }


def measure_packets(request: PerfRequest) -> Figures:
    """Hops of packets per CPU second, without cards and processes."""
    options = _core.PacketWorkOptions()
    options.packets_per_node = request.repeat
    options.payload_bytes = PACKET_PAYLOAD_BYTES
    options.far_percent = FAR_PERCENT
    options.interval_ps = PACKET_INTERVAL_PS
    description = request.read_machine().description()
    timed = _quickest(lambda: _timed(lambda: _core.PacketWork(description, options)))
    return Figures(timed.work.hops / timed.cpu_seconds, timed.cpu_seconds, peak_memory_bytes(), timed.details())


def measure_flits(request: PerfRequest) -> Figures:
    """Flits over links per CPU second, including generation and measurement of the traffic."""
    network = request.read_machine().description(engine="flit").network
    options = _core.TrafficOptions()
    options.load = FLIT_LOAD
    options.warmup_cycles = 0
    options.measure_cycles = request.repeat
    runs = []
    for _ in range(RUNS):
        begin = time.thread_time()
        point = _core.run_traffic(network, options)
        runs.append(time.thread_time() - begin)
    cpu_s = min(runs)
    nodes = _core.count_network_nodes(network)
    details: dict[str, float] = {
        "nodes": nodes,
        "messages": point.packets,
        "hops": point.link_flits,
        "packets": point.packets,
        "cycles": point.cycles,
    }
    return Figures(point.link_flits / cpu_s, cpu_s, peak_memory_bytes(), details)


def measure_halo(request: PerfRequest) -> Figures:
    """Messages per CPU second, from the scripts' posts to their completions."""
    timed = _quickest(lambda: _exchange(request))
    return Figures(timed.work.messages / timed.cpu_seconds, timed.cpu_seconds, peak_memory_bytes(), timed.details())


def measure_scale(request: PerfRequest) -> Figures:
    """CPU seconds of a large machine, and its cost per node relative to a small one."""
    small = PerfRequest(request.machine, (*request.settings, SMALL), request.repeat)
    small_s = _cost_per_node(_quickest(lambda: _exchange(small), runs=SMALL_RUNS))
    timed = _quickest(lambda: _exchange(request))
    details = timed.details() | {
        "us_per_node": _cost_per_node(timed) * 1e6,
        "us_per_node_8x8x8": small_s * 1e6,
        "cost_ratio": _cost_per_node(timed) / small_s,
        "budget_cost_ratio": 2,
    }
    return Figures(timed.cpu_seconds, timed.cpu_seconds, peak_memory_bytes(), details)


def _quickest(run: Callable[[], Timed], *, runs: int = RUNS) -> Timed:
    return min((run() for _ in range(runs)), key=lambda timed: timed.cpu_seconds)


def _cost_per_node(timed: Timed) -> float:
    return timed.cpu_seconds / timed.work.nodes


def _exchange(request: PerfRequest) -> Timed:
    options = _core.HaloWorkOptions()
    options.exchanges = request.repeat
    description = request.read_machine().description()
    return _timed(lambda: _core.HaloWork(description, options))


def _timed(make: Callable[[], _core.PacketWork | _core.HaloWork]) -> Timed:
    begin = time.thread_time()
    made = make()
    wired = time.thread_time()
    work = made.run()
    return Timed(work, wired - begin, time.thread_time() - wired)
