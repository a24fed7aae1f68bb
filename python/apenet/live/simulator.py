"""The simulator of a shared network: a process with one machine and one virtual time, which steps of jobs join.

While no step runs, its virtual time stands still. A step begins at the earliest time at which nothing has happened yet
once all of its ranks have come to the end of MPI_Init. Real time chooses this time; all that follows depends on it
alone.
"""

from __future__ import annotations

import errno
import os
import resource
import select
import selectors
import socket
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from apenet import _core
from apenet.base.errors import ApenetError, HostError, InputError
from apenet.host.mpi_library import Family
from apenet.live import records
from apenet.live.messages import SOCKET, Channel, ClosedError, Message, listen
from apenet.machine import Machine
from apenet.run.program_outcome import program_result
from apenet.run.program_request import RunRequest, session_options
from apenet.run.program_result import RunResult, summary
from apenet.run.results import PS_PER_US, show_time
from apenet.run.session import SessionOutcome, refusals_named

SEED = 1
ENGINE = "packet"
_IDLE_S = 1.0
"""How often a simulator without steps asks whether its folder is there."""
_LAUNCHER_S = 60.0
"""All steps wait for the one that starts a launcher, for so long at most."""
_MOST_WORDS = 12 * 1024
"""The most characters of a reply, of which JSON needs up to twelve bytes each."""
_REQUEST_KEYS = {one.name for one in fields(records.StepRequest)}


@dataclass(eq=False)
class _Caller:
    """Who has connected, and the step that it has asked for."""

    channel: Channel
    step: _Step | None = None


@dataclass(eq=False)
class _Step:
    """A step, from its request to its end. `job`: the number of the session's job; -1 before it is admitted."""

    channel: Channel
    asked: records.StepRequest
    request: RunRequest
    program: Path
    is_labelled: bool
    number: int
    streams: list[int]
    began: float = field(default_factory=time.monotonic)
    job: int = -1
    processes: list[int] = field(default_factory=list)
    supervisor: int = 0
    supervisor_channel: int = -1
    ranks: list[int] = field(default_factory=list)
    """Descriptors of the ranks, three of each."""
    is_running: bool = False
    is_cancelled: bool = False

    def close(self) -> None:
        """Closes what the step has sent and the session has not taken over."""
        for descriptor in (*self.streams, *self.ranks, self.supervisor_channel):
            if descriptor >= 0:
                os.close(descriptor)
        self.streams, self.ranks, self.supervisor_channel = [], [], -1


