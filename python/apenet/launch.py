"""Starts the ranks of a run: their environment, pipes and process manager sockets, as `_core.Session` takes them."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import resource
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from apenet import _core
from apenet.errors import HostError, InputError
from apenet.toolchain import PROVIDER, SHIM, OpenMpi, environment_bin, search_path

_FDS_PER_RANK = 7  # both ends of two pipes and a socket, and standard input, at the moment of the start
_SPARE_FDS = 128

_ADDR_NO_RANDOMIZE = 0x0040000  # linux/personality.h
_PERSONALITY_ASKED = 0xFFFFFFFF

_SERVER = Path(__file__).with_name("rank_server.py")
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h

# Python ignores these; a program expects the default.
_SIGNALS_TO_RESTORE = (signal.SIGPIPE, signal.SIGXFSZ)

# Every message crosses the simulated network, and nothing in the MPI library waits on the wall clock.
_MPI_ENVIRONMENT = {
    "FI_PROVIDER": "apenet",
    "FI_PROVIDER_PATH": str(PROVIDER.parent),
    # MPICH: its device is ch4:ucx,ofi and takes UCX unless told otherwise.
    "MPIR_CVAR_CH4_NETMOD": "ofi",
    "MPIR_CVAR_NOLOCAL": "1",
    # Without it UCX, although unused, reads the clock for 40 ms at start-up.
    "UCX_MEM_MMAP_HOOK_MODE": "none",
}

# What a launcher of the MPI library hands on, and does not have itself.
_RANK_ONLY = ("LD_PRELOAD", "APENET_MAPPING", "APENET_RECORD")

# Open MPI: the matching layer over libfabric, and nothing beside it.
_OPENMPI_PARAMETERS = {
    "pml": "cm",
    "mtl": "ofi",
    "btl": "self",
}

# The same hashes and one thread in every run: what a program computes must not depend on the host.
_DEFAULTS = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass
class Launched:
    """The processes of a run."""

    ranks: list[_core.RankProcess] = field(default_factory=list)
    process_ids: list[int] = field(default_factory=list)
    launcher_id: int = 0


def rank_environment(mapping_path: str) -> dict[str, str]:
    """The environment of every rank, but for its number and its process manager."""
    for library in (SHIM, PROVIDER):
        if not library.exists():
            raise HostError(f"{library} is missing: the package is not completely installed")
    environment = {**_DEFAULTS, **os.environ, **_MPI_ENVIRONMENT}
    environment["APENET_MAPPING"] = mapping_path
    environment["PATH"] = search_path()
    environment["LD_PRELOAD"] = _joined(" ", str(SHIM), environment.get("LD_PRELOAD"))
    # Programs built with this environment's mpicc find its libmpi, unless they know a better one themselves.
    environment["LD_LIBRARY_PATH"] = _joined(
        os.pathsep, environment.get("LD_LIBRARY_PATH"), str(environment_bin().parent / "lib")
    )
    return environment


def _joined(separator: str, *parts: str | None) -> str:
    return separator.join(part for part in parts if part)


def start_ranks(program: Path, command: Sequence[str], count: int, environment: dict[str, str]) -> Launched:
    """Starts one process a rank; its process manager is the simulator's (PMI-1 over a socket pair).

    When one cannot be started, those that run are ended, and InputError says why.
    """
    _raise_file_limit(count)
    launched = Launched()
    with ExitStack() as given:
        ends = [_RankEnds(rank, count, given) for rank in range(count)]
        start = _fork_ranks if is_python_script(program, command) else _start_each
        try:
            start(program, command, environment, ends, launched)
        except OSError as error:
            for end in ends:
                end.close_ours()
            for process_id in launched.process_ids:
                os.killpg(process_id, signal.SIGKILL)
                os.waitpid(process_id, 0)
            raise InputError("program", str(program), f"a program that can be started ({error.strerror})") from error
    launched.ranks = [
        _core.RankProcess(process_id, *end.ours) for process_id, end in zip(launched.process_ids, ends, strict=True)
    ]
    return launched


class _RankEnds:
    """The descriptors that connect a rank to be with the simulator."""

    def __init__(self, rank: int, count: int, given: ExitStack) -> None:
        pipes = _Pipes()
        ours, theirs = socket.socketpair()
        self.ours = (ours.detach(), *pipes.read_ends)
        self.streams = (_standard_input() if rank == 0 else os.open(os.devnull, os.O_RDONLY), *pipes.write_ends)
        self.manager = theirs.detach()
        for descriptor in (*self.streams, self.manager):
            given.callback(os.close, descriptor)
        self.environment = {
            "APENET_RANK": str(rank),
            "PMI_FD": str(self.manager),
            "PMI_RANK": str(rank),
            "PMI_SIZE": str(count),
        }

    def close_ours(self) -> None:
        """When there is no run that would."""
        for descriptor in self.ours:
            os.close(descriptor)


def _start_each(
    program: Path, command: Sequence[str], environment: dict[str, str], ends: list[_RankEnds], launched: Launched
) -> None:
    for end in ends:
        # The manager onto itself: this keeps the descriptor open in the new program.
        process_id = _spawn(
            program, command, {**environment, **end.environment}, end.streams, [(end.manager, end.manager)]
        )
        launched.process_ids.append(process_id)


def is_python_script(program: Path, command: Sequence[str]) -> bool:
    """Whether this is an interpreter of Python with a script that compiles, and no option before it."""
    if re.fullmatch(r"python3?(\.\d+)?", program.name) is None or len(command) < 2:  # noqa: PLR2004
        return False
    script = Path(command[1])
    if command[1].startswith("-") or not script.is_file():
        return False
    try:
        compile(script.read_bytes(), str(script), "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError):
        return False
    return True


def _fork_ranks(
    program: Path, command: Sequence[str], environment: dict[str, str], ends: list[_RankEnds], launched: Launched
) -> None:
    """Starts the ranks of a Python script from one interpreter; see rank_server.py."""
    environment = dict(environment)
    mapping = {"APENET_MAPPING": environment.pop("APENET_MAPPING")}  # the server itself is no rank
    descriptors = [descriptor for end in ends for descriptor in (*end.streams, end.manager)]
    plan = {
        "descriptors": descriptors,
        "ranks": [
            {"environment": mapping | end.environment, "descriptors": [*end.streams, end.manager]} for end in ends
        ],
    }
    with ExitStack() as stack:
        file = stack.enter_context(os.fdopen(os.memfd_create("apenet-plan"), "w+"))
        json.dump(plan, file)
        file.seek(0)
        answer, report = os.pipe()
        answers = stack.enter_context(os.fdopen(answer))
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            kept = [file.fileno(), *descriptors]
            with _adopting_orphans():
                server = _spawn(
                    program,
                    (command[0], str(_SERVER), str(file.fileno()), *command[1:]),
                    environment,
                    (nothing, report, 2),
                    [(descriptor, descriptor) for descriptor in kept],
                )
                os.close(report)
                report = -1
                said = answers.read()
                _, status = os.waitpid(server, 0)
        finally:
            os.close(nothing)
            if report >= 0:
                os.close(report)
    if status != 0:
        raise OSError(errno.EIO, f"its interpreter ended with status {os.waitstatus_to_exitcode(status)} at the start")
    launched.process_ids += json.loads(said)


@contextmanager
def _adopting_orphans() -> Iterator[None]:
    """While this lasts, children whose parent ends become this process's: it is told how they end."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    try:
        yield
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


