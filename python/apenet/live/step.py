"""A step of a job on a shared network: its processes, which this one starts, and what they print."""

from __future__ import annotations

import os
import selectors
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from apenet.base.calls import named_call
from apenet.base.errors import FailedError
from apenet.host import launch
from apenet.host.mpi_library import loader_variables
from apenet.live.messages import MOST_DESCRIPTORS, Channel, ClosedError, Message, connect, lost
from apenet.live.records import StepRequest, own_environment
from apenet.live.simulator import ENGINE, SEED
from apenet.machine import Machine
from apenet.run.program_request import RunRequest, program_request, session_options
from apenet.run.session import PreparedJob, SessionJob

_CHECK_S = 0.1
_PER_MESSAGE = MOST_DESCRIPTORS // 3


def run(
    folder: Path,
    machine: Machine,
    *,
    job: str,
    partition: str,
    nodes: Sequence[int],
    ranks_per_node: int,
    command: Sequence[str],
    is_labelled: bool = False,
    say: Callable[[str], None],
) -> int:
    """Runs a step on the network that the simulator of the folder has, and returns its exit status.

    `partition`: as --partition takes it, with the ranks in order; if it is empty, `nodes` has the node of each rank.
    A signal that would end this process ends the step. Raises InputError for a program or a number of ranks that cannot
    be, HostError if there is no simulator, or it ends before the step.

    The step has a process and a process group of its own. If this one is killed, as batch systems do with what is left
    when a script has ended, the step is cancelled, and not torn out of its virtual time.
    """
    life, end_of_life = os.pipe()
    child = os.fork()
    if child:
        os.close(life)
        raise SystemExit(_wait_for(child))
    os.setpgid(0, 0)
    os.close(end_of_life)
    request, program = program_request(
        command,
        n=len(nodes),
        machine=machine.with_partition(partition or None),
        ranks_per_node=ranks_per_node,
        map="linear" if partition else nodes,
        engine=ENGINE,
        mpi="auto",
        seed=SEED,
    )
    asked = StepRequest(
        job=job,
        nodes_of_ranks=list(request.nodes),
        partition=partition,
        ranks=len(nodes),
        ranks_per_node=ranks_per_node,
        command=list(request.command),
        folder=str(Path.cwd()),
        environment=own_environment(folder),
    )
    with ExitStack() as stack:
        channel = connect(folder)
        stack.callback(channel.close)
        seen = stack.enter_context(launch.interrupts())
        prepared = PreparedJob(_session_job(request, program), stack)
        pumps = [_Pump(stream) for stream in (sys.stdout, sys.stderr)]
        try:
            channel.tell(
                {
                    "step": asdict(asked),
                    "program": str(program),
                    "mpi": request.mpi,
                    "is_labelled": is_labelled,
                },
                [pump.write_end for pump in pumps],
            )
            for pump in pumps:
                pump.close_write_end()
            ended = _Conversation(channel, prepared, seen, life, stack).until_end()
        except ClosedError as error:
            raise lost(folder) from error
        finally:
            channel.close()
            for pump in pumps:
                pump.finish()
        if "refused" in ended and seen:
            say(f"apenet: {ended['refused']}")
            return 128 + seen[0]
        if "refused" in ended:
            raise FailedError(ended["refused"])
        if ended["said"]:
            say(ended["said"])
        words = prepared.openmpi.words()
        if words:
            os.write(2, words)
        return 128 + seen[0] if seen else int(ended["ended"])


def _wait_for(child: int) -> int:
    """Passes on signals until the child ends, and returns its status as a shell shows it."""
    with launch.interrupts() as seen, selectors.DefaultSelector() as selector:
        selector.register(os.pidfd_open(child), selectors.EVENT_READ)
        passed_on = 0
        while not selector.select(_CHECK_S):
            for number in seen[passed_on:]:
                os.kill(child, number)
            passed_on = len(seen)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _session_job(request: RunRequest, program: Path) -> SessionJob:
    return SessionJob(
        program=program,
        command=request.command,
        nodes=request.nodes,
        options=session_options(request.machine),
        capture=False,
        extra={},
        loaded=loader_variables("intel" if request.mpi == "intel" else "auto"),
    )


class _Conversation:
    """What this process does as the simulator tells it."""

    def __init__(self, channel: Channel, prepared: PreparedJob, seen: list[int], life: int, stack: ExitStack) -> None:
        self._channel = channel
        self._prepared = prepared
        self._seen = seen
        self._life = life
        self._stack = stack
        self._has_cancelled = False

    def until_end(self) -> Message:
        """Raises ClosedError if the simulator has ended."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._channel, selectors.EVENT_READ)
            selector.register(self._life, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select(_CHECK_S)]
                if self._life in ready:
                    selector.unregister(self._life)
                    self._seen.append(signal.SIGKILL)
                if self._channel in ready:
                    message, _ = self._channel.hear()
                    if "ended" in message or "refused" in message:
                        return message
                    self._do(message)
                if self._seen and not self._has_cancelled:
                    self._has_cancelled = True
                    self._channel.tell({"cancel": signal.Signals(self._seen[0]).name})
                self._prepared.openmpi.check()

    def _do(self, message: Message) -> None:
        if "mapping" in message and not self._seen:
            self._start(message["mapping"])
        if "launcher" in message:
            launcher = self._prepared.openmpi.start(message["launcher"])
            self._channel.tell(
                {
                    "launched": {
                        "process_id": launcher.process_id,
                        "refused": launcher.refused,
                        "pipes": list(launcher.pipes),
                    }
                }
            )

    def _start(self, mapping: str) -> None:
        launched = self._prepared.launch(mapping, self._stack)
        self._channel.tell(
            {"processes": [rank.process_id for rank in launched.ranks], "supervisor": launched.supervisor.process_id},
            [launched.supervisor.fileno()],
        )
        for first in range(0, len(launched.ranks), _PER_MESSAGE):
            some = launched.ranks[first : first + _PER_MESSAGE]
            descriptors = [one for rank in some for one in rank.descriptors]
            self._channel.tell({"ranks": len(some)}, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)


class _Pump:
    """A pipe for what the step prints. A reader who is slow holds up this process, and not the simulator.

    What he has not read is in this process's memory, and is as long as the output.
    """

    def __init__(self, stream: TextIO) -> None:
        stream.flush()
        with named_call("pipe"):
            self._read_end, self.write_end = os.pipe()
        self._to = stream.fileno()
        self._parts: list[bytes] = []
        self._has_part = threading.Condition()
        self._is_at_end = False
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._write)]
        for thread in self._threads:
            thread.start()

    def close_write_end(self) -> None:
        """The simulator has it."""
        os.close(self.write_end)
        self.write_end = -1

    def finish(self) -> None:
        """Returns when all is written."""
        if self.write_end >= 0:
            self.close_write_end()
        for thread in self._threads:
            thread.join()

    def _read(self) -> None:
        while part := os.read(self._read_end, 1 << 16):
            with self._has_part:
                if self._is_at_end:  # nobody reads what this process writes
                    break
                self._parts.append(part)
                self._has_part.notify()
        os.close(self._read_end)
        with self._has_part:
            self._is_at_end = True
            self._has_part.notify()

    def _write(self) -> None:
        while True:
            with self._has_part:
                self._has_part.wait_for(lambda: self._parts or self._is_at_end)
                if not self._parts:
                    return
                part = b"".join(self._parts)
                self._parts.clear()
            try:
                while part:
                    part = part[os.write(self._to, part) :]
            except OSError:
                with self._has_part:
                    self._is_at_end = True
                    self._parts.clear()
                return