class Simulator:
    """Serves the steps of a folder until it is told to end, or the folder has gone."""

    def __init__(self, folder: Path, machine: Machine, ranks_per_node: int) -> None:
        """Raises InputError for a machine that cannot be shared, and HostError if the folder has a simulator."""
        self._folder = folder
        self._machine = machine
        self._ranks_per_node = ranks_per_node
        with refusals_named(machine):
            self._session = _core.Session(machine.description(SEED, ENGINE), ranks_per_node)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        records.keep_environment(folder)
        self._listening = listen(folder)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listening, selectors.EVENT_READ)
        self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._steps: list[_Step] = []
        self._numbers: Counter[str] = Counter()

    def serve(self) -> None:
        """Returns when the folder has gone."""
        while True:
            runs = any(step.is_running for step in self._steps)
            events = self._selector.select(0 if runs else _IDLE_S)
            for key, _ in events:
                if key.data is None:
                    self._accept()
                else:
                    self._hear(key.data)
            if runs:
                for job in self._session.serve(lambda: False, lambda: bool(self._selector.select(0))):
                    step = next(step for step in self._steps if step.job == job)
                    try:
                        self._finish(step)
                    except Exception as error:  # one step's, and the others go on
                        self._end(step, {"refused": _words(error)})
            elif not events and not self._folder.exists():
                return

    def _accept(self) -> None:
        try:
            end, _ = self._listening.accept()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._turn_away()
            return
        caller = _Caller(Channel(end))
        self._selector.register(caller.channel, selectors.EVENT_READ, caller)

    def _turn_away(self) -> None:
        """Tells a caller that there are too many open files, by means of the spare one."""
        os.close(self._spare)
        try:
            with suppress(OSError, ClosedError):
                end, _ = self._listening.accept()
                with end:
                    Channel(end).tell({"refused": "shared network: the simulator has too many open files"})
        finally:
            self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _hear(self, caller: _Caller) -> None:
        descriptors: list[int] = []
        try:
            message, descriptors = caller.channel.hear()
            if caller.step is None:
                caller.step = self._asked(caller.channel, message, descriptors)
                self._steps.append(caller.step)
                self._admit()
            elif caller.step in self._steps:
                self._take(caller.step, message, descriptors)
        except ClosedError:
            self._leave(caller)
        except Exception as error:  # one step's, and the others go on
            with suppress(ClosedError):
                caller.channel.tell({"refused": _words(error)})
            self._leave(caller)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _leave(self, caller: _Caller) -> None:
        """The caller has gone, perhaps before the end of its step."""
        self._selector.unregister(caller.channel)
        caller.channel.close()
        step = caller.step
        if step is not None and step.is_running:
            self._cancel(step)
        elif step in self._steps:
            self._drop(step)

    def _asked(self, channel: Channel, message: Message, descriptors: list[int]) -> _Step:
        """The step that a message asks for. Takes over the descriptors."""
        if len(descriptors) != len(("stdout", "stderr")):
            raise ValueError(descriptors)
        asked = records.StepRequest(**{key: message["step"][key] for key in _REQUEST_KEYS})
        step = _Step(
            channel=channel,
            asked=asked,
            request=self._request(asked, message["mpi"]),
            program=Path(message["program"]),
            is_labelled=message["is_labelled"],
            number=self._numbers[asked.job],
            streams=list(descriptors),
        )
        descriptors.clear()
        self._numbers[asked.job] += 1
        return step

    def _take(self, step: _Step, message: Message, descriptors: list[int]) -> None:
        """Does what the message of a step says. Takes over descriptors that belong to it."""
        if "processes" in message:
            step.processes, step.supervisor = message["processes"], message["supervisor"]
            step.supervisor_channel = descriptors.pop()
        elif "ranks" in message:
            step.ranks += descriptors
            descriptors.clear()
            if len(step.ranks) == 3 * len(step.processes):
                self._start(step)
        elif "cancel" in message and step.is_running:
            self._cancel(step)
        elif "cancel" in message:
            self._end(step, {"refused": "cancelled"})

    def _cancel(self, step: _Step) -> None:
        step.is_cancelled = True
        self._session.cancel(step.job)

    def _request(self, asked: records.StepRequest, mpi: Family) -> RunRequest:
        on = self._machine.with_partition(asked.partition or None)
        nodes = asked.nodes_of_ranks
        if len(nodes) != asked.ranks or any(not 0 <= node < (self._machine.node_count or 0) for node in nodes):
            raise InputError("nodes", nodes, f"{asked.ranks} nodes of {self._machine.name}")
        if max(Counter(nodes).values()) > self._ranks_per_node:
            raise InputError("ranks", asked.ranks, f"at most {self._ranks_per_node} on a node")
        return RunRequest(
            command=tuple(asked.command),
            machine=on,
            ranks=asked.ranks,
            ranks_per_node=asked.ranks_per_node,
            mapping="linear" if asked.partition else "given",
            nodes=tuple(nodes),
            compute="none",
            size=None,
            engine=ENGINE,
            mpi=mpi,
            trap_tsc=False,
            seed=SEED,
        )

    def _admit(self) -> None:
        """Steps whose nodes are free begin, in the order in which they came: each has its nodes' cards to itself."""
        while (step := self._next_step()) is not None:
            with suppress(ClosedError):  # the selector says so, too
                try:
                    self._prepare(step)
                except ClosedError:
                    raise
                except Exception as error:  # one step's, and the others go on
                    self._end(step, {"refused": _words(error)})

    def _next_step(self) -> _Step | None:
        """The first step whose nodes are free, also of those that wait before it: nobody overtakes them."""
        taken = {node for step in self._steps if step.job >= 0 for node in step.request.nodes}
        for step in self._steps:
            if step.job >= 0:
                continue
            if taken.isdisjoint(step.request.nodes):
                return step
            taken.update(step.request.nodes)
        return None

    def _prepare(self, step: _Step) -> None:
        options = session_options(step.request.machine)
        options.output_fd, options.error_fd = step.streams
        options.tag_output = step.is_labelled
        options.set_program(step.program)
        options.start_launcher = lambda library: self._launcher(step, library)
        with refusals_named(self._machine):
            step.job = self._session.add(_core.SessionJob(list(step.request.nodes), options), False)
        step.channel.tell({"mapping": self._session.mapping_path(step.job)})

    def _launcher(self, step: _Step, library: str) -> _core.LateLauncher:
        """The step starts the library's own launcher, as a process of its own."""
        until = time.monotonic() + _LAUNCHER_S
        try:
            answers = select.poll()
            answers.register(step.channel, select.POLLIN)
            step.channel.tell({"launcher": library})
            while answers.poll(max(0.0, until - time.monotonic()) * 1000):
                message, descriptors = step.channel.hear()
                for descriptor in descriptors:  # nothing that a step sends now has any
                    os.close(descriptor)
                if "launched" in message:
                    return _core.LateLauncher(**message["launched"])
                self._take(step, message, [])
        except ClosedError:
            return _core.LateLauncher(refused="the step has ended")
        except Exception as error:  # one step's, and the others go on
            return _core.LateLauncher(refused=_words(error))
        return _core.LateLauncher(refused=f"the step has not started the launcher within {_LAUNCHER_S:g} s")

    def _start(self, step: _Step) -> None:
        ranks = [
            _core.RankProcess(process, *step.ranks[3 * rank : 3 * rank + 3])
            for rank, process in enumerate(step.processes)
        ]
        step.ranks = []  # the session's now, also if it refuses them
        with refusals_named(self._machine):
            self._session.start(step.job, _core.StartedJob(ranks, step.supervisor, step.supervisor_channel))
        step.is_running = True

    def _finish(self, step: _Step) -> None:
        report = self._session.report(step.job)
        start_ps, limit_ps = self._session.began_ps(step.job), self._session.limit_ps(step.job)
        result = program_result(step.request, SessionOutcome(report=report, stdout=None, stderr=None), step.began)
        record = records.StepRecord(
            **asdict(step.asked),
            step=step.number,
            start_ps=start_ps,
            ended_ps=[round(rank.virtual_time_us * PS_PER_US) for rank in result.ranks],
            outcome=result.outcome,
            exit_status=result.exit_status,
            messages=result.messages,
            trace_hash=result.trace_hash,
            limit_ps=limit_ps,
            is_cut=step.is_cancelled and start_ps is not None and result.outcome == "interrupted",
        )
        lines = summary(_cancelled(result) if step.is_cancelled else result)
        try:
            records.keep(self._folder, record)
        except HostError as error:
            lines = f"apenet: {error}\n{lines}"
        if start_ps is not None:
            lines = f"apenet: began at {show_time(start_ps / PS_PER_US)} of the shared network\n{lines}"
        self._end(step, {"ended": result.exit_status, "said": _cut(lines)})

    def _end(self, step: _Step, message: Message) -> None:
        """Tells the step its end; it hangs up then."""
        self._drop(step)  # first, because the step waits until its supervisor has ended
        with suppress(ClosedError):
            step.channel.tell(message)

    def _drop(self, step: _Step) -> None:
        self._steps.remove(step)
        step.close()
        if step.job >= 0:
            self._session.forget(step.job)
        self._admit()


def _cancelled(result: RunResult) -> RunResult:
    """The result of a step that was cancelled, perhaps after its end."""
    if result.outcome not in ("limit", "interrupted"):
        return result
    return replace(result, outcome="interrupted", message="cancelled")


def _words(error: Exception) -> str:
    """What a step is told of what it has caused."""
    if isinstance(error, ApenetError):
        return _cut(str(error))
    what = "no step of this version" if isinstance(error, LookupError | TypeError | ValueError) else "shared network"
    return _cut(f"{what}: {error!r}")


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_WORDS else text[:_MOST_WORDS] + " ..."


def is_listening(folder: Path) -> bool:
    """Whether a simulator serves the folder."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as end:
        try:
            end.connect(str(folder / SOCKET))
        except OSError:
            return False
    return True
