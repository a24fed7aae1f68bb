"""The simulator's own speed: messages a second of wall time, with real MPI processes, and what they cost.

    .venv/bin/python bench/message_rate.py [--seconds S] [--only RANKS]

2 processes play ping-pong with 8 bytes; more exchange 4 KiB with six neighbours on a torus. Start-up is measured by a
run of one repetition and taken off. Memory is the sum of the processes' proportional shares, sampled in a run of its
own. Numbers of one host are comparable with each other only.
"""

import argparse
import os
import resource
import threading
from dataclasses import dataclass
from pathlib import Path

import apenet
from apenet.toolchain import compiled

PROGRAM = Path(__file__).with_name("mpi") / "message_rate.c"
SAMPLE_EVERY_S = 0.05
MIB = 2**20


@dataclass(frozen=True)
class Traffic:
    ranks: int
    test: str
    machine: str
    settings: tuple[str, ...]
    messages_per_repetition: int
    expected_rate: int  # messages a second, for choosing the number of repetitions


TRAFFICS = (
    Traffic(2, "pingpong", "ape16", (), 2, 150_000),
    Traffic(16, "halo", "ape16", (), 6 * 16, 60_000),
    Traffic(64, "halo", "ape128", ("network.dims=[4,4,4]",), 6 * 64, 60_000),
    Traffic(128, "halo", "ape128", (), 6 * 128, 60_000),
)


@dataclass(frozen=True)
class Cost:
    """Of one run: wall time, and CPU time of this process and of the ranks."""

    wall_s: float
    simulator_s: float
    ranks_s: float

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(
            self.wall_s - other.wall_s,
            self.simulator_s - other.simulator_s,
            self.ranks_s - other.ranks_s,
        )


def cpu_seconds(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def run(traffic: Traffic, repetitions: int) -> Cost:
    machine = apenet.machine(traffic.machine, traffic.settings)
    simulator_s = cpu_seconds(resource.RUSAGE_SELF)
    ranks_s = cpu_seconds(resource.RUSAGE_CHILDREN)
    command = [compiled(PROGRAM), traffic.test, str(repetitions)]
    result = apenet.run(command, n=traffic.ranks, machine=machine, capture=True)
    if not result.ok:
        raise SystemExit(f"message_rate with {traffic.ranks} ranks failed: {result.message}")
    return Cost(
        result.wall_time_s,
        cpu_seconds(resource.RUSAGE_SELF) - simulator_s,
        cpu_seconds(resource.RUSAGE_CHILDREN) - ranks_s,
    )


class MemorySampler:
    """Watches this process and its children; `peak_mib` is the largest sum that it saw."""

    def __init__(self) -> None:
        self.peak_mib = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "MemorySampler":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(SAMPLE_EVERY_S):
            pids = [os.getpid(), *self._children()]
            self.peak_mib = max(self.peak_mib, sum(map(self._share_bytes, pids)) / MIB)

    @staticmethod
    def _children() -> list[int]:
        tasks = Path(f"/proc/{os.getpid()}/task")
        return [int(pid) for task in tasks.iterdir() for pid in (task / "children").read_text().split()]

    @staticmethod
    def _share_bytes(pid: int) -> int:
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    return int(line.split()[1]) * 1024
        except OSError:
            pass  # it has ended
        return 0


def measure(traffic: Traffic, seconds: float) -> str:
    repetitions = max(2, round(seconds * traffic.expected_rate / traffic.messages_per_repetition))
    startup = run(traffic, 1)
    cost = run(traffic, repetitions + 1) - startup
    with MemorySampler() as memory:
        run(traffic, max(1, repetitions // 10))
    messages = repetitions * traffic.messages_per_repetition
    cpu_s = cost.simulator_s + cost.ranks_s
    return (
        f"{traffic.ranks:9d}  {traffic.test:8s}  {messages:9d}  {messages / cost.wall_s:10.0f}  "
        f"{messages / cpu_s:14.0f}  {cost.simulator_s:11.2f}  {cost.ranks_s:7.2f}  {startup.wall_s:10.2f}  "
        f"{memory.peak_mib:12.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Messages a second of the simulator, with real MPI processes")
    parser.add_argument("--seconds", type=float, default=5.0, help="about how long each measurement lasts")
    parser.add_argument("--only", type=int, help="measure with this number of processes")
    options = parser.parse_args()
    chosen = [traffic for traffic in TRAFFICS if options.only in (None, traffic.ranks)]
    if not chosen:
        parser.error(f"--only = {options.only}: expected {', '.join(str(t.ranks) for t in TRAFFICS)}")
    print("processes  traffic    messages  messages/s  messages/CPU s  simulator s  ranks s  start-up s  peak mem MiB")
    for traffic in chosen:
        print(measure(traffic, options.seconds), flush=True)


if __name__ == "__main__":
    main()
