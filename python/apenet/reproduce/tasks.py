"""What is measured beside sweeps, and how all of it is measured in two processes."""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext
from typing import Any

from apenet import _core, bench
from apenet.base.errors import ApenetError, HostError
from apenet.bench.partitions import PartitionResult
from apenet.host import parent
from apenet.machine import machine as read_machine
from apenet.machine.mapping import map_ranks
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
    left = sorted(dict.fromkeys(wanted), key=lambda task: -task.weight)
    done: dict[Task, Any] = {}
    with _workers(min(PROCESSES, len(left))) as workers:
        idle = list(workers)
        while left or len(idle) < len(workers):
            while left and idle:
                idle.pop().begin(left.pop(0))
            ready = wait([worker.connection for worker in workers if worker.task is not None])
            for worker in (worker for worker in workers if worker.connection in ready):
                task, measured = worker.end()
                done[task] = measured
                progress(task)
                idle.append(worker)
    return done


class _Worker:
    """A process that measures one task after the other."""

    def __init__(self, context: SpawnContext, cores: set[int]) -> None:
        self.connection, theirs = context.Pipe()
        self.task: Task | None = None
        self.process = context.Process(target=_measure_each, args=(theirs, os.getpid(), cores), daemon=True)
        self.process.start()
        theirs.close()

    def begin(self, task: Task) -> None:
        """Gives it a task."""
        self.task = task
        self.connection.send(task)

    def end(self) -> tuple[Task, Any]:
        """Its task, and what came of it. Raises HostError when nothing did."""
        task, self.task = self.task, None
        assert task is not None  # noqa: S101 (it is busy)
        try:
            measured, trouble = self.connection.recv()
        except EOFError as error:
            self.process.join()
            raise HostError(f"{task.label}: its process ended with status {self.process.exitcode}") from error
        if trouble:
            raise HostError(f"{task.label}: {trouble}")
        return task, measured


@contextmanager
def _workers(count: int) -> Iterator[list[_Worker]]:
    """Processes that are gone behind this, whatever ends it, and with this process, whatever ends that.

    They need neither locks nor a queue, whose semaphores a killed process would leave behind.
    """
    # Spawned, not forked: a process of a simulation inherits nothing.
    context = multiprocessing.get_context("spawn")
    available = sorted(os.sched_getaffinity(0))
    workers: list[_Worker] = []
    resource_tracker.ensure_running()  # else its start would let the signals through
    try:
        # Ctrl-C in a terminal reaches all processes: this one ends the workers.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
        try:
            # A core for each: runs of MPI programs keep to one core, and would otherwise choose the same.
            workers += (_Worker(context, {available[number % len(available)]}) for number in range(count))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield workers
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.join()
            worker.connection.close()


def _measure_each(connection: Connection, parent_id: int, cores: set[int]) -> None:
    """What a worker does."""
    parent.end_with(parent_id)
    os.sched_setaffinity(0, cores)
    while True:
        task: Task = connection.recv()
        try:
            answer: tuple[Any, str] = (task.measure(), "")
        except ApenetError as error:
            answer = (None, str(error))
        except Exception:  # said where the task was given
            answer = (None, traceback.format_exc())
        connection.send(answer)
