"""Collective operations as messages, by the algorithms that MPI libraries use.

A trace of MPI calls names a collective operation, its sizes and its members, not its messages. The algorithms and the
sizes from which they change are MPICH's (Thakur, Rabenseifner, Gropp, "Optimization of collective communication
operations in MPICH", IJHPCA 19 (2005) 49-66). Reductions take no time to compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

BROADCAST_TREE_BYTES = 12288
BROADCAST_TREE_MEMBERS = 8
"""Larger broadcasts to at least so many members scatter, and gather in a ring."""
ALLREDUCE_DOUBLING_BYTES = 2048
ALLGATHER_BRUCK_BYTES = 81920
ALLTOALL_BRUCK_BYTES = 256
ALLTOALL_AT_ONCE_BYTES = 32768


class Operation(Enum):
    """The operations whose messages are known."""

    BARRIER = "barrier"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    GATHER = "gather"
    GATHERV = "gatherv"
    SCATTER = "scatter"
    SCATTERV = "scatterv"
    ALLGATHER = "allgather"
    ALLGATHERV = "allgatherv"
    ALLTOALL = "alltoall"
    ALLTOALLV = "alltoallv"
    ALLREDUCE = "allreduce"
    REDUCE_SCATTER = "reduce_scatter"
    SCAN = "scan"


@dataclass(frozen=True)
class Step:
    """A message to or from a member. Its size is the sender's."""

    is_send: bool
    member: int
    size_bytes: int


Round = list[Step]
"""Messages that a member starts together; the next round starts when all have ended."""


@dataclass(frozen=True)
class Collective:
    """One collective operation: `blocks` are the bytes of each member's part, of which it has `size` members.

    A part is what one member contributes or gets, as the arguments of MPI count it: the whole vector of a broadcast,
    reduction or scan, what is sent to or received from each member by gather, scatter, allgather and alltoall.
    """

    operation: Operation
    blocks: Sequence[int]
    root: int = 0

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self.blocks)

    def rounds(self, member: int) -> Iterator[Round]:
        """The messages of a member. Those of all members fit together: each is sent once and received once."""
        if self.size < 2:  # noqa: PLR2004 (nobody to talk to)
            return
        yield from _ALGORITHMS[self.operation](self, member)


def assumed_messages(counts: Mapping[str, int]) -> list[str]:
    """What to say of a trace with so many collective operations by name: nothing, or a sentence."""
    if not counts:
        return []
    listed = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    return [f"the trace does not tell the messages of collective operations ({listed}): MPICH's are taken"]


def _send(member: int, size_bytes: int) -> Step:
    return Step(True, member, size_bytes)


def _receive(member: int, size_bytes: int) -> Step:
    return Step(False, member, size_bytes)


def _powers_below(size: int) -> list[int]:
    """1, 2, 4 ... below a number of members."""
    return [1 << bit for bit in range((size - 1).bit_length())]


def _barrier(collective: Collective, member: int) -> Iterator[Round]:
    """Dissemination."""
    for distance in _powers_below(collective.size):
        yield [_send((member + distance) % collective.size, 0), _receive((member - distance) % collective.size, 0)]


def _tree(collective: Collective, member: int) -> tuple[int | None, list[tuple[int, int]]]:
    """A binomial tree: the parent, and each child with the number of members below and with it, the largest first."""
    place = (member - collective.root) % collective.size
    below = place & -place if place else 1 << (collective.size - 1).bit_length()
    parent = None if place == 0 else (place - below + collective.root) % collective.size
    children = []
    distance = below >> 1
    while distance:
        if place + distance < collective.size:
            children.append(
                (
                    (place + distance + collective.root) % collective.size,
                    min(distance, collective.size - place - distance),
                )
            )
        distance >>= 1
    return parent, children


def _members_below(collective: Collective, member: int) -> int:
    place = (member - collective.root) % collective.size
    return min(place & -place, collective.size - place)


