"""What is measured beside sweeps, and how all of it is measured in two processes."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing.queues import Queue
from typing import Any

from apenet import _core, bench
from apenet.bench.partitions import PartitionResult
from apenet.machine import machine as read_machine
from apenet.mapping import map_ranks
from apenet.reproduce.sweeps import Sweep

PROCESSES = 2


@dataclass(frozen=True, kw_only=True)
class Growth:
    """`apenet bench bisection --partitions`: one workload on ever larger machines."""

    machine: str
    test: str
    size: int
    partitions: tuple[int, ...]

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.machine}: {self.test} on up to {self.partitions[-1]} nodes"

    @property
    def weight(self) -> int:
        """How long it takes, roughly."""
        return self.partitions[-1]

    def measure(self) -> PartitionResult:
        """Runs it."""
        result = bench.measure(
            self.test, self.machine, sizes=[self.size], partitions=self.partitions, iterations=GROWTH_ITERATIONS
        )
        assert isinstance(result, PartitionResult)  # noqa: S101 (what partitions give)
        return result


GROWTH_ITERATIONS = 2


@dataclass(frozen=True)
class LinkLoads:
    """What a workload put on the links: of each name, the part of the time that it was busy, and its bytes."""

    time_us: float
    links: tuple[tuple[str, float, int], ...]


@dataclass(frozen=True, kw_only=True)
class LoadRun:
    """A workload of a whole machine, for the load of its links."""

    machine: str
    test: str
    size: int
    mapping: str
    title: str

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"{self.machine}: {self.title}"

    @property
    def weight(self) -> int:
        """How long it takes, roughly."""
        return 10

    def measure(self) -> LinkLoads:
        """Runs it."""
        machine = read_machine(self.machine)
        options = _core.WorkloadOptions()
        options.grid = list(machine.dims)
        options.bytes = self.size
        options.iterations = GROWTH_ITERATIONS
        options.nodes = map_ranks(machine, machine.node_count or 0, 1, self.mapping)
        result = _core.run_workload(machine.description(), getattr(_core.Workload, self.test), options)
        whole_ps = result.time_ps * options.iterations
        return LinkLoads(
            time_us=result.time_ps * 1e-6,
            links=tuple((link.name, link.busy_ps / whole_ps, link.wire_bytes) for link in result.links),
        )


Task = Sweep | Growth | LoadRun


def measure_all(wanted: Iterable[Task], progress: Callable[[Task], None]) -> dict[Task, Any]:
    """Measures in two processes, longest first, equal ones once; `progress` is told each that is done.

    Each is a simulation of its own: what comes out depends neither on the processes nor on their order.
    """
    tasks = sorted(dict.fromkeys(wanted), key=lambda task: -task.weight)
    done: dict[Task, Any] = {}
    # Spawned, not forked: a process of a simulation inherits nothing.
    context = multiprocessing.get_context("spawn")
    cores = context.Queue()
    for core in _cores():
        cores.put(core)
    with ProcessPoolExecutor(PROCESSES, context, initializer=_settle, initargs=(cores,)) as pool:
        running = {pool.submit(_measure, task): task for task in tasks}
        for future in as_completed(running):
            done[running[future]] = future.result()
            progress(running[future])
    return done


def _cores() -> list[set[int]]:
    """A core for each process: runs of MPI programs keep to one core, and would otherwise choose the same."""
    available = sorted(os.sched_getaffinity(0))
    return [{available[number % len(available)]} for number in range(PROCESSES)]


def _settle(cores: Queue[set[int]]) -> None:
    os.sched_setaffinity(0, cores.get())


def _measure(task: Task) -> Any:  # noqa: ANN401 (each kind has its own result)
    return task.measure()
