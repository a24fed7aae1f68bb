"""Workers of a sweep: processes here, of an MPI job, or of a Dask cluster in a batch queue."""

from __future__ import annotations

import multiprocessing
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from importlib import import_module
from multiprocessing.process import BaseProcess
from typing import Any

from apenet.base.errors import HostError, InputError

LOCAL = "local"
MPI = "mpi"
QUEUES = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "htcondor": "HTCondorCluster"}
"""Batch systems, and the class of dask-jobqueue that speaks with each."""

OPTION = "--on"
EXPECTED = f"{LOCAL}, {MPI}, {', '.join(QUEUES)}, or a Dask scheduler's address such as tcp://head:8786"
MOST_WORKERS = 100_000
_CONNECT_S = 15


class Workers(ABC):
    """Gives executors, one after another: the next one after a worker of the one before has died."""

    count: int

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def start(self) -> Executor:
        """An executor with living workers. Raises HostError."""

    def stop(self) -> None:  # noqa: B027 (not all have to)
        """Gives the executor back. What it has not begun is not begun any more."""

    def discard(self) -> None:
        """As `stop`, for an executor that has lost a worker."""
        self.stop()

    def why_idle(self) -> str:
        """Why nothing can be computed now: no worker is there. Empty if one is."""
        return ""

    def close(self) -> None:  # noqa: B027
        """Ends all workers that this object has started."""


class LocalWorkers(Workers):
    """Processes of this host."""

    def __init__(self, count: int, prepare: Callable[[int], None]) -> None:
        self.count = count
        self._prepare = prepare
        self._pool: ProcessPoolExecutor | None = None
        self._others: list[BaseProcess] = []

    def start(self) -> Executor:
        """A new pool."""
        context = multiprocessing.get_context("spawn")
        self._others = multiprocessing.active_children()
        self._pool = ProcessPoolExecutor(
            self.count, mp_context=context, initializer=self._prepare, initargs=(os.getpid(),)
        )
        return self._pool

    def stop(self) -> None:
        """Waits until the processes have ended."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def discard(self) -> None:
        """Ends all processes first: the pool forgets one that it starts while it notices the loss of another."""
        if self._pool is not None:
            for process in self._processes():
                process.terminate()
            self.stop()

    def close(self) -> None:
        """Ends simulations that still run: the sweep could not go on, or has been interrupted."""
        self.discard()

    def _processes(self) -> list[BaseProcess]:
        return [process for process in multiprocessing.active_children() if process not in self._others]


class MpiWorkers(Workers):
    """The other ranks of the MPI job in which the command runs: `mpiexec -n 9 python -m mpi4py.futures -m apenet`."""

    def __init__(self) -> None:
        from mpi4py.futures import MPIPoolExecutor, _core  # noqa: PLC0415 (it begins MPI)

        if _core.SharedPool is None:  # else the executor would start processes of its own
            expected = "a command under mpiexec: mpiexec -n 9 python -m mpi4py.futures -m apenet sweep --on mpi ..."
            raise InputError(OPTION, MPI, expected)
        self._pool = MPIPoolExecutor()
        self.count = max(1, self._pool.num_workers)

    def start(self) -> Executor:
        """All of them."""
        return self._pool

    def close(self) -> None:
        """Waits for the simulations that run."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class DaskWorkers(Workers):
    """The workers of a Dask scheduler, which gives the points of a lost one to others."""

    def __init__(self, address: str | None = None, queue: str | None = None, count: int = 1) -> None:
        distributed = _imported("distributed")
        self._jobs = "" if queue is None else f"none of the {count} jobs for {queue} runs yet"
        self._cluster = None if queue is None else _queue_cluster(queue, count)
        try:
            self._client = distributed.Client(self._cluster or address, timeout=_CONNECT_S)
        except (OSError, ValueError, TypeError) as error:
            self._close_cluster()
            raise HostError(f"{OPTION} {queue or address}: no Dask scheduler answers: {error}") from error
        self.count = count if queue is not None else max(1, len(self._client.nthreads()))

    def start(self) -> Executor:
        """All workers."""
        executor: Executor = self._client.get_executor(pure=False)
        return executor

    def why_idle(self) -> str:
        """The jobs wait in their queue, or the scheduler has no worker."""
        if self._client.nthreads():
            return ""
        return self._jobs or f"the Dask scheduler {self._client.scheduler.address} has no worker"

    def close(self) -> None:
        """Leaves the scheduler, and ends the jobs of a queue."""
        self._client.close()
        self._close_cluster()

    def _close_cluster(self) -> None:
        if self._cluster is not None:
            self._cluster.close()


def _queue_cluster(queue: str, count: int) -> Any:  # noqa: ANN401 (dask-jobqueue has no types)
    """Jobs of one worker each; what they ask for stands in dask-jobqueue's own configuration."""
    jobqueue = _imported("dask_jobqueue")
    try:
        cluster = getattr(jobqueue, QUEUES[queue])()
    except (OSError, ValueError, TypeError) as error:
        raise HostError(f"{OPTION} {queue}: {error} (see dask-jobqueue's configuration, ~/.config/dask)") from error
    cluster.scale(jobs=count)
    return cluster


def _imported(name: str) -> Any:  # noqa: ANN401
    try:
        return import_module(name)
    except ImportError as error:
        package = name.replace("_", "-")
        raise InputError(OPTION, package, f"an installed {package}: pip install {package}") from error


def workers(on: str, count: int | None, prepare: Callable[[int], None]) -> Workers:
    """Workers of the place that `--on` names. `prepare` prepares a process here, and gets the id of this one.

    Raises InputError for another text, HostError if there are none.
    """
    cores = len(os.sched_getaffinity(0))
    if count is not None and not 1 <= count <= MOST_WORKERS:
        raise InputError("--workers", count, f"a number from 1 to {MOST_WORKERS}")
    if on == LOCAL:
        return LocalWorkers(count or cores, prepare)
    if on in QUEUES:
        if count is None:
            raise InputError("--workers", "", f"the number of jobs for {on}")
        return DaskWorkers(queue=on, count=count)
    if count is not None:
        raise InputError("--workers", count, f"none with {OPTION} {on}, which has its workers")
    if on == MPI:
        return MpiWorkers()
    if "://" not in on and ":" not in on:
        raise InputError(OPTION, on, EXPECTED)
    return DaskWorkers(address=on)
