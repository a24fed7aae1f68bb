"""Measurements other than sweeps, and the two worker processes that run all measurements."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
import traceback
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext
from typing import Any, Generic, Protocol, TypeVar

from apenet import _core, bench
from apenet.base.errors import ApenetError, HostError
from apenet.base.tempfolder import temporary_folder
from apenet.bench.partitions import PartitionResult
from apenet.host import parent
from apenet.machine import machine as read_machine
from apenet.machine.mapping import map_ranks

PROCESSES = 2


@dataclass(frozen=True, kw_only=True)
class Growth:
    """`apenet bench bisection --partitions`: one workload on increasingly large machines."""

    machine: str
    test: str
    size: int
    partitions: tuple[int, ...]

    @property
    def label(self) -> str:
        """The measurement's name for people."""
        return f"{self.machine}: {self.test} on up to {self.partitions[-1]} nodes"

    @property
    def weight(self) -> int:
        """Its rough duration, relative to others."""
        return self.partitions[-1]

    def measure(self) -> PartitionResult:
        """Runs it."""
        result = bench.measure(
            self.test, self.machine, sizes=[self.size], partitions=self.partitions, iterations=GROWTH_ITERATIONS
        )
        assert isinstance(result, PartitionResult)  # noqa: S101 (the type that partitions return)
        return result


GROWTH_ITERATIONS = 2


@dataclass(frozen=True)
class LinkLoads:
    """The load of the links by a workload: busy share of the time and bytes of each link."""

    time_us: float
    links: tuple[tuple[str, float, int], ...]


@dataclass(frozen=True, kw_only=True)
class LoadRun:
    """A workload of a whole machine, run for its link loads."""

    machine: str
    test: str
    size: int
    mapping: str
    title: str

    @property
    def label(self) -> str:
        """The measurement's name for people."""
        return f"{self.machine}: {self.title}"

    @property
    def weight(self) -> int:
        """Its rough duration, relative to others."""
        return 10

    def measure(self) -> LinkLoads:
        """Runs it."""
        machine = read_machine(self.machine)
        options = _core.WorkloadOptions()
        options.grid = list(machine.dims)
        options.bytes = self.size
        options.rounds = GROWTH_ITERATIONS
        options.nodes = map_ranks(machine, machine.node_count or 0, 1, self.mapping)
        result = _core.run_workload(machine.description(), _core.workload(self.test), options)
        whole_ps = result.time_ps * options.rounds
        return LinkLoads(
            time_us=result.time_ps * 1e-6,
            links=tuple((link.name, link.busy_ps / whole_ps, link.wire_bytes) for link in result.links),
        )


class Task(Hashable, Protocol):
    """A measurement for a worker process. It is pickled, like its result."""

    @property
    def label(self) -> str:
        """The measurement's name for people."""

    @property
    def weight(self) -> int:
        """Its rough duration, relative to others."""

    def measure(self) -> Any:  # noqa: ANN401 (each kind has a result of its own)
        """Runs it."""


Measuring = TypeVar("Measuring", bound=Task)


def measure_all(wanted: Iterable[Measuring], finished: Callable[[Measuring, Any], None]) -> dict[Measuring, Any]:
    """Measures in two processes: longest tasks first, equal tasks once; calls `finished` with each and its result.

    The simulations are independent, so the results do not depend on the processes or on the order.
    """
    left = sorted(dict.fromkeys(wanted), key=lambda task: -task.weight)
    done: dict[Measuring, Any] = {}
    with _workers(min(PROCESSES, len(left))) as workers:
        idle: list[_Worker[Measuring]] = list(workers)
        while left or len(idle) < len(workers):
            while left and idle:
                idle.pop().begin(left.pop(0))
            ready = wait([worker.connection for worker in workers if worker.task is not None])
            for worker in (worker for worker in workers if worker.connection in ready):
                task, measured = worker.end()
                done[task] = measured
                finished(task, measured)
                idle.append(worker)
    return done


class _Worker(Generic[Measuring]):
    """A process that measures one task after another."""

    def __init__(self, context: SpawnContext, cores: set[int], temporary: str) -> None:
        self.connection, theirs = context.Pipe()
        self.task: Measuring | None = None
        self.process = context.Process(target=_measure_each, args=(theirs, os.getpid(), cores, temporary), daemon=True)
        self.process.start()
        theirs.close()

    def begin(self, task: Measuring) -> None:
        """Gives it a task."""
        self.task = task
        self.connection.send(task)

    def end(self) -> tuple[Measuring, Any]:
        """Its task and the result. Raises HostError if the process ended without one."""
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
def _workers(count: int) -> Iterator[list[_Worker[Any]]]:
    """Worker processes that end with this context, and with this process, however either ends.

    They use no locks and no queue, because a killed process would leave their semaphores behind, and put their
    temporary files into a folder of this process.
    """
    # Spawned, not forked, so that a worker inherits no state.
    context = multiprocessing.get_context("spawn")
    available = sorted(os.sched_getaffinity(0))
    workers: list[_Worker[Any]] = []
    resource_tracker.ensure_running()  # otherwise its start would unblock the signals
    with temporary_folder() as temporary:
        try:
            with _no_interruption():
                # One core per worker: a run of an MPI program stays on one core, and two runs could choose the same.
                cores = [{available[number % len(available)]} for number in range(count)]
                workers += (_Worker(context, core, str(temporary)) for core in cores)
            yield workers
        finally:
            for worker in workers:
                worker.process.kill()
                worker.process.join()
                worker.connection.close()


@contextmanager
def _no_interruption() -> Iterator[None]:
    """Holds signals back until its end. Processes started in it ignore them for good.

    Ctrl-C in a terminal reaches all processes; this process ends the workers. A signal that another thread takes (of
    numpy's library) would still run its Python handler in this one, so the mask alone does not suffice.
    """
    held: list[int] = []
    numbers = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    is_main = threading.current_thread() is threading.main_thread()  # only it may change handlers, and runs them
    handlers = {number: signal.getsignal(number) for number in numbers} if is_main else {}
    caught = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in caught:
        signal.signal(number, lambda number, _frame: held.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        for number, handler in caught.items():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if held:
            signal.raise_signal(held[0])


def _measure_each(connection: Connection, parent_id: int, cores: set[int], temporary: str) -> None:
    """The main function of a worker."""
    parent.end_with(parent_id)
    tempfile.tempdir = temporary
    os.sched_setaffinity(0, cores)
    while True:
        task: Task = connection.recv()
        try:
            answer: tuple[Any, str] = (task.measure(), "")
        except ApenetError as error:
            answer = (None, str(error))
        except Exception:  # reported by the process that gave the task
            answer = (None, traceback.format_exc())
        connection.send(answer)
