"""The request that all benchmarks share, and the options of each kind of test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from apenet.host.mpi_library import MpiChoice
from apenet.machine import Machine

ACTIVE_MESSAGES = ("improved", "first")
"""The implementations of Active Messages of GASNet's conduit for EXTOLL, the default first."""


def no_progress(_size_bytes: int) -> None:
    """Ignores progress."""


@dataclass(frozen=True, kw_only=True)
class BenchRequest:
    """One test over message sizes, with checked values. `progress` is called with each size before its measurement."""

    machine: Machine
    test: str
    sizes: Sequence[int]
    nodes: Sequence[int] | None = None
    iterations: int | None = None
    engine: str = "packet"
    seed: int = 1
    progress: Callable[[int], None] = no_progress
    active_messages: str | None = None
    """For layers gasnet and upc, one of ACTIVE_MESSAGES."""
    conduit: str | None = None
    """For layers gasnet and upc, one of `apenet.bench.conduits`; None: the machine's."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the processes of a program."""
        given = {"GASNET_EXTOLL_AM": self.active_messages, "GASNET_CONDUIT": self.conduit}
        return {name: value for name, value in given.items() if value is not None}


class CardOptions(TypedDict, total=False):
    """For the card's own tests of two nodes: see `apenet.bench.card.Conditions`; `channels`: simultaneous messages.

    `window` and `memory` also at layer mpi.
    """

    channels: int | Sequence[int]
    window: int | None
    memory: str
    path: str
    until: str
    region: int | None


class MpiOptions(TypedDict, total=False):
    """For layers with programs, as for `apenet.run`.

    `neighbors`: for fanout, numbers of receivers; None: from 1 to all. For layers gasnet and upc `active_messages`,
    one of ACTIVE_MESSAGES, and `conduit`, one of `apenet.bench.conduits`.
    """

    neighbors: Sequence[int] | None
    mpi_library: MpiChoice
    pin: bool | None
    active_messages: str | None
    conduit: str | None


class WorkloadOptions(TypedDict, total=False):
    """For workloads.

    `count`: use the first `count` nodes. `algorithm`: that of allreduce. `partitions`: numbers of nodes of the
    machines on which one size is measured. `lattice`: for halo, such as "64x64x64x192"; its surfaces, with
    `site_bytes` per site, are the messages. For randomaccess, `look_ahead`: updates that a
    process may hold back, and `ranks_per_node`: processes on each node.
    """

    count: int | None
    algorithm: str | None
    partitions: Sequence[int] | None
    lattice: str | None
    site_bytes: int
    look_ahead: int | None
    ranks_per_node: int


class Options(CardOptions, MpiOptions, WorkloadOptions, total=False):
    """The options of all kinds."""


DEFAULT_SITE_BYTES = 48  # a half-spinor in single precision
DEFAULTS: Options = {
    "channels": 1,
    "window": None,
    "memory": "host",
    "path": "auto",
    "until": "reply",
    "region": None,
    "neighbors": None,
    "mpi_library": "auto",
    "pin": None,
    "active_messages": None,
    "conduit": None,
    "count": None,
    "algorithm": None,
    "partitions": None,
    "lattice": None,
    "site_bytes": DEFAULT_SITE_BYTES,
    "look_ahead": None,
    "ranks_per_node": 1,
}
