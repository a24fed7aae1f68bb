"""Network statistics of a run: links and queues over time, and packet latencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from apenet import _core

_PS_PER_US = 10**6
_LATENCY_BINS = 200  # up to 2^50 ps, eighteen minutes


@dataclass(frozen=True)
class LinkActivity:
    """One link over time: its busy share in each bin, and the queue in the buffers at its end."""

    name: str
    utilisation: np.ndarray
    peak_queue_bytes: int
    mean_queue_bytes: float


@dataclass(frozen=True)
class HopLatency:
    """Latency from injection to arrival of the packets that crossed `hops` links; bins with their lower bounds."""

    hops: int
    packets: int
    mean_us: float
    least_us: float
    most_us: float
    lower_bounds_us: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class NetworkActivity:
    """Network statistics in bins of virtual time; links without traffic are left out."""

    bin_us: float
    links: tuple[LinkActivity, ...]
    latency_by_hops: tuple[HopLatency, ...]

    def to_json(self) -> dict[str, Any]:
        """The contents of network.json."""
        return {
            "bin_us": self.bin_us,
            "links": [vars(link) | {"utilisation": link.utilisation.tolist()} for link in self.links],
            "latency_by_hops": [
                vars(entry) | {"lower_bounds_us": entry.lower_bounds_us.tolist(), "counts": entry.counts.tolist()}
                for entry in self.latency_by_hops
            ],
        }


def network_activity(history: _core.NetworkHistory, virtual_ps: int) -> NetworkActivity:
    """Converts the core's counts to the units of the results."""
    bounds_us = np.array([_core.HopLatency.lower_bound_ps(index) for index in range(_LATENCY_BINS)]) / _PS_PER_US
    latencies = []
    for entry in history.by_hops:
        counts = np.array(entry.counts)
        used = slice(int(np.flatnonzero(counts)[0]), int(np.flatnonzero(counts)[-1]) + 1)
        latencies.append(
            HopLatency(
                hops=entry.hops,
                packets=entry.packets,
                mean_us=round(entry.sum_ns / entry.packets / 1e3, 6),
                least_us=entry.least_ps / _PS_PER_US,
                most_us=entry.most_ps / _PS_PER_US,
                lower_bounds_us=bounds_us[used],
                counts=counts[used],
            )
        )
    # The last bin ends with the run.
    bins = max((len(link.busy_ps) for link in history.links), default=0)
    starts_ps = np.arange(bins) * history.bin_ps
    widths_ps = np.clip(virtual_ps - starts_ps, 1, history.bin_ps)
    links = tuple(
        LinkActivity(
            name=link.name,
            utilisation=np.round(np.minimum(np.array(link.busy_ps) / widths_ps, 1.0), 6),
            peak_queue_bytes=link.peak_queue_bytes,
            mean_queue_bytes=round(link.queue_byte_picoseconds / max(virtual_ps, 1), 3),
        )
        for link in history.links
    )
    return NetworkActivity(bin_us=history.bin_ps / _PS_PER_US, links=links, latency_by_hops=tuple(latencies))
