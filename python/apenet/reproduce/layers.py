"""The latency that each layer of software adds: a table for each machine, with published latencies beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from apenet.bench.layer_table import LAYERS as NATIVE_LAYERS
from apenet.bench.layer_table import drives
from apenet.bench.result import BenchResult
from apenet.machine import Machine
from apenet.machine import machine as read_machine
from apenet.machine.published import PublishedResult
from apenet.reproduce.sweeps import Sweep

MACHINES = ("apenet-2004", "ape128", "apenetplus-v4", "apenetplus-v5", "extoll-64", "qpace")
SIZES = (32, 2048)


@dataclass(frozen=True)
class LayerRow:
    """A layer: times of SIZES, and what they are above those of the lowest layer. None: more than a message of it."""

    layer: str
    times_us: tuple[float | None, ...]
    over_us: tuple[float | None, ...]


@dataclass(frozen=True)
class LayerTable:
    """The layers of a machine, the lowest first."""

    machine: str
    title: str
    sizes_bytes: tuple[int, ...]
    rows: tuple[LayerRow, ...]
    published: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """For the report."""
        return asdict(self)


@dataclass(frozen=True)
class LayerPlan:
    """A table to make."""

    machine: str

    @property
    def sweeps(self) -> dict[str, Sweep]:
        """The ping-pong of each layer, by its name."""
        machine = read_machine(self.machine)
        native = {name: layer for name, layer in NATIVE_LAYERS.items() if drives(machine, name) and layer.tests}
        most = {name: layer.most_bytes for name, layer in native.items()}
        return {
            name: Sweep(
                self.machine,
                "pingpong",
                ",".join(str(size) for size in SIZES if size <= most.get(name, size)),
                layer=name,
            )
            for name in ("card", *native)
        }

    def table(self, measured: Mapping[Any, Any]) -> LayerTable:
        """The table of what has been measured."""
        machine = read_machine(self.machine)
        found = {name: _times(measured[sweep]) for name, sweep in self.sweeps.items()}
        lowest = found["card"]
        rows = []
        for name, times in found.items():
            over = (None if (time := times.get(size)) is None else time - lowest[size] for size in SIZES)
            rows.append(LayerRow(name, tuple(times.get(size) for size in SIZES), tuple(over)))
        return LayerTable(self.machine, machine.file.machine.title, SIZES, tuple(rows), tuple(_published(machine)))


def _times(result: BenchResult) -> dict[int, float]:
    return dict(zip(result.sizes_bytes.tolist(), result.times_us.tolist(), strict=True))


def _published(machine: Machine) -> list[str]:
    """The published latencies: a minimum, or one number at one size."""
    return [
        f"{key}: {_value(result)} us, {result.test}, layer {result.layer}"
        for key, result in machine.file.results.items()
        if result.quantity == "time_us" and result.test in ("pingpong", "roundtrip") and len(result.points) == 1
    ]


def _value(result: PublishedResult) -> str:
    sign = {"upper": "below ", "lower": "above "}.get(result.bound or "", "")
    return f"{sign}{result.value:g}" if isinstance(result.value, float | int) else str(result.value)
