"""OTF2 traces of MPI programs, as Score-P and other tools write them (Open Trace Format 2, version 3.0).

A rank computes between its MPI calls as long as recorded, and sends and receives the recorded messages. What it did in
an MPI call took time on the recorded machine, which is left out: the replaying machine has its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apenet.base.errors import InputError
from apenet.base.infiles import printable
from apenet.base.otf2_library import otf2_library, said_by_otf2
from apenet.traces.collectives import Collective, Operation, assumed_messages
from apenet.traces.schedule import Chain, RankOperations
from apenet.traces.schedule import message as operation_of

MOST_EVENTS = 2**26
"""The most MPI events of a trace; each takes some 150 bytes of memory."""
_NS_PER_S = 10**9
_NEIGHBOURS = "eighbor_"
"""In the names of calls whose events do not tell who the neighbours are."""
_ONE_SIDED = ("RmaPut", "RmaGet", "RmaAtomic")

_OPERATIONS = {
    "BARRIER": Operation.BARRIER,
    "BCAST": Operation.BROADCAST,
    "GATHER": Operation.GATHER,
    "GATHERV": Operation.GATHERV,
    "SCATTER": Operation.SCATTER,
    "SCATTERV": Operation.SCATTERV,
    "ALLGATHER": Operation.ALLGATHER,
    "ALLGATHERV": Operation.ALLGATHERV,
    "ALLTOALL": Operation.ALLTOALL,
    "ALLTOALLV": Operation.ALLTOALLV,
    "ALLTOALLW": Operation.ALLTOALLV,
    "ALLREDUCE": Operation.ALLREDUCE,
    "REDUCE": Operation.REDUCE,
    "REDUCE_SCATTER": Operation.REDUCE_SCATTER,
    "REDUCE_SCATTER_BLOCK": Operation.REDUCE_SCATTER,
    "SCAN": Operation.SCAN,
    "EXSCAN": Operation.SCAN,
}
"""Others (creation of communicators, windows and files) synchronise, as a barrier does."""


@dataclass(slots=True)
class _Message:
    """A message that a rank begins; None while its end, which tells the rest, has not been read."""

    is_send: bool
    peer: int | None = None
    tag: int = 0
    size_bytes: int = 0
    number: int = 0  # its operation, once that is written


@dataclass(slots=True)
class _Call:
    """A rank's call of a collective operation; `communicator` is None while its end has not been read."""

    communicator: Any = None
    name: str = ""
    root: int = 0
    sent_bytes: int = 0
    received_bytes: int = 0
    instance: int = 0  # number of the operation in its communicator
    is_beside: bool = False
    is_among_neighbours: bool = False
    numbers: list[int] = field(default_factory=list)


@dataclass(slots=True)
class _Item:
    """What a thread of a rank does next: computes, begins a message or a call, and then awaits some of them."""

    thread: int
    compute_ns: int = 0
    begins: _Message | _Call | None = None
    awaits: tuple[_Message | _Call, ...] = ()


@dataclass(slots=True)
class _Thread:
    """A location: when it last left MPI, and what it has begun in the call in which it is."""

    number: int
    left_ns: int
    depth: int = 0
    call: str = ""  # the MPI call in which it is
    blocking: list[_Message | _Call] = field(default_factory=list)


@dataclass(slots=True)
class _Rank:
    number: int
    start_ns: int
    items: list[_Item] = field(default_factory=list)
    threads: dict[Any, _Thread] = field(default_factory=dict)
    requests: dict[int, _Message | _Call] = field(default_factory=dict)
    probed: dict[int, tuple[int, int]] = field(default_factory=dict)
    has_ended: bool = False

    def thread(self, location: Any) -> _Thread:  # noqa: ANN401 (otf2 has no types)
        found = self.threads.get(location)
        if found is None:
            found = self.threads[location] = _Thread(len(self.threads), self.start_ns)
        return found


