"""The results of a benchmark as arrays, as JSON, and as a table in the style of the OSU micro-benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apenet._core import version as __version__
from apenet.base.gather import gather_warnings
from apenet.bench.request import MachineRequest, Traits

# Columns of a table after the size: title, width, format.
_TABLE = {
    "channels": ("Channels", 10, ""),
    "neighbors": ("Neighbours", 12, ""),
    "time_us": ("Time (us)", 14, ".3f"),
    "bandwidth_mib_s": ("Bandwidth (MiB/s)", 20, ".2f"),
    "rate_per_s": ("", 21, ".0f"),
    "bisection_percent": ("Of bisection (%)", 18, ".1f"),
    "algorithm": ("Algorithm", 16, ""),
}
_TITLES = {"node": "A node (MiB/s)", "vector": "Vector (MiB/s)", "cut": "Across (MiB/s)"}


@dataclass(frozen=True)
class BenchResult:
    """One sweep over message sizes, for each number of channels: arrays of one length. MiB = 2^20 bytes."""

    machine: str
    traits: Traits
    layer: str
    seed: int
    version: str
    sizes_bytes: NDArray[np.int64]
    times_us: NDArray[np.float64]
    bandwidths_mib_s: NDArray[np.float64]
    channels: NDArray[np.int64]
    """Simultaneous messages of this size: time and bandwidth are those of all of them."""
    conditions: Mapping[str, object] = field(default_factory=dict, kw_only=True)
    """Other conditions of the request: rail, caches, engine, active_messages, conduit, window, memory, path, until,
    region_bytes."""
    warnings: tuple[str, ...] = field(default=(), kw_only=True)
    """The warnings of all points, each once."""
    eager_limit_bytes: int | None = field(default=None, kw_only=True)
    """At layer mpi: the largest message that is sent eagerly; larger ones use a rendezvous."""

    @property
    def test(self) -> str:
        """The test's name."""
        return self.traits.test

    @property
    def rates_per_s(self) -> NDArray[np.float64] | None:
        """Messages per second; None for tests whose time is not a gap between messages."""
        if not self.traits.is_stream:
            return None
        at_once = self.channels if self.traits.counts_channels else 1
        return np.asarray(at_once * 1e6 / self.times_us, dtype=np.float64)

    @property
    def heading(self) -> str:
        """First line of the table."""
        conditions = "".join(f", {name} {value}" for name, value in self.conditions.items())
        return f"APENet {self.version}: {self.test} on {self.machine}, layer {self.layer}{conditions}, seed {self.seed}"

    @property
    def protocol_step(self) -> str:
        """Says where the curve passes the eager limit; empty if it does not."""
        limit = self.eager_limit_bytes
        if limit is None or not self.sizes_bytes.min() <= limit < self.sizes_bytes.max():
            return ""
        return f"MPI on {self.machine}: eager up to {limit} bytes, rendezvous above"

    @property
    def bandwidth_of(self) -> str | None:
        """The owner of a workload's bandwidth: `node`, `vector` or `cut`; None for tests of two nodes."""
        return self.traits.bandwidth_of

    @property
    def columns(self) -> dict[str, list[int] | list[float] | list[str]]:
        """The points' fields, by their names in JSON."""
        columns: dict[str, list[int] | list[float] | list[str]] = {
            "size_bytes": self.sizes_bytes.tolist(),
            "time_us": self.times_us.tolist(),
            "bandwidth_mib_s": self.bandwidths_mib_s.tolist(),
            "channels": self.channels.tolist(),
        }
        rates = self.rates_per_s
        if rates is not None:
            columns["rate_per_s"] = rates.tolist()
        return columns

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet bench --json` prints."""
        return {
            "machine": self.machine,
            "test": self.test,
            "layer": self.layer,
            "seed": self.seed,
            "version": self.version,
            **self.conditions,
            **({"eager_limit_bytes": self.eager_limit_bytes} if self.eager_limit_bytes is not None else {}),
            **({"bandwidth_of": self.bandwidth_of} if self.bandwidth_of is not None else {}),
            **({"warnings": list(self.warnings)} if self.warnings else {}),
            "points": [
                dict(zip(self.columns, point, strict=True)) for point in zip(*self.columns.values(), strict=True)
            ],
        }

    def to_table(self) -> str:
        """Header lines, then a size column and value columns."""
        columns = self.columns
        shown = {name: column for name, column in _TABLE.items() if name in columns}
        if self.bandwidth_of is not None:
            shown["bandwidth_mib_s"] = (_TITLES[self.bandwidth_of], *_TABLE["bandwidth_mib_s"][1:])
        if set(columns.get("channels", ())) <= {1}:
            shown.pop("channels", None)
        if self.traits.rate_title is None:
            shown.pop("rate_per_s", None)
        else:
            shown["rate_per_s"] = (self.traits.rate_title, *_TABLE["rate_per_s"][1:])
        heads = "".join(f"{title:>{width}}" for title, width, _ in shown.values())
        lines = [f"# {self.heading}", f"# {self.traits.definition}"]
        lines += [f"# {self.protocol_step}"] if self.protocol_step else []
        lines.append(f"# {'Size (B)':<12}{heads}")
        for number, size in enumerate(self.sizes_bytes):
            values = "".join(f"{columns[name][number]:>{width}{form}}" for name, (_, width, form) in shown.items())
            lines.append(f"{size:<14}{values}")
        lines += [f"# warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)


@dataclass(frozen=True)
class WorkloadResult(BenchResult):
    """A sweep of a whole-machine workload. Time is that of one iteration: the last node's end over the iterations."""

    grid: tuple[int, ...]
    iterations: int
    algorithm: str | None
    face_bytes: tuple[int, ...]
    """For a lattice: bytes of the messages along each dimension of the grid; otherwise empty."""
    messages: NDArray[np.int64]
    payload_bytes: NDArray[np.int64]
    finish_us: NDArray[np.float64]
    """When each node had completed all iterations: one row per size, one column per node."""
    algorithms: tuple[str, ...] = field(default=(), kw_only=True)
    """The algorithm for each size; empty strings for a workload without a choice."""
    bisection_percent: NDArray[np.float64] | None = field(default=None, kw_only=True)
    """An exchange of all with all: its time if the links across the middle of the grid were always busy, headers
    included, relative to the simulated time. None elsewhere."""

    @property
    def columns(self) -> dict[str, list[int] | list[float] | list[str]]:
        """The points' fields, by their names in JSON."""
        columns = super().columns
        if self.bisection_percent is not None:
            columns["bisection_percent"] = self.bisection_percent.tolist()
        if len(set(self.algorithms)) > 1 or (self.algorithm and self.algorithm not in self.algorithms):
            columns["algorithm"] = list(self.algorithms)
        return columns

    @property
    def heading(self) -> str:
        """First line of the table."""
        algorithm = f" ({self.algorithm})" if self.algorithm else ""
        shape = "x".join(map(str, self.grid))
        faces = f" ({', '.join(map(str, self.face_bytes))} bytes along each)" if self.face_bytes else ""
        conditions = "".join(f", {name} {value}" for name, value in self.conditions.items())
        return (
            f"APENet {self.version}: {self.test}{algorithm}{faces} on {self.machine}, {shape} nodes, "
            f"layer {self.layer}{conditions}, {self.iterations} iterations, seed {self.seed}"
        )

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet bench --json` prints; `messages` and `payload_bytes` are those of all iterations."""
        content = super().to_json()
        points = content.pop("points")
        for point in points:
            del point["channels"]
        for point, messages, payload_bytes in zip(points, self.messages, self.payload_bytes, strict=True):
            point |= {"messages": int(messages), "payload_bytes": int(payload_bytes)}
        content |= {"nodes": int(np.prod(self.grid)), "grid": list(self.grid), "iterations": self.iterations}
        if self.algorithm:
            content["algorithm"] = self.algorithm
        if self.face_bytes:
            content["face_bytes"] = list(self.face_bytes)
        return {**content, "points": points}


def make_result(
    request: MachineRequest[Any],
    layer: str,
    points: list[tuple[int, float, float]],
    *,
    channels: list[int] | None = None,
    conditions: Mapping[str, object] | None = None,
    warnings: Iterable[Iterable[str]] = (),
) -> BenchResult:
    """A result from (size in bytes, time in us, bandwidth in MiB/s); `channels` of each point default to one.

    `warnings` are those of each point.
    """
    eager_limit = request.simulated.file.software.mpi.eager_limit_bytes if layer == "mpi" else None
    return BenchResult(
        machine=request.simulated.name,
        traits=request.traits,
        layer=layer,
        seed=request.seed,
        version=__version__,
        sizes_bytes=np.array([point[0] for point in points], dtype=np.int64),
        times_us=np.array([point[1] for point in points], dtype=np.float64),
        bandwidths_mib_s=np.array([point[2] for point in points], dtype=np.float64),
        channels=np.array(channels or [1] * len(points), dtype=np.int64),
        conditions={**request.common_conditions, **(conditions or {})},
        warnings=gather_warnings(warnings),
        eager_limit_bytes=None if eager_limit is None else int(eager_limit.value),
    )
