"""The simulator's own speed and memory on this host, which determine the feasible size of simulations; and the host's.

`apenet.perf.measure("halo")`; the same as `apenet perf halo`. Every benchmark runs in a fresh process, so that its
memory is measured separately. It measures CPU seconds and not wall time, because other load affects them least. The
simulated quantities (nodes, messages, packets, hops, events, virtual time) are the same on every host.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from apenet._core import version as __version__
from apenet.base.errors import FailedError, InputError, from_core
from apenet.base.numbers import whole
from apenet.perf import simulated
from apenet.perf.host import measure_speed
from apenet.perf.processes import measure_mpi
from apenet.perf.request import Figures, PerfRequest

__all__ = ["BENCHMARKS", "Benchmark", "PerfError", "PerfResult", "measure"]

MIB = 2**20
MOST_REPEATED = 10**7


class PerfError(FailedError):
    """A benchmark failed; the message contains its output."""


@dataclass(frozen=True)
class Benchmark:
    """One benchmark: description, what its figure counts, the goal on a 2-core test machine, and the function."""

    title: str
    counts: str
    unit: str
    budget: float | None  # None: a property of the host, not a goal
    budget_memory_mib: int
    machine: str
    settings: tuple[str, ...]
    repeat: int  # the unit that the benchmark repeats: cycles, exchanges, or measurements
    measure: Callable[[PerfRequest], Figures]


# The command and the tests take their benchmarks from these entries.
BENCHMARKS = {
    "flit": Benchmark(
        title="flit engine alone: uniform traffic of 1-flit packets, 4 virtual channels of 8 flits, 30 % of capacity",
        counts="flits that cross a link, over CPU time with wiring, generation and measurement; median of 5 runs",
        unit="link-flit-hops per CPU second",
        budget=2e7,
        budget_memory_mib=300,
        machine="iq-router-v1",
        settings=("network.dims=[8,8,8]",),
        repeat=4000,
        measure=simulated.measure_flits,
    ),
    "packet": Benchmark(
        title="packet engine alone: uniform traffic of 512 bytes, 30 % of capacity",
        counts="packets that cross a link, over CPU time with wiring, generation and measurement; median of 5 runs",
        unit="packet-hops per CPU second",
        budget=5e6,
        budget_memory_mib=300,
        machine="ape128",
        settings=("network.dims=[16,16,16]",),
        repeat=100_000,
        measure=simulated.measure_packets,
    ),
    "halo": Benchmark(
        title="6-neighbour halo exchange of 4 KiB in one packet, scripted processes over the APELink card",
        counts="messages delivered, over CPU time with wiring; median of 5 runs",
        unit="messages per CPU second",
        budget=5e5,
        budget_memory_mib=200,
        machine="ape128",
        settings=("network.dims=[16,16,16]", *simulated.PACKETS_OF_4_KIB),
        repeat=30,
        measure=simulated.measure_halo,
    ),
    "scale": Benchmark(
        title="one such halo exchange on 110 592 nodes, including wiring",
        counts="CPU time of wiring and exchange; median of 5 runs, of the small machine 15",
        unit="CPU seconds",
        budget=60,
        budget_memory_mib=8192,
        machine="ape128",
        settings=("network.dims=[48,48,48]", *simulated.PACKETS_OF_4_KIB),
        repeat=1,
        measure=simulated.measure_scale,
    ),
    "mpi": Benchmark(
        title="6-neighbour halo exchange of 4 KiB, 64 MPI processes",
        counts="messages delivered, over CPU time of all processes without start-up; a single run",
        unit="messages per CPU second",
        budget=1.5e5,
        budget_memory_mib=8192,
        machine="ape128",
        settings=("network.dims=[4,4,4]",),
        repeat=200,
        measure=measure_mpi,
    ),
    "host": Benchmark(
        title="a Wilson-Dirac kernel on one core, its fields in memory; times on the machines over those here",
        counts="floating-point operations of the kernel, over CPU time; median of `--repeat` runs",
        unit="floating-point operations per second",
        budget=None,
        budget_memory_mib=300,
        machine="ideal",
        settings=(),
        repeat=5,
        measure=measure_speed,
    ),
}


@dataclass(frozen=True)
class PerfResult:
    """The result of a benchmark's median run. `details`: exact counts of the simulated work, times, and the spread."""

    name: str
    figure: float
    unit: str
    budget: float | None
    memory_mib: float
    budget_memory_mib: int
    cpu_seconds: float
    machine: str
    settings: tuple[str, ...]
    details: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet perf --json` prints."""
        fields = {name: value for name, value in vars(self).items() if name != "details"}
        return {**fields, "settings": list(self.settings), "version": __version__, **self.details}


def measure(name: str, *, settings: Sequence[str] = (), repeat: int | None = None) -> PerfResult:
    """Runs one benchmark in a separate process.

    `settings` change its machine, such as `network.dims=[8,8,8]`; `repeat` sets the amount of work. Raises InputError
    for invalid input, PerfError if the process fails.
    """
    if name not in BENCHMARKS:
        raise InputError("name", name, "one of " + ", ".join(BENCHMARKS))
    if repeat is not None:
        repeat = whole("repeat", repeat, 1, MOST_REPEATED, f"a whole number from 1 to {MOST_REPEATED}")
    benchmark = BENCHMARKS[name]
    request = PerfRequest(benchmark.machine, (*benchmark.settings, *settings), repeat or benchmark.repeat)
    request.read_machine()  # refuses bad input here, with a clear error
    command = [sys.executable, "-m", "apenet.perf", name, str(request.repeat), *request.settings]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise PerfError(f"the benchmark {name} failed with status {done.returncode}:\n{done.stderr.strip()}")
    said = json.loads(done.stdout)
    if "refused" in said:
        raise from_core(ValueError(said["refused"]))
    return PerfResult(
        name=name,
        figure=said["figure"],
        unit=benchmark.unit,
        budget=benchmark.budget,
        memory_mib=said["memory_mib"],
        budget_memory_mib=benchmark.budget_memory_mib,
        cpu_seconds=said["cpu_seconds"],
        machine=request.machine,
        settings=request.settings,
        details=said["details"],
    )


def run_here(name: str, repeat: int, settings: Sequence[str]) -> dict[str, Any]:
    """The child's part of `measure`: returns the result, or the input error."""
    benchmark = BENCHMARKS[name]
    try:
        figures = benchmark.measure(PerfRequest(benchmark.machine, tuple(settings), repeat))
    except (ValueError, InputError) as error:
        return {"refused": str(error)}
    return {
        "figure": figures.figure,
        "cpu_seconds": figures.cpu_seconds,
        "memory_mib": figures.memory_bytes / MIB,
        "details": figures.details,
    }
