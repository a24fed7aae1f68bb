"""The cycle of a deadlock, from the report of the core (src/runtime/scheduler/deadlock_report.cpp)."""

from __future__ import annotations

import re
from typing import Any

_RANK = re.compile(r"  ranks? ([0-9, ]+): (.+)")
_CYCLE = re.compile(r"  in a cycle: (rank [0-9]+(?: -> rank [0-9]+)+)")
_RECEIVE = re.compile(r"\w+ from rank ([0-9]+), tag (-?[0-9]+)")
_SEND = re.compile(r"\w+ to rank ([0-9]+), tag (-?[0-9]+)")


def cycle(outcome: str, message: str) -> dict[str, Any] | None:
    """Ranks that wait for each other in a cycle, what each waits for, and what would free it; None without a cycle.

    `freed_by` is empty where the core knows no peer and tag: collective and one-sided calls.
    """
    cycle = _CYCLE.search(message) if outcome == "deadlock" else None
    if cycle is None:
        return None
    waits: dict[int, str] = {}
    for found in _RANK.finditer(message):
        waits |= {int(rank): found[2] for rank in found[1].split(",") if rank.strip()}
    ranks = [int(rank) for rank in re.findall("[0-9]+", cycle[1])][:-1]
    rows = [
        {"rank": rank, "waits": waits.get(rank, ""), "freed_by": _freed_by(rank, waits.get(rank, ""))} for rank in ranks
    ]
    return {"ranks": ranks, "rows": rows}


def _freed_by(rank: int, waits: str) -> str:
    receive, send = _RECEIVE.match(waits), _SEND.match(waits)
    if receive is not None:
        return f"a message from rank {receive[1]} to rank {rank} with tag {receive[2]}"
    if send is not None:
        return f"a receive of rank {send[1]} from rank {rank} with tag {send[2]}"
    return ""
