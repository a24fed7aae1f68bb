"""What a benchmark returns, as arrays, as JSON and as a table in the habit of the OSU micro-benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAIR_DEFINITIONS = {
    "pingpong": "message and reply of the same size; time is half the round trip",
    "roundtrip": "message and reply of the same size; time is the whole round trip",
    "oneway": "messages one after another, one closing reply; time is that of one message: a gap, not a latency",
    "unidirectional": "windows of messages in one direction; time is that of one message",
    "bidirectional": "both sides send and receive at once; bandwidth is that of both directions together",
}
WORKLOAD_DEFINITIONS = {
    "halo": "every node to both neighbours in each dimension; bandwidth is what one node sends",
    "allreduce": "a vector of this size, reduced over all nodes; bandwidth is size over time",
    "alltoall": "every node to every other one; bandwidth is what one node sends",
    "randomaccess": "random pairs exchange, new ones each time; bandwidth is what one node sends",
    "bisection": "one half exchanges with its mirror image in the other; bandwidth is that across the cut, both ways",
}
DEFINITIONS = {**PAIR_DEFINITIONS, **WORKLOAD_DEFINITIONS}
PAIR_TESTS = tuple(PAIR_DEFINITIONS)
WORKLOADS = tuple(WORKLOAD_DEFINITIONS)
TESTS = tuple(DEFINITIONS)


@dataclass(frozen=True)
class BenchResult:
    """One sweep over message sizes: three arrays of the same length. MiB = 2^20 bytes."""

    machine: str
    test: str
    layer: str
    seed: int
    version: str
    sizes_bytes: NDArray[np.int64]
    times_us: NDArray[np.float64]
    bandwidths_mib_s: NDArray[np.float64]

    @property
    def heading(self) -> str:
        """First line of the table."""
        return f"APENet {self.version}: {self.test} on {self.machine}, layer {self.layer}, seed {self.seed}"

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet bench --json` prints."""
        return {
            "machine": self.machine,
            "test": self.test,
            "layer": self.layer,
            "seed": self.seed,
            "version": self.version,
            "points": [
                {"size_bytes": int(size), "time_us": float(time), "bandwidth_mib_s": float(bandwidth)}
                for size, time, bandwidth in zip(self.sizes_bytes, self.times_us, self.bandwidths_mib_s, strict=True)
            ],
        }

    def to_table(self) -> str:
        """Header lines, then a size column and value columns."""
        lines = [
            f"# {self.heading}",
            f"# {DEFINITIONS[self.test]}",
            f"# {'Size (B)':<12}{'Time (us)':>14}{'Bandwidth (MiB/s)':>20}",
        ]
        lines += [
            f"{size:<14}{time:>14.3f}{bandwidth:>20.2f}"
            for size, time, bandwidth in zip(self.sizes_bytes, self.times_us, self.bandwidths_mib_s, strict=True)
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class WorkloadResult(BenchResult):
    """The same for a workload of the whole machine. Time is that of one iteration: the latest node's end over all."""

    grid: tuple[int, ...]
    iterations: int
    algorithm: str | None
    messages: NDArray[np.int64]
    payload_bytes: NDArray[np.int64]
    finish_us: NDArray[np.float64]
    """When each node had done all iterations: one row a size, one column a node."""

    @property
    def heading(self) -> str:
        """First line of the table."""
        algorithm = f" ({self.algorithm})" if self.algorithm else ""
        shape = "x".join(map(str, self.grid))
        return (
            f"APENet {self.version}: {self.test}{algorithm} on {self.machine}, {shape} nodes, layer {self.layer}, "
            f"{self.iterations} iterations, seed {self.seed}"
        )

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet bench --json` prints; `messages` and `payload_bytes` are those of all iterations."""
        content = super().to_json()
        points = content.pop("points")
        for point, messages, payload_bytes in zip(points, self.messages, self.payload_bytes, strict=True):
            point |= {"messages": int(messages), "payload_bytes": int(payload_bytes)}
        content |= {"nodes": int(np.prod(self.grid)), "grid": list(self.grid), "iterations": self.iterations}
        if self.algorithm:
            content["algorithm"] = self.algorithm
        return {**content, "points": points}


def make_result(
    machine: str, test: str, layer: str, seed: int, version: str, points: list[tuple[int, float, float]]
) -> BenchResult:
    """A result from (size in bytes, time in us, bandwidth in MiB/s)."""
    return BenchResult(
        machine=machine,
        test=test,
        layer=layer,
        seed=seed,
        version=version,
        sizes_bytes=np.array([point[0] for point in points], dtype=np.int64),
        times_us=np.array([point[1] for point in points], dtype=np.float64),
        bandwidths_mib_s=np.array([point[2] for point in points], dtype=np.float64),
    )
