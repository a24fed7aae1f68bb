"""Workloads written in Python: a generator for each rank of a simulated machine, without processes.

def program(rank):
    right, left = (rank.id + 1) % rank.count, (rank.id - 1) % rank.count
    yield rank.send(right, 4096)
    message = yield rank.recv(left)
    yield rank.compute_us(3)

apenet.workload(program, n=16, machine="ape16").virtual_time_us
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from apenet import _core
from apenet.base.errors import ApenetError, InputError, texts
from apenet.base.numbers import checked_seed, whole
from apenet.machine import Machine
from apenet.machine import machine as read_machine
from apenet.machine.mapping import Mapping, map_ranks
from apenet.run.long_runs import require_ends
from apenet.run.results import PS_PER_US, RanksResult, ranks_results

LARGEST_MESSAGE_BYTES = 2**40
LARGEST_ADDRESS = 2**62
LONGEST_COMPUTE_US = 1e12
END_OF_TIME_US = _core.end_of_time_ps / PS_PER_US  # the end of the simulator's clocks
ANY = None  # source or tag of a receive

Program = Callable[["Rank"], Generator["Request", Any, object]]


class WorkloadError(ApenetError):
    """A workload whose ranks wait for ever: the message says what each rank waits for."""


@dataclass(frozen=True)
class Message:
    """A received message."""

    source: int
    tag: int
    bytes: int


@dataclass(frozen=True)
class Request:
    """A request that a program yields. `begin` starts it and returns its operation, or 0 without one to wait for."""

    what: str
    begin: Callable[[], int] | None = None
    waits: bool = True
    receives: bool = False
    operations: tuple[int, ...] = ()


@dataclass(frozen=True)
class Handle:
    """An operation in progress, for `rank.wait`."""

    operation: int
    what: str


class Rank:
    """One rank, as its program sees it. Each method makes a request, which the program yields.

    Messages follow the protocols of the libfabric provider and cost what the machine's `[software.mpi]` says. An
    `address` says where the buffer lies, for cards that translate addresses; all buffers without one share a page.
    """

    def __init__(self, core: _core.ProgramRanks, rank: int, count: int, machine: Machine) -> None:
        self._core = core
        self._machine = machine
        self._last = 0
        self.id = rank
        self.count = count

    @property
    def now_us(self) -> float:
        """The rank's clock, in virtual microseconds."""
        return self._core.clock_ps(self.id) / PS_PER_US

    def send(self, target: int, bytes: int, tag: int = 0, *, address: int = 0) -> Request:  # noqa: A002 (as MPI's words go)
        """Sends; goes on when the buffer may be used again."""
        return self._sends(target, bytes, tag, address, waits=True)

    def isend(self, target: int, bytes: int, tag: int = 0, *, address: int = 0) -> Request:  # noqa: A002
        """Begins to send; gives a handle."""
        return self._sends(target, bytes, tag, address, waits=False)

    def recv(self, source: int | None = ANY, tag: int | None = ANY, *, address: int = 0) -> Request:
        """Receives, from anybody and with any tag unless told; gives a Message."""
        return self._receives(source, tag, address, waits=True)

    def irecv(self, source: int | None = ANY, tag: int | None = ANY, *, address: int = 0) -> Request:
        """Begins to receive; gives a handle."""
        return self._receives(source, tag, address, waits=False)

    def wait(self, *handles: Handle) -> Request:
        """Waits for all handles; gives a list of their results (Message, or None for a send), or the single result."""
        for handle in handles:
            if not isinstance(handle, Handle):
                raise InputError(f"rank {self.id}: wait for", handle, "what yield rank.isend(...) or irecv(...) gave")
        what = ", ".join(handle.what for handle in handles)
        return Request(what, operations=tuple(handle.operation for handle in handles))

    def compute_us(self, microseconds: float) -> Request:
        """Computes for this time, to the picosecond."""
        if not 0 <= microseconds <= LONGEST_COMPUTE_US:
            raise InputError("compute_us", microseconds, "0 or more microseconds")
        if self.now_us + microseconds > END_OF_TIME_US:
            raise InputError("compute_us", microseconds, f"rank {self.id} to end within 104 days of virtual time")
        span_ps = round(microseconds * PS_PER_US)
        return Request(f"compute for {microseconds} us", lambda: self._begin(self._core.compute, span_ps))

    def _sends(self, target: int, size: int, tag: int, address: int, *, waits: bool) -> Request:
        target = self._check("send to", target, self.count - 1)
        tag = self._check("tag", tag, _core.any_tag - 1)
        size = self._check("bytes", size, LARGEST_MESSAGE_BYTES)
        require_ends(self._machine, size, f"rank {self.id}: bytes", str(size))
        address = self._check("address", address, LARGEST_ADDRESS)
        what = f"its message of {size} bytes to rank {target}, tag {tag}"
        return Request(what, lambda: self._begin(self._core.send, target, size, tag, address), waits)

    def _receives(self, source: int | None, tag: int | None, address: int, *, waits: bool) -> Request:
        if source is not None:
            source = self._check("recv from", source, self.count - 1)
        if tag is not None:
            tag = self._check("tag", tag, _core.any_tag - 1)
        address = self._check("address", address, LARGEST_ADDRESS)
        what = f"a message from {'anybody' if source is None else f'rank {source}'}, "
        what += "any tag" if tag is None else f"tag {tag}"
        wanted = (_core.any_rank if source is None else source, _core.any_tag if tag is None else tag)
        return Request(what, lambda: self._begin(self._core.receive, *wanted, address), waits, receives=True)

    def _begin(self, start: Callable[..., None], *arguments: int) -> int:
        self._last += 1
        operation = self._last
        start(self.id, operation, *arguments)
        return operation

    def _check(self, name: str, value: int, most: int) -> int:
        return whole(f"rank {self.id}: {name}", value, 0, most, f"a whole number from 0 to {most}")


