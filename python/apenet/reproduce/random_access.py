"""RandomAccess over the number of processes. The rates come with the package, because they take many minutes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, Literal, get_args

from apenet.bench.random_access import UPDATES_A_WORD, WORD_BYTES, RandomAccessResult
from apenet.machine import machine as read_machine
from apenet.machine.assumptions import matters
from apenet.machine.quantity import quantities
from apenet.reproduce.sweeps import Sweep
from apenet.reproduce.tasks import measure_all

MACHINES = ("extoll-64", "extoll-64-2d")
LAYERS = ("velo", "gasnet", "mpi")
PROCESSES = (16, 32, 64, 128, 256, 512, 1024)
TABLE_BYTES = 256
"""At each process, so 128 updates of each by the rules. Every update is a message of its own."""
NODES = 64
CORES = 16

Placement = Literal["filled", "spread"]
"""Placement of the processes: 16 on each of the first nodes, or as few on a node as possible."""


@dataclass(frozen=True)
class Access:
    """One run."""

    machine: str
    layer: str
    placement: Placement
    processes: int

    @property
    def label(self) -> str:
        """The measurement's name for people."""
        return f"{self.machine}: randomaccess, layer {self.layer}, {self.processes} processes"

    @property
    def weight(self) -> int:
        """Its rough duration, relative to others."""
        return self.processes

    def measure(self) -> float:
        """Runs it: updates a second."""
        result = Sweep(
            self.machine,
            "randomaccess",
            str(TABLE_BYTES),
            layer=self.layer,
            n=self.processes,
            ranks_per_node=CORES if self.placement == "filled" else max(1, self.processes // NODES),
            look_ahead=1,
        ).measure()
        assert isinstance(result, RandomAccessResult)  # noqa: S101 (the type of this test)
        return float(result.rates_per_s[0])


@dataclass(frozen=True)
class AccessCurve:
    """The shipped rates of one machine and layer."""

    machine: str
    layer: str
    placement: Placement = "filled"

    @property
    def label(self) -> str:
        """The measurement's name for people."""
        return f"{self.machine}: randomaccess, layer {self.layer}, of the package"

    @property
    def weight(self) -> int:
        """Its rough duration, relative to others."""
        return 0

    def measure(self) -> AccessRates:
        """Reads them."""
        place = (self.machine, self.layer, self.placement)
        return AccessRates({processes: rate_of(Access(*place, processes)) for processes in PROCESSES})


@dataclass(frozen=True)
class AccessRates:
    """Updates a second, by the number of processes."""

    rates: dict[int, float]
    protocol_step: str = ""

    @property
    def columns(self) -> dict[str, list[int] | list[float]]:
        """As those of a benchmark."""
        return {
            "processes": list(self.rates),
            "million_updates_s": [rate * 1e-6 for rate in self.rates.values()],
        }


def measure_rates(begin: Callable[[int], None], finished: Callable[[Access, Any], None]) -> dict[str, Any]:
    """Measures all rates; the object that `apenet reproduce --random-access --json` prints, and that is shipped."""
    runs = _runs()
    begin(len(runs))
    rates = measure_all(runs, finished)
    return {
        "table_bytes": TABLE_BYTES,
        "updates": UPDATES_A_WORD * TABLE_BYTES // WORD_BYTES,
        "look_ahead": 1,
        "machines": [{"name": name, "digest": parameters_digest(name)} for name in MACHINES],
        "rates": [{**vars(run), "updates_per_s": round(rates[run])} for run in runs],
    }


def _runs() -> list[Access]:
    """With the largest number of processes all nodes are full, however they are placed."""
    return [
        Access(machine, layer, placement, count)
        for machine in MACHINES
        for placement in get_args(Placement)
        for layer in LAYERS
        for count in PROCESSES
        if placement == "filled" or count < NODES * CORES
    ]


def parameters_digest(machine: str) -> str:
    """A digest of the machine's numbers, which decide the rates together with the models."""
    given = quantities(read_machine(machine).file)
    parameters = [(key, one.value) for key, one in given if matters(key, with_sockets=False)]
    return hashlib.sha256(json.dumps(parameters).encode()).hexdigest()[:16]


@cache
def shipped_rates() -> dict[str, Any]:
    """The rates that come with the package."""
    found: dict[str, Any] = json.loads(resources.files(__package__).joinpath("random_access.json").read_bytes())
    return found


@cache
def _rates() -> dict[Access, float]:
    return {
        Access(row["machine"], row["layer"], row["placement"], row["processes"]): float(row["updates_per_s"])
        for row in shipped_rates()["rates"]
    }


def rate_of(run: Access) -> float:
    """The shipped rate of a run, in updates a second."""
    if run.processes == NODES * CORES:
        run = replace(run, placement="filled")
    return _rates()[run]