class _Pipes:
    """Standard output and error of a process to be."""

    def __init__(self) -> None:
        (read_out, write_out), (read_err, write_err) = os.pipe(), os.pipe()
        self.read_ends = (read_out, read_err)
        self.write_ends = (write_out, write_err)


def _spawn(
    program: Path,
    command: Sequence[str],
    environment: dict[str, str],
    streams: tuple[int, int, int],
    kept: Sequence[tuple[int, int]] = (),
) -> int:
    """Starts a process, leader of its own group, with these standard streams, and descriptors under these numbers."""
    with _same_addresses():
        return os.posix_spawn(
            program,
            tuple(command),
            environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, stream, number) for number, stream in enumerate(streams)]
            + [(os.POSIX_SPAWN_DUP2, *pair) for pair in kept],
            setpgroup=0,
            setsigmask=(),
            setsigdef=_SIGNALS_TO_RESTORE,
        )


@contextmanager
def _same_addresses() -> Iterator[None]:
    """What starts here has its memory at the same addresses in every run: a card with a TLB sees them.

    Where the host forbids it, only which pages are the same, and offsets in them, count for such a card: both are the
    same in every run but for the stack, which then begins anywhere in a page.
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


def _standard_input() -> int:
    """What the run reads, for its rank 0; but not a terminal, in whose foreground no rank is."""
    try:
        if not os.isatty(0):
            return os.dup(0)
    except OSError:
        pass  # closed
    return os.open(os.devnull, os.O_RDONLY)


def start_openmpi(
    openmpi: OpenMpi, program: Path, command: Sequence[str], count: int, environment: dict[str, str]
) -> Launched:
    """Starts the ranks through Open MPI's own launcher, whose process manager its library needs."""
    environment = dict(environment)
    # The launcher itself is no rank: the libraries that ranks load are for them alone.
    rank_only = {name: environment.pop(name) for name in _RANK_ONLY if name in environment}
    environment.update({f"OMPI_MCA_{key}": value for key, value in _OPENMPI_PARAMETERS.items()})
    arguments = [str(openmpi.mpirun), "--oversubscribe", "--bind-to", "none", "-n", str(count)]
    if os.geteuid() == 0:
        arguments.append("--allow-run-as-root")
    for name in sorted({*_MPI_ENVIRONMENT, *_DEFAULTS, "LD_LIBRARY_PATH", "PATH"}):
        arguments += ["-x", name]
    for name, value in rank_only.items():
        arguments += ["-x", f"{name}={value}"]
    arguments += [str(program), *command[1:]]
    pipes = _Pipes()
    stdin = _standard_input()
    try:
        launcher_id = _spawn(openmpi.mpirun, arguments, environment, (stdin, *pipes.write_ends))
    except OSError:
        for descriptor in pipes.read_ends:
            os.close(descriptor)
        raise
    finally:
        for descriptor in (stdin, *pipes.write_ends):
            os.close(descriptor)
    ranks = [_core.RankProcess(0, -1, *pipes.read_ends), *(_core.RankProcess() for _ in range(count - 1))]
    return Launched(ranks, [], launcher_id)


def _raise_file_limit(ranks: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = ranks * _FDS_PER_RANK + _SPARE_FDS
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard not in (resource.RLIM_INFINITY,) and hard < needed:
        raise HostError(f"{ranks} ranks need {needed} open files, this user may have {hard} (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """Collects SIGINT, SIGTERM and SIGHUP while a run lasts, so that it ends its ranks before it ends itself."""
    seen: list[int] = []
    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    previous = {number: signal.signal(number, lambda number, _frame: seen.append(number)) for number in wanted}
    try:
        yield seen
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
