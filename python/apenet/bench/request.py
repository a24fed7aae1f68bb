"""What every benchmark is asked for, and the options of each kind of test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from apenet.host.toolchain import MpiChoice
from apenet.machine import Machine


def no_progress(_size_bytes: int) -> None:
    """Nobody watches."""


@dataclass(frozen=True, kw_only=True)
class BenchRequest:
    """One test over message sizes, checked. `progress` is told each size before it is measured."""

    machine: Machine
    test: str
    sizes: Sequence[int]
    nodes: Sequence[int] | None = None
    iterations: int | None = None
    engine: str = "packet"
    seed: int = 1
    progress: Callable[[int], None] = no_progress


class CardOptions(TypedDict, total=False):
    """Of the card's own tests of two nodes: see `apenet.bench.card.Conditions`; `channels`: messages at once."""

    channels: int | Sequence[int]
    window: int | None
    memory: str
    path: str
    until: str
    region: int | None


class MpiOptions(TypedDict, total=False):
    """Of layer mpi, as those of `apenet.run`."""

    mpi_library: MpiChoice
    pin: bool


class WorkloadOptions(TypedDict, total=False):
    """Of workloads.

    `count`: the first so many nodes. `algorithm`: that of allreduce. `partitions`: one size on machines of so many
    nodes each. `lattice`: of halo, "64x64x64x192", whose surfaces with `site_bytes` a site are the messages.
    """

    count: int | None
    algorithm: str | None
    partitions: Sequence[int] | None
    lattice: str | None
    site_bytes: int


class Options(CardOptions, MpiOptions, WorkloadOptions, total=False):
    """All of them."""


DEFAULT_SITE_BYTES = 48  # a half-spinor in single precision
DEFAULTS: Options = {
    "channels": 1,
    "window": None,
    "memory": "host",
    "path": "auto",
    "until": "reply",
    "region": None,
    "mpi_library": "auto",
    "pin": True,
    "count": None,
    "algorithm": None,
    "partitions": None,
    "lattice": None,
    "site_bytes": DEFAULT_SITE_BYTES,
}
