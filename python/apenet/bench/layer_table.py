"""The layers of software over a card: what each one links, drives and tests."""

from __future__ import annotations

from dataclasses import dataclass

from apenet.base.sizes import LARGEST_BYTES
from apenet.bench import conduits
from apenet.machine import Machine

CARD = "card"
"""The layer of scripted ranks, which is below all of LAYERS."""
GASNET_LAYERS = ("gasnet", "upc")
PAIR_TESTS = ("pingpong", "pingping", "roundtrip", "oneway", "unidirectional", "bidirectional", "flush", "rate")
ACCESS_TESTS = ("put", "get")
PAIR = 2
HALO = "halo"
TNW = "tnw"
UDP = "udp"
MPI = "mpi"
ANY_CARD = ("apelink", "apelink-plus", "extoll", "fabric", "hca", "ideal", "tnw")
MPI_LARGEST_BYTES = 2**30  # counts of MPI calls are C ints


@dataclass(frozen=True)
class Layer:
    """Software over the card: its name for `apenet cc` (None: MPI), and the kinds of cards that it drives."""

    library: str | None
    cards: tuple[str, ...]
    most_bytes: int = LARGEST_BYTES
    """Of a message."""
    tests: tuple[str, ...] = (*PAIR_TESTS, HALO)


LAYERS = {
    "rdma": Layer("rdma", ("apelink", "apelink-plus"), tests=(*PAIR_TESTS, *ACCESS_TESTS, HALO)),
    "velo": Layer("extoll", ("extoll",)),
    "rma": Layer("extoll", ("extoll",), tests=(*PAIR_TESTS, "get", HALO)),
    TNW: Layer("tnw", ("tnw",), 2048),
    "apelib": Layer("apelib", ANY_CARD),
    UDP: Layer("udp", ANY_CARD, 65507, PAIR_TESTS),
    "gasnet": Layer("gasnet-seq", ANY_CARD, tests=(*PAIR_TESTS, *ACCESS_TESTS, HALO)),
    "upc": Layer("gasnet-seq", ANY_CARD, tests=()),
    MPI: Layer(None, ANY_CARD, MPI_LARGEST_BYTES),
}


def drives(machine: Machine, layer: str) -> bool:
    """Whether the layer exists on the machine: over its card, and udp with the kernel's costs."""
    if layer == UDP:
        return UDP in conduits.possible(machine)
    return machine.file.card.kind in LAYERS[layer].cards
