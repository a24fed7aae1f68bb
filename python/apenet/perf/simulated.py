"""Benchmarks without processes of the host: the engines alone, and scripted ranks over the card.

CPU seconds are those of the simulating thread, because numerical libraries start threads that spin for a moment. The
figure is that of the median run; the details give the fastest and the slowest.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

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
MESSAGE_BYTES = 4096
PACKET_FLITS = 66  # ape128: 512 bytes, and 16 of header and footer
# Share of what the network carries: uniform traffic crosses a ring of 8 nodes or fewer at one flit per node and flit
# time, a longer one at 8 / nodes (Dally and Towles, chapter 3.3).
SHARE = 0.3
FULL_RING = 8
SMALL = "network.dims=[8,8,8]"
RUNS = 5
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


def measure_flits(request: PerfRequest) -> Figures:
    """Flits over links per CPU second, including generation and measurement of the traffic."""
    return _measure_traffic(request, "flit", 1)


def measure_packets(request: PerfRequest) -> Figures:
    """Packets over links per CPU second, likewise."""
    return _measure_traffic(request, "packet", PACKET_FLITS)


def _measure_traffic(request: PerfRequest, engine: str, packet_flits: int) -> Figures:
    machine = request.read_machine()
    network = machine.description(engine=engine).network
    options = _core.TrafficOptions()
    options.packet_flits = packet_flits
    options.load = SHARE * min(1, FULL_RING / max(machine.dims, default=1))
    options.warmup_cycles = 0
    options.measure_cycles = request.repeat
    runs = []
    for _ in range(RUNS):
        begin = time.thread_time()
        point = _core.run_traffic(network, options)
        runs.append(time.thread_time() - begin)
    cpu_s = statistics.median(runs)
    hops = point.link_flits // options.packet_flits
    details: dict[str, float] = {
        "nodes": _core.count_network_nodes(network),
        "load": options.load,
        "accepted": point.accepted,
        "packet_latency_cycles": point.packet_latency_cycles,
        "messages": point.packets,
        "hops": hops,
        "packets": point.packets,
        "cycles": point.cycles,
    }
    return Figures(hops / cpu_s, cpu_s, peak_memory_bytes(), details | _spread([hops / run for run in runs]))


def measure_halo(request: PerfRequest) -> Figures:
    """Messages per CPU second, from the scripts' posts to their completions."""
    runs = _repeat(lambda: _exchange(request))
    return _figures(runs, lambda timed: timed.work.messages / timed.cpu_seconds)


def measure_scale(request: PerfRequest) -> Figures:
    """CPU seconds of a large machine, and its cost per node relative to a small one."""
    small = PerfRequest(request.machine, (*request.settings, SMALL), request.repeat)
    small_s = _cost_per_node(_median(_repeat(lambda: _exchange(small), runs=SMALL_RUNS)))
    runs = _repeat(lambda: _exchange(request))
    timed = _median(runs)
    details = {
        "us_per_node": _cost_per_node(timed) * 1e6,
        "us_per_node_8x8x8": small_s * 1e6,
        "cost_ratio": _cost_per_node(timed) / small_s,
        "budget_cost_ratio": 2,
    }
    figures = _figures(runs, lambda timed: timed.cpu_seconds)
    return replace(figures, details=figures.details | details)


def _repeat(run: Callable[[], Timed], *, runs: int = RUNS) -> list[Timed]:
    return [run() for _ in range(runs)]


def _median(runs: list[Timed]) -> Timed:
    return sorted(runs, key=lambda timed: timed.cpu_seconds)[len(runs) // 2]


def _figures(runs: list[Timed], figure_of: Callable[[Timed], float]) -> Figures:
    timed = _median(runs)
    spread = _spread([figure_of(run) for run in runs])
    return Figures(figure_of(timed), timed.cpu_seconds, peak_memory_bytes(), timed.details() | spread)


def _spread(figures: list[float]) -> dict[str, float]:
    return {"runs": len(figures), "least_figure": min(figures), "most_figure": max(figures)}


def _cost_per_node(timed: Timed) -> float:
    return timed.cpu_seconds / timed.work.nodes


def _exchange(request: PerfRequest) -> Timed:
    machine = request.read_machine()
    options = _core.WorkloadOptions()
    options.bytes = MESSAGE_BYTES
    options.rounds = request.repeat
    options.grid = machine.dims
    description, halo = machine.description(), _core.workload("halo")
    begin = time.thread_time()
    run = _core.WorkloadWork(description, halo, options)
    wired = time.thread_time()
    work = run.run()
    return Timed(work, wired - begin, time.thread_time() - wired)
