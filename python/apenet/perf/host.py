"""The speed of this host with a Wilson-Dirac kernel, beside the CPUs of the machines."""

from __future__ import annotations

import time

from apenet.compute.host_speed import measure_host, slowdown
from apenet.machine import machines
from apenet.perf.request import Figures, PerfRequest, peak_memory_bytes


def measure_speed(request: PerfRequest) -> Figures:
    """Floating-point operations per second from memory; for each machine, its time over this host's.

    The medians of `request.repeat` measurements.
    """
    begin = time.thread_time()
    speed = measure_host(request.repeat)
    details = {
        "flops_per_second_in_cache": speed.flops_per_second_in_cache,
        "bytes_per_second": speed.bytes_per_second,
        **{f"time_on_{machine.name}_over_here": slowdown(speed, machine) for machine in machines()},
    }
    return Figures(speed.flops_per_second, time.thread_time() - begin, peak_memory_bytes(), details)