class Otf2Trace:
    """The MPI operations of an OTF2 trace."""

    def __init__(self, anchor: Path) -> None:
        """Reads a trace, whose anchor file this is. Raises InputError for one without MPI, or that cannot be read."""
        self._name = printable(anchor)
        self.left_out: Counter[str] = Counter()
        """Events that a replay leaves out, by kind."""
        self.collectives: Counter[str] = Counter()
        """Collective operations by name."""
        self._tags: dict[tuple[Any, object], int] = {}
        self._events = 0
        otf2 = otf2_library("trace", self._name)
        with said_by_otf2() as said:
            try:
                with otf2.reader.open(str(anchor)) as trace:
                    self._read(trace)
            except InputError:
                raise
            except Exception as error:  # the library raises many types where a file surprises it
                raise self._unreadable(said[0] if said else str(error)) from error
        if said:
            raise self._unreadable(said[0])
        self._find_instances()

    @property
    def rank_count(self) -> int:
        """The number of ranks."""
        return len(self._ranks)

    def notes(self) -> list[str]:
        """What a replay does not repeat, a sentence each."""
        notes = assumed_messages(self.collectives)
        if self.left_out:
            listed = ", ".join(f"{count} {name}" for name, count in sorted(self.left_out.items()))
            notes.append(f"not in the replay: {listed}")
        return notes

    def _refused(self, expected: str) -> InputError:
        return InputError("trace", self._name, expected)

    def _unreadable(self, why: str) -> InputError:
        return self._refused(f"an OTF2 trace that can be read ({why})")

    def _read(self, trace: Any) -> None:  # noqa: ANN401 (otf2 has no types)
        definitions = trace.definitions
        clock = definitions.clock_properties
        self._resolution = clock.timer_resolution
        world = [
            group
            for group in definitions.groups
            if _name(group.group_type) == "COMM_LOCATIONS" and _name(group.paradigm) == "MPI"
        ]
        if len(world) != 1 or not world[0].members:
            raise self._refused(f"a trace of an MPI program; it has {len(world)} groups of MPI processes")
        start_ns = self._ns(clock.global_offset)
        self._ranks = [_Rank(number, start_ns) for number in range(len(world[0].members))]
        self._rank_of = {location.group: rank for location, rank in zip(world[0].members, self._ranks, strict=True)}
        mpi_regions = {region for region in definitions.regions if _name(region.paradigm) == "MPI"}
        self._members: dict[Any, list[int]] = {}
        readers = self._readers()
        for location, event in trace.events:
            kind = type(event).__name__
            rank, read = self._rank_of.get(location.group), readers.get(kind)
            if kind in _ONE_SIDED:
                self.left_out["one-sided operations"] += 1
            if rank is None or read is None:
                continue
            if kind in ("Enter", "Leave") and event.region not in mpi_regions:
                continue
            self._events += 1
            if self._events > MOST_EVENTS:
                raise self._refused(f"at most {MOST_EVENTS} MPI events")
            read(rank, rank.thread(location), event)

    def _readers(self) -> dict[str, Callable[[_Rank, _Thread, Any], None]]:
        return {
            "Enter": self._enter,
            "Leave": self._leave,
            "MpiSend": self._send,
            "MpiIsend": self._isend,
            "MpiIsendComplete": self._complete,
            "MpiRecv": self._receive,
            "MpiIrecvRequest": self._irecv_request,
            "MpiIrecv": self._irecv,
            "MpiRequestCancelled": self._cancel,
            "MpiProbe": self._probe,
            "MpiMrecv": self._mrecv,
            "MpiImrecvRequest": self._imrecv_request,
            "MpiImrecv": self._imrecv,
            "MpiCollectiveEnd": self._collective,
            "NonBlockingCollectiveRequest": self._collective_request,
            "NonBlockingCollectiveComplete": self._collective_complete,
        }

    def _ns(self, ticks: int) -> int:
        return int(ticks) * _NS_PER_S // int(self._resolution)

    def _tag(self, communicator: Any, tag: object) -> int:  # noqa: ANN401
        """A number for a communicator and tag, in the order of first use."""
        return self._tags.setdefault((communicator, tag), len(self._tags))

    def _enter(self, rank: _Rank, thread: _Thread, event: Any) -> None:  # noqa: ANN401
        thread.depth += 1
        if thread.depth == 1:
            thread.call = event.region.name
        if thread.depth > 1 or event.region.name.startswith("MPI_Init"):
            return
        if not rank.has_ended:
            rank.items.append(_Item(thread.number, max(self._ns(event.time) - thread.left_ns, 0)))

    def _leave(self, rank: _Rank, thread: _Thread, event: Any) -> None:  # noqa: ANN401
        thread.depth = max(thread.depth - 1, 0)
        if thread.depth > 0:
            return
        thread.left_ns = self._ns(event.time)
        rank.has_ended = rank.has_ended or event.region.name == "MPI_Finalize"
        if event.region.name.startswith("MPI_Init"):
            rank.start_ns = thread.left_ns
        if thread.blocking:
            rank.items.append(_Item(thread.number, awaits=tuple(thread.blocking)))
            thread.blocking = []

    def _begin(self, rank: _Rank, thread: _Thread, what: _Message | _Call, *, is_blocking: bool) -> None:
        rank.items.append(_Item(thread.number, begins=what))
        if is_blocking and thread.depth > 0:
            thread.blocking.append(what)
        elif is_blocking:
            rank.items.append(_Item(thread.number, awaits=(what,)))

    def _peer(self, rank: _Rank, communicator: Any, number: int) -> int:  # noqa: ANN401
        """The rank that a communicator calls `number`."""
        members = self._members_of(communicator)
        return members[number] if members else rank.number

    def _members_of(self, communicator: Any) -> list[int]:  # noqa: ANN401
        """The ranks of a communicator; none: it is each rank's own."""
        found = self._members.get(communicator)
        if found is None:
            members = communicator.group.members
            found = self._members[communicator] = [self._rank_of[location.group].number for location in members]
        return found

    def _send(self, rank: _Rank, thread: _Thread, event: Any) -> None:  # noqa: ANN401
        self._begin(rank, thread, self._sent(rank, event), is_blocking=True)

    def _sent(self, rank: _Rank, event: Any) -> _Message:  # noqa: ANN401
        peer = self._peer(rank, event.communicator, event.receiver)
        return _Message(True, peer, self._tag(event.communicator, event.msg_tag), event.msg_length)

    def _isend(self, rank: _Rank, thread: _Thread, event: Any) -> None:  # noqa: ANN401
        rank.requests[event.request_id] = message = self._sent(rank, event)
        self._begin(rank, thread, message, is_blocking=False)

    def _complete(self, rank: _Rank, thread: _Thread, event: Any) -> None:  # noqa: ANN401
        done = rank.requests.pop(event.request_id, None)
        if done is not None:
            rank.items.append(_Item(thread.number, awaits=(done,)))

    def _receive(self, rank: _Rank, thread: _Thread, event: Any) -> None:  # noqa: ANN401
        peer = self._peer(rank, event.communicator, event.sender)
        message = _Message(False, peer, self._tag(event.communicator, event.msg_tag), event.msg_length)
        self._begin(rank, thread, message, is_blocking=True)

    def _irecv_request(self, rank: _Rank, thread: _Thread, event: Any) -> None:  # noqa: ANN401
        rank.requests[event.request_id] = message = _Message(False)
        self._begin(rank, thread, message, is_blocking=False)

    def _irecv(self, rank: _Rank, thread: _Thread, event: Any) -> None:  # noqa: ANN401
        message = rank.requests.get(event.request_id)
        if isinstance(message, _Message):
            message.peer = self._peer(rank, event.communicator, event.sender)
            message.tag = self._tag(event.communicator, event.msg_tag)
            message.size_bytes = event.msg_length
        self._complete(rank, thread, event)

    def _cancel(self, rank: _Rank, _: _Thread, event: Any) -> None:  # noqa: ANN401
        rank.requests.pop(event.request_id, None)
        self.left_out["cancelled requests"] += 1

    def _probe(self, rank: _Rank, _: _Thread, event: Any) -> None:  # noqa: ANN401
        peer = self._peer(rank, event.communicator, event.sender)
        rank.probed[event.message_id] = (peer, self._tag(event.communicator, event.tag))

    def _of_probe(self, rank: _Rank, event: Any) -> _Message | None:  # noqa: ANN401
        found = rank.probed.pop(event.message_id, None)
        if found is None:
            self.left_out["receives of messages that no probe has found"] += 1
            return None
        return _Message(False, *found)

    def _mrecv(self, rank: _Rank, thread: _Thread, event: Any) -> None:  # noqa: ANN401
        message = self._of_probe(rank, event)
        if message is not None:
            message.size_bytes = event.msg_length
            self._begin(rank, thread, message, is_blocking=True)

    def _imrecv_request(self, rank: _Rank, thread: _Thread, event: Any) -> None:  # noqa: ANN401
        message = self._of_probe(rank, event)
        if message is not None:
            rank.requests[event.request_id] = message
            self._begin(rank, thread, message, is_blocking=False)

    def _imrecv(self, rank: _Rank, thread: _Thread, event: Any) -> None:  # noqa: ANN401
        message = rank.requests.get(event.request_id)
        if isinstance(message, _Message):
            message.size_bytes = event.msg_length
        self._complete(rank, thread, event)

    def _collective(self, rank: _Rank, thread: _Thread, event: Any) -> None:  # noqa: ANN401
        call = _Call(is_among_neighbours=_NEIGHBOURS in thread.call)
        self._begin(rank, thread, call, is_blocking=True)
        self._complete_call(rank, call, event)

    def _complete_call(self, rank: _Rank, call: _Call, event: Any) -> None:  # noqa: ANN401
        if call.is_among_neighbours:
            self.left_out["calls of collective operations among neighbours"] += 1
            return
        members = self._members_of(event.communicator)
        if len(members) < 2 or rank.number not in members:  # noqa: PLR2004 (nobody to talk to)
            return
        call.communicator = event.communicator
        call.name = _name(event.collective_op)
        call.root = event.root if event.root < len(members) else 0
        call.sent_bytes, call.received_bytes = event.size_sent, event.size_received

    def _collective_request(self, rank: _Rank, thread: _Thread, event: Any) -> None:  # noqa: ANN401
        call = _Call(is_beside=True, is_among_neighbours=_NEIGHBOURS in thread.call)
        rank.requests[event.request_id] = call
        self._begin(rank, thread, call, is_blocking=False)

    def _collective_complete(self, rank: _Rank, thread: _Thread, event: Any) -> None:  # noqa: ANN401
        call = rank.requests.get(event.request_id)
        if isinstance(call, _Call):
            self._complete_call(rank, call, event)
        self._complete(rank, thread, event)

    def _find_instances(self) -> None:
        """Joins the calls of the members of each collective operation, in the order in which each made them."""
        calls: dict[tuple[Any, int], dict[int, _Call]] = {}
        for rank in self._ranks:
            counts: Counter[Any] = Counter()
            for item in rank.items:
                call = item.begins
                if not isinstance(call, _Call) or call.communicator is None:
                    continue
                call.instance = counts[call.communicator]
                counts[call.communicator] += 1
                calls.setdefault((call.communicator, call.instance), {})[rank.number] = call
        self._collectives: dict[tuple[Any, int], Collective] = {}
        for (communicator, instance), made in calls.items():
            members = self._members[communicator]
            names = {call.name for call in made.values()}
            missing = [member for member in members if member not in made]
            if len(names) > 1 or missing:
                what = f"rank {missing[0]} has not called it" if missing else "others call " + ", ".join(sorted(names))
                raise self._refused(
                    f"a call of {next(iter(made.values())).name} by each member of {communicator.name}, operation "
                    f"{instance}: {what}"
                )
            ordered = [made[member] for member in members]
            self.collectives[ordered[0].name.lower()] += 1
            self._collectives[communicator, instance] = _collective(ordered)

    def operations(self) -> Iterator[RankOperations]:
        """The operations of each rank, one after the other."""
        for rank in self._ranks:
            written = RankOperations()
            chains = [Chain(written, thread.number) for thread in rank.threads.values()]
            for item in rank.items:
                chain = chains[item.thread]
                chain.compute(item.compute_ns)
                if isinstance(item.begins, _Message):
                    self._write_message(chain, item.begins)
                elif item.begins is not None:
                    self._write_call(chain, rank, item.begins)
                for done in item.awaits:
                    if isinstance(done, _Call):
                        chain.await_end(done.numbers)
                    elif done.number:
                        chain.await_end([done.number])
            yield written

    def _write_message(self, chain: Chain, message: _Message) -> None:
        if message.peer is None:  # its end is not in the trace
            self.left_out["receives without an end"] += 1
            return
        message.number = chain.begin(
            operation_of(message.peer, message.size_bytes, message.tag, is_send=message.is_send)
        )

    def _write_call(self, chain: Chain, rank: _Rank, call: _Call) -> None:
        if call.communicator is None:
            return
        members = self._members[call.communicator]
        tag = self._tag(call.communicator, ("collective", call.instance))
        own = chain.fork() if call.is_beside else chain
        for steps in self._collectives[call.communicator, call.instance].rounds(members.index(rank.number)):
            numbers = [
                own.begin(operation_of(members[step.member], step.size_bytes, tag, is_send=step.is_send))
                for step in steps
            ]
            own.await_end(numbers)
        call.numbers = own.pending()


