"""Sweeps: the measurements that published results need, each done once."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from typing import Any

from apenet import bench
from apenet.bench.lqcd_result import MachineScaling
from apenet.bench.result import BenchResult
from apenet.machine import machine as read_machine
from apenet.machine.published import PublishedResult


@dataclass(frozen=True)
class Sweep:
    """One `apenet bench`: a test of a machine with its conditions."""

    machine: str
    test: str
    sizes: str
    settings: tuple[str, ...] = ()
    layer: str = "card"
    channels: tuple[int, ...] = (1,)
    window: int | None = None
    memory: str = "host"
    path: str = "auto"
    until: str = "reply"
    region: int | None = None
    iterations: int | None = None
    n: int | None = None
    look_ahead: int | None = None
    ranks_per_node: int = 1
    active_messages: str | None = None
    conduit: str | None = None
    caches: str = "on"

    def measure(self) -> BenchResult:
        """Runs it on a machine of the package. Changed settings are checked here."""
        return bench.measure(self.test, read_machine(self.machine, self.settings), sizes=self.sizes, **self.options)

    @property
    def options(self) -> dict[str, Any]:
        """The options of the test that differ from the defaults."""
        options = fields(self)[len(("machine", "test", "sizes", "settings")) :]
        return {one.name: value for one in options if (value := getattr(self, one.name)) != one.default}

    @property
    def command(self) -> str:
        """The command line that does the same."""
        words = ["apenet", "bench", self.test, "--machine", self.machine, "--sizes", self.sizes]
        for setting in self.settings:
            words += ["--set", setting]
        for name, value in self.options.items():
            words.append("-n" if name == "n" else f"--{name.replace('_', '-')}")
            words.append(",".join(map(str, value)) if isinstance(value, tuple) else str(value))
        return shlex.join(words)

    @property
    def label(self) -> str:
        """A readable description."""
        return f"{self.machine}: {self.test}, layer {self.layer}"

    @property
    def weight(self) -> int:
        """A rough cost: MPI programs take longest, then many channels."""
        return 1000 if self.layer != "card" else len(self.channels)


@dataclass(frozen=True)
class Scaling:
    """One `apenet bench lqcd`: the lattice QCD program on a machine with each number of ranks."""

    machine: str
    lattice: str
    ranks: tuple[int, ...]
    scaling: str
    layer: str = "mpi"
    precision: str = "single"

    def measure(self) -> MachineScaling:
        """Runs it on a machine of the package."""
        (scaling,) = bench.lqcd(
            [self.machine],
            lattice=self.lattice,
            ranks=self.ranks,
            scaling=self.scaling,
            layer=self.layer,
            precision=self.precision,
        ).machines
        return scaling

    @property
    def label(self) -> str:
        """A readable description."""
        return f"{self.machine}: lqcd, {self.scaling} scaling"

    @property
    def weight(self) -> int:
        """As other programs, on more nodes."""
        return 10 * max(self.ranks)


def sweeps_of(machine: str, result: PublishedResult) -> list[Sweep]:
    """The sweep of a result's value, followed by the sweep for comparison, if any."""
    found = []
    for settings in (result.settings, result.against):
        if settings is not None:
            found.append(
                Sweep(
                    machine=machine,
                    settings=tuple(settings),
                    test=result.test,
                    layer=result.layer,
                    sizes=result.sizes,
                    channels=result.all_channels,
                    window=result.window,
                    memory=result.memory,
                    path=result.path,
                    until=result.until,
                    region=result.region_bytes,
                    iterations=result.iterations,
                )
            )
    return found
