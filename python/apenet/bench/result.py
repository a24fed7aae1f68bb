"""What a benchmark returns, as arrays, as JSON and as a table in the habit of the OSU micro-benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

DEFINITIONS = {
    "pingpong": "message and reply of the same size; time is half the round trip",
    "roundtrip": "message and reply of the same size; time is the whole round trip",
    "oneway": "messages one after another, one closing reply; time is that of one message: a gap, not a latency",
    "unidirectional": "windows of messages in one direction; time is that of one message",
    "bidirectional": "both sides send and receive at once; bandwidth is that of both directions together",
}
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
            f"# APENet {self.version}: {self.test} on {self.machine}, layer {self.layer}, seed {self.seed}",
            f"# {DEFINITIONS[self.test]}",
            f"# {'Size (B)':<12}{'Time (us)':>14}{'Bandwidth (MiB/s)':>20}",
        ]
        lines += [
            f"{size:<14}{time:>14.3f}{bandwidth:>20.2f}"
            for size, time, bandwidth in zip(self.sizes_bytes, self.times_us, self.bandwidths_mib_s, strict=True)
        ]
        return "\n".join(lines)


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
