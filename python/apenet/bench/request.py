"""The request that all benchmarks share, and the options of each kind of test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from apenet.host.toolchain import MpiChoice
from apenet.machine import Machine


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
    """For layer mpi, as for `apenet.run`. `neighbors`: for fanout, numbers of receivers; None: from 1 to all."""

    neighbors: Sequence[int] | None
    mpi_library: MpiChoice
    pin: bool


class WorkloadOptions(TypedDict, total=False):
    """For workloads.

    `count`: use the first `count` nodes. `algorithm`: that of allreduce. `partitions`: numbers of nodes of the
    machines on which one size is measured. `lattice`: for halo, such as "64x64x64x192"; its surfaces, with
    `site_bytes` per site, are the messages.
    """

    count: int | None
    algorithm: str | None
    partitions: Sequence[int] | None
    lattice: str | None
    site_bytes: int


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
    "pin": True,
    "count": None,
    "algorithm": None,
    "partitions": None,
    "lattice": None,
    "site_bytes": DEFAULT_SITE_BYTES,
}
