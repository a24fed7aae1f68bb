"""Collective operations as messages: they fit together, and carry what each member needs to where it is needed."""

from __future__ import annotations

from collections import deque

import pytest

from apenet.traces.collectives import (
    ALLGATHER_BRUCK_BYTES,
    ALLREDUCE_DOUBLING_BYTES,
    ALLTOALL_AT_ONCE_BYTES,
    ALLTOALL_BRUCK_BYTES,
    BROADCAST_TREE_BYTES,
    Collective,
    Operation,
)

SIZES = [1, *{ALLTOALL_BRUCK_BYTES + 1, ALLREDUCE_DOUBLING_BYTES + 1, BROADCAST_TREE_BYTES + 1}]
SIZES += [ALLTOALL_AT_ONCE_BYTES + 1, ALLGATHER_BRUCK_BYTES + 1]
MEMBERS = [*range(1, 18), 31, 32, 33]
VECTORS = (Operation.GATHERV, Operation.SCATTERV, Operation.ALLGATHERV, Operation.ALLTOALLV, Operation.REDUCE_SCATTER)


def blocks(operation, members, size):
    return [size + (3 * member if operation in VECTORS else 0) for member in range(members)]


def executed(collective):
    """Executes the rounds of all members. Returns from which members each knows something, and its bytes sent."""
    rounds = [deque(collective.rounds(member)) for member in range(collective.size)]
    knows = [{member} for member in range(collective.size)]
    sent = [0] * collective.size
    flying = {}
    begun = [False] * collective.size
    moved = True
    while moved:
        moved = False
        for member, left in enumerate(rounds):
            if not left:
                continue
            if not begun[member]:
                begun[member] = moved = True
                for step in left[0]:
                    assert step.member != member
                    if step.is_send:
                        message = (step.size_bytes, set(knows[member]))
                        flying.setdefault((member, step.member), deque()).append(message)
                        sent[member] += step.size_bytes
            receives = [step for step in left[0] if not step.is_send]
            arrived = [flying.get((step.member, member)) for step in receives]
            if all(arrived):
                for step, queue in zip(receives, arrived, strict=True):
                    size_bytes, known = queue.popleft()
                    assert size_bytes == step.size_bytes
                    knows[member] |= known
                left.popleft()
                begun[member], moved = False, True
    assert not any(rounds), "some members wait for ever"
    assert not any(flying.values()), "messages that nobody receives"
    return knows, sent


@pytest.mark.parametrize("operation", Operation)
def test_messages_fit_together_and_reach_whom_they_must(operation):
    for members in MEMBERS:
        for size in SIZES:
            root = (7 * members + size) % members
            collective = Collective(operation, blocks(operation, members, size), root)
            knows, _ = executed(collective)
            everybody = set(range(members))
            for member in range(members):
                match operation:
                    case Operation.BROADCAST | Operation.SCATTER | Operation.SCATTERV:
                        needs = {root}
                    case Operation.REDUCE | Operation.GATHER | Operation.GATHERV:
                        needs = everybody if member == root else {member}
                    case Operation.SCAN:
                        needs = set(range(member + 1))
                    case _:
                        needs = everybody
                assert needs <= knows[member], (members, size, member)


@pytest.mark.parametrize(
    ("operation", "members", "size", "expected"),
    [
        (Operation.BROADCAST, 8, 1000, [3000, 0, 1000, 0, 2000, 0, 1000, 0]),  # children of a binomial tree
        (Operation.ALLGATHER, 4, 100, [300] * 4),
        (Operation.ALLTOALL, 8, 100, [1200] * 8),  # Bruck: three times half of the blocks
        (Operation.ALLTOALL, 8, 1000, [7000] * 8),
        (Operation.ALLTOALL, 8, 100_000, [700_000] * 8),
        (Operation.ALLREDUCE, 8, 8, [24] * 8),
        (Operation.ALLREDUCE, 8, 80_000, [140_000] * 8),  # twice seven eighths
        (Operation.REDUCE_SCATTER, 4, 10, [19 + 13 + 16, 10 + 16 + 19, 10 + 13 + 19, 10 + 13 + 16]),
        (Operation.SCATTER, 8, 10, [70, 0, 10, 0, 30, 0, 10, 0]),
        (Operation.GATHERV, 4, 10, [0, 13, 16, 19]),
    ],
)
def test_bytes_by_hand(operation, members, size, expected):
    assert executed(Collective(operation, blocks(operation, members, size)))[1] == expected
