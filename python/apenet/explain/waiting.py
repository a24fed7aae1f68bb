"""Waits by cause: who was late, and what the message spent on its way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from apenet import _core
from apenet.explain.timed import CLEAR, EAGER, PAYLOAD, READY, Integers, Timed

CAUSES = ("late sender", "late receiver", "handshake", "transfer", "own message", "other")
"""What a rank waits for; `MEANINGS` explains each."""
MEANINGS = {
    "late sender": "the sender had not posted the message yet",
    "late receiver": "the receiver of a rendezvous had not answered yet",
    "handshake": "the control messages of a rendezvous were on their way",
    "transfer": "the payload was on its way",
    "own message": "a message of the rank itself had not left yet",
    "other": "a message that the protocol does not name",
}
STAGES = tuple(_core.stage_names())
"""What a message does between its post and its completion; `STAGE_MEANINGS` explains each."""
STAGE_MEANINGS = {
    "doorbell": "the processor's writes to the card",
    "card queue": "the card had other messages or packets to do before",
    "card": "the engines of the two cards",
    "bus busy": "another transfer had the bus between card and memory, of this or of another message",
    "bus": "its own transfers over the bus, with the latency of reads and the wait for a place among the card's reads",
    "queue full": "the queue from the card into the network had no place",
    "links": "latencies of links and routers, and its own transmission",
    "link busy": "a link, or the port between card and router, carried other packets, of this or of another message",
    "credits": "the link was free, but no buffer behind it, or a packet before it was held up",
    "retransmission": "after a bit error or a fault",
    "translation": "a page walk of the card, or its fetch of a connection's context",
    "receiver full": "no receive request, place or credit at the receiver",
    "acknowledgement": "delivered, but the sender did not know it yet",
    "interrupt": "in memory, but its process did not know it: the wait for further events, and the interrupt",
    "memory busy": "within a node: another copy had the memory",
    "memory copy": "within a node: its own copy, and the hand-over",
}
_SENDER, _RECEIVER, _HANDSHAKE, _TRANSFER, _OWN, _OTHER = range(len(CAUSES))


@dataclass(frozen=True)
class CausedWaits:
    """Pieces of waits, each with one cause: a wait is cut where the awaited message was posted."""

    wait: Integers  # the wait that it is a piece of
    cause: Integers
    start: Integers
    until: Integers

    @property
    def length(self) -> Integers:
        """The length of each piece."""
        return self.until - self.start


def caused(timed: Timed) -> CausedWaits:
    """Cuts each wait into the time before and after the message that ended it was posted."""
    waits = timed.waits
    cut = np.clip(waits.posted, waits.start, waits.until)
    before = np.select([waits.role == CLEAR, waits.role <= PAYLOAD], [_RECEIVER, _SENDER], _OTHER).astype(np.uint8)
    after = _causes_after_the_post(timed)
    # A rank that waits for its own message has posted it before.
    before[~waits.is_arrival] = _OWN
    number = np.arange(len(waits.rank), dtype=np.uint32)
    pieces = CausedWaits(
        wait=np.concatenate([number, number]),
        cause=np.concatenate([before, after]),
        start=np.concatenate([waits.start, cut]),
        until=np.concatenate([cut, waits.until]),
    )
    order = np.lexsort((pieces.start, pieces.wait))
    kept = order[pieces.length[order] > 0]
    return CausedWaits(pieces.wait[kept], pieces.cause[kept], pieces.start[kept], pieces.until[kept])


def _causes_after_the_post(timed: Timed) -> Integers:
    """The cause of each wait's part in which the message that ended it was on its way."""
    waits = timed.waits
    return np.select(
        [
            ~waits.is_arrival,
            (waits.role == READY) | (waits.role == CLEAR),
            (waits.role == EAGER) | (waits.role == PAYLOAD),
        ],
        [_OWN, _HANDSHAKE, _TRANSFER],
        _OTHER,
    ).astype(np.uint8)


def by_cause_and_stage(timed: Timed) -> list[tuple[str, str, int]]:
    """Cause, stage and picoseconds of all ranks; the longest first.

    Only of the time after the awaited message was posted: for each cause but a late sender or receiver the stages
    sum to the cause exactly.
    """
    table = np.zeros((len(CAUSES), len(STAGES)), dtype=np.int64)
    stages = timed.stages
    np.add.at(table, (_causes_after_the_post(timed)[stages.wait], stages.stage), stages.awaited)
    rows = [
        (CAUSES[cause], STAGES[stage], int(table[cause, stage]))
        for cause, stage in zip(*np.nonzero(table), strict=True)
    ]
    return sorted(rows, key=lambda row: (-row[2], row[:2]))


def by_cause(pieces: CausedWaits) -> dict[str, int]:
    """Picoseconds of all ranks for each cause that occurs."""
    sums = np.bincount(pieces.cause, weights=pieces.length, minlength=len(CAUSES))
    return {name: int(value) for name, value in zip(CAUSES, sums, strict=True) if value > 0}


def by_call_and_cause(timed: Timed, pieces: CausedWaits) -> list[tuple[str, str, str, int]]:
    """MPI call, its place in the program, cause and picoseconds of all ranks; the longest first."""
    calls = timed.waiting_call[pieces.wait]
    table = np.zeros((len(timed.operations.calls), len(CAUSES)), dtype=np.int64)
    np.add.at(table, (calls, pieces.cause), pieces.length)
    rows = [
        (timed.operations.calls[call], timed.operations.places[call], CAUSES[cause], int(table[call, cause]))
        for call, cause in zip(*np.nonzero(table), strict=True)
    ]
    return sorted(rows, key=lambda row: (-row[3], row[:3]))


def by_rank(timed: Timed, pieces: CausedWaits) -> NDArray[np.int64]:
    """Picoseconds of each rank and cause."""
    table = np.zeros((timed.operations.ranks, len(CAUSES)), dtype=np.int64)
    np.add.at(table, (timed.waits.rank[pieces.wait], pieces.cause), pieces.length)
    return table
