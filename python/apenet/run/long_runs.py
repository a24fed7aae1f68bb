"""Refuses simulations that would take hours, unless they are asked for."""

from __future__ import annotations

from apenet import _core
from apenet.base.errors import InputError, Literal
from apenet.machine import Machine

MOST_PACKET_HOPS = 10_000_000_000
"""Packets times links on their way. The simulator moves some 5 million a second: half an hour."""
ALLOW_LONG = "Also simulate what takes hours."


def require_soon(packet_hops: float, what: str, name: str, value: str, smaller: str) -> None:
    """Refuses more packet-hops than half an hour's. `smaller`: what to choose instead. Raises InputError."""
    if packet_hops > MOST_PACKET_HOPS:
        raise InputError(
            name,
            Literal(value),
            f"{what} to need at most {MOST_PACKET_HOPS:.0e} packet-hops, half an hour of real time, not "
            f"{packet_hops:.1e}: choose {smaller}, or wait with --allow-long",
        )


def require_ends(machine: Machine, sent_bytes: int, name: str, value: str) -> None:
    """Refuses bytes that a card without packets would carry beyond the end of virtual time. Raises InputError."""
    bandwidth = getattr(machine.file.card, "bandwidth_mib_s", None)
    if bandwidth is None or machine.topology.has_routers:
        return
    if sent_bytes / (float(bandwidth.value) * 2**20) > _core.end_of_time_ps * 1e-12:
        expected = f"messages that end within 104 days of virtual time at card.bandwidth_mib_s = {bandwidth.value}"
        raise InputError(name, Literal(value), expected)
