"""The benchmark with real MPI processes: message_rate.c, compiled with this environment's mpicc."""

from __future__ import annotations

import os
import resource
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from apenet.base.errors import InputError
from apenet.host.toolchain import PACKAGE, compiled
from apenet.machine import Machine
from apenet.perf.request import Figures, PerfRequest
from apenet.run.program import run

SOURCE = PACKAGE / "programs" / "message_rate.c"
SAMPLE_EVERY_S = 0.05
PINGPONG_RANKS = 2
PINGPONGS_PER_EXCHANGE = 250  # so that both parts take about equally long
PINGPONG_BUDGET = 2e5
NEIGHBOURS = 6
LEAST_SHARE = 0.1  # multiple of the start-up cost, which varies by some percent between runs


@dataclass(frozen=True)
class Cost:
    """The cost of one run: wall time, and CPU time of this process and of the ranks."""

    wall_s: float
    simulator_s: float
    ranks_s: float

    @property
    def cpu_s(self) -> float:
        """CPU time of all processes."""
        return self.simulator_s + self.ranks_s

    def __sub__(self, other: Cost) -> Cost:
        return Cost(
            self.wall_s - other.wall_s,
            self.simulator_s - other.simulator_s,
            self.ranks_s - other.ranks_s,
        )


def measure_mpi(request: PerfRequest) -> Figures:
    """Messages per CPU second of all processes together, for a halo on every node and for a ping-pong.

    A run of one repetition measures the start-up, which is subtracted. Memory is the sum of the processes'
    proportional shares, sampled in that run. Raises InputError if the repetitions are too few compared with start-up.
    """
    machine = request.read_machine()
    ranks = machine.node_count or PINGPONG_RANKS
    with MemorySampler() as memory:
        startup = _run(machine, "halo", ranks, 1)
    halo = _run(machine, "halo", ranks, request.repeat + 1) - startup
    pings = request.repeat * PINGPONGS_PER_EXCHANGE
    pingpong_startup = _run(machine, "pingpong", PINGPONG_RANKS, 1)
    pingpong = _run(machine, "pingpong", PINGPONG_RANKS, pings + 1) - pingpong_startup
    for test, cost, start in (("halo", halo, startup), ("ping-pong", pingpong, pingpong_startup)):
        if cost.cpu_s < LEAST_SHARE * start.cpu_s:
            raise InputError(
                "repeat",
                request.repeat,
                f"more: the {test} took {max(cost.cpu_s, 0.0):.3f} CPU seconds, and start-up {start.cpu_s:.3f}, "
                "which varies by more than that",
            )
    messages = request.repeat * NEIGHBOURS * ranks
    return Figures(
        messages / halo.cpu_s,
        halo.cpu_s,
        memory.peak_bytes,
        {
            "nodes": ranks,
            "messages": messages,
            "simulator_cpu_seconds": halo.simulator_s,
            "ranks_cpu_seconds": halo.ranks_s,
            "wall_seconds": halo.wall_s,
            "startup_seconds": startup.wall_s,
            "startup_cpu_seconds": startup.cpu_s,
            "pingpong_messages": 2 * pings,
            "pingpong_messages_per_cpu_second": 2 * pings / pingpong.cpu_s,
            "budget_pingpong_messages_per_cpu_second": PINGPONG_BUDGET,
        },
    )


def _cpu_seconds(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def _run(machine: Machine, test: str, ranks: int, repetitions: int) -> Cost:
    command: list[str | Path] = [compiled(SOURCE), test, str(repetitions)]  # not a cost of the run
    simulator_s = _cpu_seconds(resource.RUSAGE_SELF)
    ranks_s = _cpu_seconds(resource.RUSAGE_CHILDREN)
    result = run(command, n=ranks, machine=machine, capture=True)
    return Cost(
        result.wall_time_s,
        _cpu_seconds(resource.RUSAGE_SELF) - simulator_s,
        _cpu_seconds(resource.RUSAGE_CHILDREN) - ranks_s,
    )


class MemorySampler:
    """Samples the memory of this process and its descendants; `peak_bytes` is the largest sum."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> MemorySampler:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            pids = [os.getpid()]
            for pid in pids:  # grows while it is searched: the ranks are the supervisor's children
                pids += self._children(pid)
            self.peak_bytes = max(self.peak_bytes, sum(map(self._share_bytes, pids)))
            if self._stop.wait(SAMPLE_EVERY_S):
                return

    @staticmethod
    def _children(pid: int) -> list[int]:
        try:
            tasks = list(Path(f"/proc/{pid}/task").iterdir())
            return [int(child) for task in tasks for child in (task / "children").read_text().split()]
        except OSError:  # it has ended
            return []

    @staticmethod
    def _share_bytes(pid: int) -> int:
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
        except OSError:
            pass  # it has ended
        return 0