def _broadcast(collective: Collective, member: int) -> Iterator[Round]:
    size_bytes = collective.blocks[collective.root]
    if size_bytes > BROADCAST_TREE_BYTES and collective.size >= BROADCAST_TREE_MEMBERS:
        part = -(-size_bytes // collective.size)
        yield from _scatter_parts(collective, member, part)
        yield from _ring(collective, member, [part] * collective.size)
        return
    parent, children = _tree(collective, member)
    if parent is not None:
        yield [_receive(parent, size_bytes)]
    for child, _ in children:
        yield [_send(child, size_bytes)]


def _reduce(collective: Collective, member: int) -> Iterator[Round]:
    parent, children = _tree(collective, member)
    for child, _ in reversed(children):
        yield [_receive(child, collective.blocks[collective.root])]
    if parent is not None:
        yield [_send(parent, collective.blocks[collective.root])]


def _gather(collective: Collective, member: int) -> Iterator[Round]:
    part = max(collective.blocks)
    parent, children = _tree(collective, member)
    for child, below in reversed(children):
        yield [_receive(child, below * part)]
    if parent is not None:
        yield [_send(parent, _members_below(collective, member) * part)]


def _scatter(collective: Collective, member: int) -> Iterator[Round]:
    yield from _scatter_parts(collective, member, max(collective.blocks))


def _scatter_parts(collective: Collective, member: int, part: int) -> Iterator[Round]:
    parent, children = _tree(collective, member)
    if parent is not None:
        yield [_receive(parent, _members_below(collective, member) * part)]
    for child, below in children:
        yield [_send(child, below * part)]


def _gatherv(collective: Collective, member: int) -> Iterator[Round]:
    """Directly."""
    if member == collective.root:
        yield [
            _receive(other, collective.blocks[other]) for other in range(collective.size) if other != collective.root
        ]
    else:
        yield [_send(collective.root, collective.blocks[member])]


def _scatterv(collective: Collective, member: int) -> Iterator[Round]:
    if member == collective.root:
        yield [_send(other, collective.blocks[other]) for other in range(collective.size) if other != collective.root]
    else:
        yield [_receive(collective.root, collective.blocks[member])]


def _ring(collective: Collective, member: int, parts: Sequence[int]) -> Iterator[Round]:
    """Each passes on what it got last."""
    for turn in range(collective.size - 1):
        sent = parts[(member - turn) % collective.size]
        received = parts[(member - turn - 1) % collective.size]
        yield [_send((member + 1) % collective.size, sent), _receive((member - 1) % collective.size, received)]


def _allgather(collective: Collective, member: int) -> Iterator[Round]:
    part = max(collective.blocks)
    if part * collective.size > ALLGATHER_BRUCK_BYTES:
        yield from _ring(collective, member, [part] * collective.size)
        return
    for distance in _powers_below(collective.size):
        size_bytes = min(distance, collective.size - distance) * part
        yield [
            _send((member - distance) % collective.size, size_bytes),
            _receive((member + distance) % collective.size, size_bytes),
        ]


def _allgatherv(collective: Collective, member: int) -> Iterator[Round]:
    yield from _ring(collective, member, collective.blocks)


def _alltoall(collective: Collective, member: int) -> Iterator[Round]:
    part = max(collective.blocks)
    if part <= ALLTOALL_BRUCK_BYTES:
        for distance in _powers_below(collective.size):
            size_bytes = part * sum(1 for block in range(collective.size) if block & distance)
            yield [
                _send((member + distance) % collective.size, size_bytes),
                _receive((member - distance) % collective.size, size_bytes),
            ]
    elif part <= ALLTOALL_AT_ONCE_BYTES:
        yield from _alltoallv(collective, member)
    else:
        yield from _pairwise(collective, member, [part] * collective.size)


def _alltoallv(collective: Collective, member: int) -> Iterator[Round]:
    """All messages at once, each to the next member first."""
    yield [
        step
        for distance in range(1, collective.size)
        for step in (
            _receive((member - distance) % collective.size, collective.blocks[(member - distance) % collective.size]),
            _send((member + distance) % collective.size, collective.blocks[member]),
        )
    ]


def _pairwise(collective: Collective, member: int, parts: Sequence[int]) -> Iterator[Round]:
    """With one member after the other; `parts` are what each receives from each."""
    is_power_of_two = collective.size & (collective.size - 1) == 0
    for distance in range(1, collective.size):
        to = member ^ distance if is_power_of_two else (member + distance) % collective.size
        source = to if is_power_of_two else (member - distance) % collective.size
        yield [_send(to, parts[to]), _receive(source, parts[member])]


def _reduce_scatter(collective: Collective, member: int) -> Iterator[Round]:
    yield from _pairwise(collective, member, collective.blocks)


def _allreduce(collective: Collective, member: int) -> Iterator[Round]:
    """Recursive doubling; of long vectors, recursive halving and then doubling (Rabenseifner)."""
    size_bytes = max(collective.blocks)
    power = 1 << (collective.size.bit_length() - 1)
    extra = collective.size - power  # so many pairs first become one
    if member < 2 * extra and member % 2 == 0:
        yield [_send(member + 1, size_bytes)]
        yield [_receive(member + 1, size_bytes)]
        return
    if member < 2 * extra:
        yield [_receive(member - 1, size_bytes)]
    place = member // 2 if member < 2 * extra else member - extra

    def exchange(distance: int, exchanged_bytes: int) -> Round:
        other = place ^ distance
        peer = 2 * other + 1 if other < extra else other + extra
        return [_send(peer, exchanged_bytes), _receive(peer, exchanged_bytes)]

    distances = _powers_below(power)
    if size_bytes <= ALLREDUCE_DOUBLING_BYTES:
        yield from (exchange(distance, size_bytes) for distance in distances)
    else:
        halves = [(distance, -(-size_bytes * distance // power)) for distance in reversed(distances)]
        yield from (exchange(distance, part) for distance, part in halves)
        yield from (exchange(distance, part) for distance, part in reversed(halves))
    if member < 2 * extra:
        yield [_send(member - 1, size_bytes)]


def _scan(collective: Collective, member: int) -> Iterator[Round]:
    """Recursive doubling."""
    for distance in _powers_below(collective.size):
        other = member ^ distance
        if other < collective.size:
            yield [_send(other, max(collective.blocks)), _receive(other, max(collective.blocks))]


_ALGORITHMS: dict[Operation, Callable[[Collective, int], Iterator[Round]]] = {
    Operation.BARRIER: _barrier,
    Operation.BROADCAST: _broadcast,
    Operation.REDUCE: _reduce,
    Operation.GATHER: _gather,
    Operation.GATHERV: _gatherv,
    Operation.SCATTER: _scatter,
    Operation.SCATTERV: _scatterv,
    Operation.ALLGATHER: _allgather,
    Operation.ALLGATHERV: _allgatherv,
    Operation.ALLTOALL: _alltoall,
    Operation.ALLTOALLV: _alltoallv,
    Operation.ALLREDUCE: _allreduce,
    Operation.REDUCE_SCATTER: _reduce_scatter,
    Operation.SCAN: _scan,
}