def _name(value: object) -> str:
    """The name of a value of otf2's enumerations, which print as TYPE.NAME."""
    return str(value).rpartition(".")[2]


def _collective(calls: list[_Call]) -> Collective:
    """The operation that these calls of its members, in their order, make.

    Sizes are counted as Score-P does: what a member sends to and receives from all members, itself included unless it
    works in place.
    """
    size = len(calls)
    root = calls[0].root
    operation = _OPERATIONS.get(calls[0].name, Operation.BARRIER)
    sent = [call.sent_bytes for call in calls]
    received = [call.received_bytes for call in calls]
    match operation:
        case Operation.BARRIER:
            blocks = [0] * size
        case Operation.BROADCAST | Operation.SCATTER | Operation.SCATTERV:
            blocks = received
            if operation is not Operation.SCATTERV:
                blocks = [max(value for member, value in enumerate(received) if member != root)] * size
        case Operation.REDUCE | Operation.GATHER | Operation.GATHERV:
            blocks = sent
            if operation is not Operation.GATHERV:
                blocks = [max(value for member, value in enumerate(sent) if member != root)] * size
        case Operation.REDUCE_SCATTER:
            blocks = [_part(value, size) for value in received]
        case Operation.SCAN:
            blocks = [_part(sent[0], size)] * size
        case _:
            blocks = [_part(value, size) for value in sent]
    return Collective(operation, blocks, root)


def _part(total_bytes: int, size: int) -> int:
    """One member's part of a total over all members, or over all others if the operation works in place."""
    if total_bytes % size and total_bytes % (size - 1) == 0:
        return total_bytes // (size - 1)
    return -(-total_bytes // size)
