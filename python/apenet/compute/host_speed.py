"""The speed of one core of this host, and what it means for the time of a program on a simulated machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

from apenet import _core
from apenet.compute.profile import HostSpeed
from apenet.machine import Machine

IN_CACHE = (4, 4, 4, 4)
"""A quarter of a MiB: a second-level cache holds it."""
IN_MEMORY = (16, 16, 16, 32)
"""120 MiB: more than most last-level caches."""
RUNS = 5
MIB = 2**20
LEAST_RUN_S = 0.02


class SpeedMeter:
    """Measures the host, again and again: other load slows it down for a while."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        """`clock` gives CPU seconds of this thread."""
        self._clock = clock
        self._in_cache = _core.DslashWork(IN_CACHE)
        self._in_memory = _core.DslashWork(IN_MEMORY)
        self._in_cache_s: list[float] = []
        self._in_memory_s: list[float] = []
        for work in (self._in_cache, self._in_memory):
            work.apply()  # touches the memory

    def measure(self, runs: int) -> None:
        """Measures a number of times, a tenth of a second each."""
        for _ in range(runs):
            self._in_cache_s.append(self._seconds_per_site(self._in_cache))
            self._in_memory_s.append(self._seconds_per_site(self._in_memory))

    def _seconds_per_site(self, work: _core.DslashWork) -> float:
        begin = self._clock()
        repeats = 0
        while repeats == 0 or self._clock() - begin < LEAST_RUN_S:
            work.apply()
            repeats += 1
        return (self._clock() - begin) / (repeats * work.sites)

    def speed(self, chosen: Callable[[list[float]], float]) -> HostSpeed:
        """The speed; `chosen`: of the times, median or least."""
        flops, size = _core.DslashWork.flops_per_site, _core.DslashWork.bytes_per_site
        in_memory_s = chosen(self._in_memory_s)
        return HostSpeed(
            processor=processor_name(),
            flops_per_second=round(flops / in_memory_s),
            flops_per_second_in_cache=round(flops / chosen(self._in_cache_s)),
            bytes_per_second=round(size / in_memory_s),
        )


def measure_host(runs: int = RUNS) -> HostSpeed:
    """Measures it, in about a second: medians of several runs."""
    meter = SpeedMeter()
    meter.measure(runs)
    return meter.speed(statistics.median)


class Companion:
    """Measures the host at intervals while a recording runs. Other load only slows it down: the fastest counts."""

    def __init__(self, interval_s: float = 1.0) -> None:
        self._meter = SpeedMeter()
        self._meter.measure(1)
        self._interval_s = interval_s
        self._next_s = time.monotonic() + interval_s

    def measure_if_due(self) -> None:
        """Call often."""
        if time.monotonic() >= self._next_s:
            self._meter.measure(1)
            self._next_s = time.monotonic() + self._interval_s

    @property
    def speed(self) -> HostSpeed:
        """The speed in the best interval."""
        return self._meter.speed(min)


def processor_name() -> str:
    """The model of the host's processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return "unknown"


def slowdown(host: HostSpeed, machine: Machine) -> float:
    """The time of a program on a machine's CPU over its time on this host, both with their data in memory.

    The host does what the kernel reached. The machine sustains `host.flops_per_second`, unless its memory moves too few
    bytes for that: twice `host.copy_bandwidth_mib_s`, because a copy reads and writes.
    """
    described = machine.file.host
    bytes_per_second = 2 * described.copy_bandwidth_mib_s.value * MIB
    flops_per_byte = _core.DslashWork.flops_per_site / _core.DslashWork.bytes_per_site
    sustained = min(float(described.flops_per_second.value), float(bytes_per_second * flops_per_byte))
    return host.flops_per_second / sustained