@dataclass
class _State:
    """A rank's generator and the operations that it waits for."""

    generator: Generator[Request, Any, object]
    ended: dict[int, Message] = field(default_factory=dict)
    receives: set[int] = field(default_factory=set)
    waiting: tuple[int, ...] = ()
    missing: int = 0  # number of these
    what: str = ""
    answer: object = None
    is_done: bool = False
    finish_ps: int = 0
    returned: object = None


class _Programs(_core.RankProgram):
    """Drives the generators: starts each yielded request, and resumes the generator when the request has ended."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[_State] = []
        self.core: _core.ProgramRanks

    def proceed(self, rank: int) -> bool:
        state = self.states[rank]
        while not state.is_done and state.missing == 0:
            if state.waiting:
                state.answer = self._answer(state)
            try:
                request = state.generator.send(state.answer)
            except StopIteration as done:
                state.is_done, state.returned = True, done.value
                state.finish_ps = self.core.clock_ps(rank)
                return False
            state.answer = None
            self._start(state, request)
        return not state.is_done

    @staticmethod
    def _answer(state: _State) -> object:
        got: list[Message | None] = []
        for operation in state.waiting:
            message = state.ended.pop(operation)
            got.append(message if operation in state.receives else None)
            state.receives.discard(operation)
        state.waiting = ()
        return got[0] if len(got) == 1 else got

    @staticmethod
    def _start(state: _State, request: Request) -> None:
        if not isinstance(request, Request):
            raise InputError(
                "program", request, "a generator that yields rank.send(...), rank.recv(...) or another request of rank"
            )
        state.what = request.what
        operations = request.operations
        if request.begin is not None:
            operation = request.begin()
            if request.receives:
                state.receives.add(operation)
            if not request.waits:
                state.answer = Handle(operation, request.what)
                return
            operations = (operation,)
        state.waiting = operations
        state.missing = sum(operation not in state.ended for operation in operations)

    def ended(self, rank: int, operation: int, _time: _core.Time, message: _core.Envelope) -> None:
        state = self.states[rank]
        state.ended[operation] = Message(message.source, message.tag, message.bytes)
        if operation in state.waiting:
            state.missing -= 1


@dataclass(frozen=True, kw_only=True)
class WorkloadRun(RanksResult):
    """The result of a workload in Python: when each rank's program ended, and its return value."""

    returned: tuple[object, ...] = field(repr=False)


def workload(
    program: Program,
    *,
    n: int,
    machine: Machine | str = "ape16",
    ranks_per_node: int = 1,
    map: Mapping = "linear",  # noqa: A002 (as the option is called)
    engine: str = "packet",
    seed: int = 1,
    faults: Sequence[str] = (),
) -> WorkloadRun:
    """Runs the generator function `program(rank)` for n ranks. `engine` and `faults` are as for `apenet.run`.

    Raises InputError for invalid input, WorkloadError if ranks wait for ever, PartitionError if faults leave no path.
    Exceptions of a program are passed on.
    """
    chosen = (read_machine(machine) if isinstance(machine, str) else machine).with_faults(*texts("faults", faults))
    nodes = map_ranks(chosen, n, ranks_per_node, map)
    seed = checked_seed(seed)
    if not callable(program):
        raise InputError("program", program, "a generator function: one that yields")
    began = time.monotonic()
    programs = _Programs()
    try:
        core = _core.ProgramRanks(chosen.description(seed, engine), nodes, programs)
    except ValueError as error:
        raise chosen.refused(error) from error
    programs.core = core
    for rank in range(len(nodes)):
        generator = program(Rank(core, rank, len(nodes), chosen))
        if not isinstance(generator, Generator):
            raise InputError("program", _name_of(program), "a generator function: one that yields")
        programs.states.append(_State(generator))
    core.run()
    _require_ends(core, programs.states)
    finish_ps = np.array([state.finish_ps for state in programs.states], dtype=np.int64)
    common = ranks_results(chosen, seed, core.report(), finish_ps, began)
    return WorkloadRun(returned=tuple(state.returned for state in programs.states), **common)


def _name_of(program: Program) -> str:
    return getattr(program, "__name__", type(program).__name__)


def _require_ends(core: _core.ProgramRanks, states: list[_State]) -> None:
    most_shown = 8
    lines = []
    for rank, state in enumerate(states):
        if not state.is_done:
            lines.append(f"  rank {rank} waits for ever for {state.what}")
        left = core.unreceived(rank)
        if left is not None:
            lines.append(
                f"  rank {rank} has not received the {left.bytes} bytes, tag {left.tag}, of rank {left.source}"
            )
    if not lines:
        return
    more = [f"  and {len(lines) - most_shown} lines more"] if len(lines) > most_shown else []
    raise WorkloadError("\n".join(["the workload does not end:", *lines[:most_shown], *more]))
