"""The supervisor of a run: the process that starts the ranks, reports their exits, and ends them with the run."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from apenet.base.calls import memory_file, named_call
from apenet.base.errors import LimitError
from apenet.base.tempfolder import remove_abandoned_folders
from apenet.host.toolchain import SUPERVISOR

_NOTICE = struct.Struct("=iii20x")  # src/runtime/supervisor/notice.hpp
_STARTED, _REFUSED, _ENDED = range(3)
_NO_SUBREAPER = 3  # its exit status, src/runtime/supervisor/main.cpp

_ADDR_NO_RANDOMIZE = 0x0040000  # linux/personality.h
_PERSONALITY_ASKED = 0xFFFFFFFF


@dataclass(frozen=True)
class Planned:
    """A process to start: its own variables, its standard streams, and descriptors that keep their numbers."""

    streams: tuple[int, int, int]
    environment: Mapping[str, str] = field(default_factory=dict)
    kept: Sequence[int] = ()
    moved: Mapping[int, int] = field(default_factory=dict)
    """Further descriptors, and the numbers that they get."""


class Supervisor:
    """Runs processes of one program, each the leader of its own process group.

    When this process ends, for any reason, the supervisor kills all of them and all processes that they started.
    """

    def __init__(
        self,
        program: Path,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        processes: Sequence[Planned],
        folder_variables: Sequence[str] = (),
    ) -> None:
        """Starts the supervisor. `folder_variables` are set to a temporary folder that is removed at the end."""
        self.process_ids: list[int] = []
        self._processes = len(processes)
        self._has_folder = bool(folder_variables)
        if self._has_folder:
            remove_abandoned_folders()
        plan = _plan(program, arguments, environment, processes, folder_variables)
        with named_call("socketpair"):
            self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process_id = 0
        with ExitStack() as stack:
            stack.enter_context(theirs)
            file = stack.enter_context(os.fdopen(memory_file("apenet-plan"), "w+b"))
            file.write(plan)
            file.seek(0)
            nothing = os.open(os.devnull, os.O_RDWR)
            stack.callback(os.close, nothing)
            given = {theirs.fileno(), file.fileno(), *(fd for process in processes for fd in _descriptors(process))}
            with _same_addresses():
                self._process_id = os.posix_spawn(
                    SUPERVISOR,
                    (SUPERVISOR.name, str(os.getpid()), str(file.fileno()), str(theirs.fileno())),
                    # If this process is a rank of another run, its shim is not to make the new run a part of that one.
                    {name: value for name, value in os.environ.items() if not name.startswith("LD_")}
                    | {"APENET_OUTSIDE": "1"},
                    file_actions=[
                        # Standard streams last, because a passed descriptor may have one of their numbers.
                        *((os.POSIX_SPAWN_DUP2, fd, fd) for fd in sorted(given)),
                        *((os.POSIX_SPAWN_DUP2, nothing, fd) for fd in range(3) if fd not in given),
                    ],
                    setpgroup=0,
                )

    def start(self) -> None:
        """Waits until all processes run. OSError if one cannot start; the caller then ends the supervisor."""
        while len(self.process_ids) < self._processes:
            notice = self._channel.recv(_NOTICE.size)
            if not notice:
                self._explain_end()
            what, process_id, status = _NOTICE.unpack(notice)
            if what == _STARTED:
                self.process_ids.append(process_id)
            elif what == _REFUSED:
                raise OSError(status, os.strerror(status))

    @property
    def process_id(self) -> int:
        """The supervisor's own process id, until `end`."""
        return self._process_id

    def _explain_end(self) -> NoReturn:
        """Raises LimitError for a supervisor that has ended at the start."""
        with suppress(ChildProcessError):
            _, status = os.waitpid(self._process_id, 0)
            self._process_id = 0
            if os.waitstatus_to_exitcode(status) == _NO_SUBREAPER:
                with named_call("prctl(PR_SET_CHILD_SUBREAPER) of apenet-supervisor"):
                    raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        raise LimitError(
            f"this run cannot start: {SUPERVISOR.name} has ended at once; see ulimit -a and the host's log"
        )

    def fileno(self) -> int:
        """The descriptor of the channel on which notices arrive."""
        return self._channel.fileno()

    def has_lost_one(self) -> bool:
        """Whether a process that the supervisor started has ended, or the supervisor itself."""
        if not select.select([self._channel], [], [], 0)[0]:
            return False
        notice = self._channel.recv(_NOTICE.size)
        return not notice or (_NOTICE.unpack(notice)[0] == _ENDED and _NOTICE.unpack(notice)[1] in self.process_ids)

    def end(self) -> None:
        """Kills all processes and their descendants, and waits until they are gone."""
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)  # another process may have this end, too
        self._channel.close()
        if self._process_id:
            with suppress(ChildProcessError):  # a host program that lets the system reap its children
                os.waitpid(self._process_id, 0)
            self._process_id = 0
        if self._has_folder:  # a supervisor that was killed has left it
            remove_abandoned_folders()


def _descriptors(process: Planned) -> Iterator[int]:
    yield from process.streams
    yield from process.kept
    yield from process.moved


def _numbers(process: Planned) -> Iterator[int]:
    """The numbers that the descriptors get in the process."""
    yield from range(len(process.streams))
    yield from process.kept
    yield from process.moved.values()


def _plan(
    program: Path,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    processes: Sequence[Planned],
    folder_variables: Sequence[str],
) -> bytes:
    """The plan in the format that src/runtime/supervisor/plan.cpp reads."""
    texts = [str(program)]
    own = {*folder_variables, *(name for process in processes for name in process.environment)}
    common = {name: value for name, value in environment.items() if name not in own}
    for part in (arguments, _variables(common), folder_variables):
        texts += _listed(part)
    texts.append(str(len(processes)))
    for process in processes:
        texts += _listed(_variables(process.environment))
        texts += _listed(str(fd) for fd in _descriptors(process))
        texts += _listed(str(fd) for fd in _numbers(process))
    return b"".join(os.fsencode(text) + b"\0" for text in texts)


def _listed(texts: Iterable[str]) -> list[str]:
    kept = list(texts)
    return [str(len(kept)), *kept]


def _variables(environment: Mapping[str, str]) -> Iterator[str]:
    return (f"{name}={value}" for name, value in environment.items())


@contextmanager
def _same_addresses() -> Iterator[None]:
    """Turns off address randomisation for processes started here, because a card with a TLB sees addresses.

    If the host forbids it, runs still repeat: such a card uses only page identity and offsets within pages, which are
    the same in every run, except for the stack, which then begins anywhere within a page.
    """
    personality = ctypes.CDLL(None).personality
    personality.argtypes = [ctypes.c_ulong]
    before = personality(_PERSONALITY_ASKED)
    if before >= 0:
        personality(before | _ADDR_NO_RANDOMIZE)
    try:
        yield
    finally:
        if before >= 0:
            personality(before)
