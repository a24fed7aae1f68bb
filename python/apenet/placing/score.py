"""The score of a placement: how far the bytes travel, and how much the busiest link carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from apenet import _core
from apenet.machine import Machine
from apenet.placing.traffic import Integers, RankTraffic


@dataclass(frozen=True)
class Score:
    """Hop-bytes are the links that each message crosses times its bytes, summed up.

    Dilation is the number of links between two ranks that communicate: its mean weighted by bytes, and its maximum.
    `link_bytes` has the bytes of each link, of which `busiest` has the most.
    """

    hop_bytes: float
    mean_dilation: float
    largest_dilation: float
    largest_link_bytes: float
    busiest: str
    non_neighbour_bytes: int
    bytes_by_hops: dict[int, int]
    link_bytes: npt.NDArray[np.float64]

    def is_as_good_as(self, other: Score) -> bool:
        """Whether neither hop-bytes nor the load of the busiest link is larger."""
        return self.hop_bytes <= other.hop_bytes and self.largest_link_bytes <= other.largest_link_bytes

    def to_json(self) -> dict[str, Any]:
        """The numbers by which placements are compared."""
        return {
            "hop_bytes": self.hop_bytes,
            "mean_dilation": self.mean_dilation,
            "largest_dilation": self.largest_dilation,
            "largest_link_bytes": self.largest_link_bytes,
            "busiest_link": self.busiest,
            "non_neighbour_bytes": self.non_neighbour_bytes,
        }


def score(machine: Machine, traffic: RankTraffic, nodes: Integers) -> Score:
    """Scores a placement by the machine's own routing. Ranks on one node are at distance 0.

    Raises MachineError for a routing whose packets take detours at random.
    """
    senders, receivers = nodes[traffic.senders], nodes[traffic.receivers]
    sent = traffic.sent_bytes
    try:
        loads = _core.link_loads(machine.description().network, senders.tolist(), receivers.tolist(), sent.tolist())
    except ValueError as error:
        raise machine.refused(error) from error
    hops = np.array(loads.hops)
    total = int(sent.sum())
    by_hops: dict[int, int] = {}
    for count, part in zip(np.rint(hops).astype(int), sent, strict=True):
        by_hops[int(count)] = by_hops.get(int(count), 0) + int(part)
    links = np.array(loads.bytes)
    hop_bytes = float(hops @ sent) if total else 0.0
    return Score(
        hop_bytes=hop_bytes,
        mean_dilation=hop_bytes / total if total else 0.0,
        largest_dilation=float(hops.max(initial=0.0)),
        largest_link_bytes=float(links.max(initial=0.0)),
        busiest=loads.busiest,
        non_neighbour_bytes=sum(part for count, part in by_hops.items() if count > 1),
        bytes_by_hops=dict(sorted(by_hops.items())),
        link_bytes=links,
    )
