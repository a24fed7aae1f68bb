"""GASNet's conduits: those that a machine makes possible, and the one that it chooses.

The description of a card names the conduit of its own (`CardKind.conduit`). In a program the library reads the same
name: src/api/gasnet/choose_conduit.cpp.
"""

from __future__ import annotations

from apenet.base.errors import InputError
from apenet.machine import Machine
from apenet.machine.schema import CARD_KINDS, MachineFile, Rail

_ANYWHERE = "mpi"
_OWN = tuple(dict.fromkeys(kind.conduit for kind in CARD_KINDS.values() if kind.conduit))
CONDUITS = (*_OWN, "udp", _ANYWHERE)


def possible(machine: Machine) -> list[str]:
    """The conduits that run on this machine."""
    rails: list[MachineFile | Rail] = [machine.file, *machine.file.rail.values()]
    found = [name for name in _OWN if any(rail.card_kind.conduit == name for rail in rails)]
    if any(rail.software.udp is not None for rail in rails):
        found.append("udp")
    return [*found, _ANYWHERE]


def default(machine: Machine) -> str:
    """The conduit of the first card, or MPI's."""
    return machine.file.card_kind.conduit or _ANYWHERE


def check(machine: Machine, conduit: str | None, active_messages: str | None) -> None:
    """Refuses a conduit that does not run on the machine, and an implementation that is another conduit's."""
    if conduit is not None and conduit not in possible(machine):
        raise InputError("conduit", conduit, f"one of {', '.join(possible(machine))} on {machine.name}")
    chosen = conduit or default(machine)
    if active_messages is not None and chosen != "extoll":
        raise InputError("active_messages", active_messages, f"none with the conduit {chosen}: they belong to extoll")
