"""Refuses simulations that would take hours, unless they are asked for."""

from __future__ import annotations

from apenet.base.errors import InputError, Literal

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
