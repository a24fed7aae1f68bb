"""The layers of software over a card: what each one links, drives and tests."""

from __future__ import annotations

from dataclasses import dataclass

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
MPI_LARGEST_BYTES = 2**30  # counts of MPI calls are C ints
MOST_PROGRAM_BYTES = 2**30
MOST_PROGRAM_WINDOW = 2**16
MOST_PROGRAM_ITERATIONS = 10**9
"""Limits of the C programs of bench/."""


@dataclass(frozen=True)
class Layer:
    """Software over the card: its name for `apenet cc` (None: MPI), and whether it drives every card.

    The core knows which cards have a layer of their own (`CardKind.layers`).
    """

    library: str | None
    drives_all: bool = True
    most_bytes: int = MOST_PROGRAM_BYTES
    """The most bytes of a message."""
    tests: tuple[str, ...] = (*PAIR_TESTS, HALO)
    finds_neighbour: bool = True
    """Whether its program reaches another process of its own node."""


LAYERS = {
    "rdma": Layer("rdma", drives_all=False, tests=(*PAIR_TESTS, *ACCESS_TESTS, HALO)),
    "velo": Layer("extoll", drives_all=False, finds_neighbour=False),
    "rma": Layer("extoll", drives_all=False, tests=(*PAIR_TESTS, "get", HALO), finds_neighbour=False),
    TNW: Layer("tnw", drives_all=False, most_bytes=2048, finds_neighbour=False),
    "apelib": Layer("apelib"),
    UDP: Layer("udp", most_bytes=65507, tests=PAIR_TESTS),
    "gasnet": Layer("gasnet-seq", tests=(*PAIR_TESTS, *ACCESS_TESTS, HALO)),
    "upc": Layer("gasnet-seq", tests=()),
    MPI: Layer(None, most_bytes=MPI_LARGEST_BYTES),
}


def drives(machine: Machine, layer: str) -> bool:
    """Whether the layer exists on the machine: over its card, and udp with the kernel's costs."""
    if layer == UDP:
        return UDP in conduits.possible(machine)
    return LAYERS[layer].drives_all or layer in machine.file.card_kind.layers
