"""Starts the ranks of a run with the environment, pipes and process manager sockets that `_core.Session` expects."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import resource
import signal
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from apenet import _core
from apenet.base.calls import memory_file, named_call
from apenet.base.errors import HostError, InputError, LimitError
from apenet.host import inherited
from apenet.host.streams import OutputFolder, RankStreams
from apenet.host.supervisor import Planned, Supervisor
from apenet.host.toolchain import PROVIDER, SHIM, SOCKETS, SUPERVISOR, search_path
from apenet.host.unstarted import expected_program

_FDS_PER_RANK = 7  # during the start: both ends of two pipes and a socket, and standard input
_SPARE_FDS = 128
# The number of the process manager's socket in every rank: the numbers of this process depend on what it has inherited.
# Below the shim's own (lifeline.cpp) and the least limit of open files (_raise_file_limit), above what programs expect.
_MANAGER = 100

_SERVER = Path(__file__).with_name("rank_server.py")
_STANDARD_ERROR = 2
_PLAIN_LIBRARY = re.compile(r"(lib(mpi|mpi_abi|mpicxx|c|m|pthread|dl|rt|gcc_s|stdc\+\+)|ld-linux-.*)\.so[.0-9]*")

# With these settings every message crosses the simulated network, and the MPI library never waits for wall time.
_MPI_ENVIRONMENT = {
    "FI_PROVIDER": "apenet",
    "FI_PROVIDER_PATH": str(PROVIDER.parent),
    # MPICH's device is ch4:ucx,ofi and uses UCX by default.
    "MPIR_CVAR_CH4_NETMOD": "ofi",
    "MPIR_CVAR_NOLOCAL": "1",
    # MPICH clears all cells of this queue in shared memory, 1 MiB, which a rank alone on its node does not use.
    "MPIR_CVAR_CH4_SHM_POSIX_IQUEUE_NUM_CELLS": "1",
    # MPICH's active messages also do what no atomic operation of libfabric does.
    "MPIR_CVAR_CH4_OFI_ENABLE_ATOMICS": "0",
    # The protocol of our process manager; overrides the user's environment.
    "MPIR_CVAR_PMI_VERSION": "1",
    # Otherwise UCX, although unused, reads the clock for 40 ms at start-up.
    "UCX_MEM_MMAP_HOOK_MODE": "none",
}

# Equal hashes and one thread in every run, so that a program's results do not depend on the host. oneCCL's threads wait
# for each other by memory, and the order of threads sees it only if they yield.
_DEFAULTS = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "CCL_YIELD": "sched_yield"}

# How long a waiting thread of OpenMP spins before it sleeps: turns of GCC's library, milliseconds of LLVM's and of
# Intel's. The usual values where the run uses all cores (--no-pin), and the threads of all ranks have one each.
# Otherwise one that spins keeps the core from one that works: HPCG with 4 ranks of 2 threads took 90 s on 2 busy cores,
# and takes 1.6 s. Of equal length, because the length of the environment moves the stack.
_OPENMP_SPINS = {"GOMP_SPINCOUNT": "300000", "KMP_BLOCKTIME": "200"}
_OPENMP_SLEEPS = {"GOMP_SPINCOUNT": "001000", "KMP_BLOCKTIME": "000"}

# The environment of a run besides LD_PRELOAD. The shim gives these variables to each program that a process of the run
# starts, whatever that process passes on (src/runtime/shim/run_environment.cpp), and gets the names as APENET_KEPT, in
# this order: the first that fits a variable decides.
_KEPT = {
    # Have the run's values, also where the program sets another one.
    "=": (
        *_MPI_ENVIRONMENT,
        "APENET_COMPUTE_REPORT",
        "APENET_COMPUTE_TABLE",
        "APENET_LIFELINE",
        "APENET_MAPPING",
        "APENET_RANK",
        "APENET_RECORD",
        "APENET_TRAP_TSC",
    ),
    # Have them unless the program sets another one; * stands for all that begin so. Open MPI needs HOME.
    "?": (*_DEFAULTS, *_OPENMP_SPINS, "APENET_CLIENT", "HOME", "PMI_*"),
    # Lists, to which the run's parts are added.
    "+": ("LD_LIBRARY_PATH",),
}


@dataclass(frozen=True)
class LaunchedRank:
    """A process of a run, and our ends of its process manager, standard output and error."""

    process_id: int
    descriptors: tuple[int, int, int]


@dataclass
class Launched:
    """The processes of a run."""

    supervisor: Supervisor
    ranks: list[LaunchedRank]

    def end(self) -> None:
        """Ends all processes of the run."""
        self.supervisor.end()


def rank_environment(
    mapping_path: str,
    lifeline: int,
    program: Path,
    loader_variables: Mapping[str, str],
    extra: Mapping[str, str],
    *,
    ranks: int,
    cores: int,
    has_sockets: bool = False,
) -> dict[str, str]:
    """The environment of all ranks of this program, without rank number and process manager.

    `loader_variables` lead to the MPI library. `lifeline` is the read end of a pipe: the processes of the run are
    killed when its write end is closed. `extra`: what is set for this program. `cores`: that are
    for the ranks alone, 0 unless they use all. `has_sockets`: those of the simulated nodes.
    """
    for library in (SHIM, PROVIDER, SUPERVISOR):
        if not library.exists():
            raise HostError(f"{library} is missing: the package is not completely installed")
    if inherited.separates(SHIM):
        raise HostError(
            f"{SHIM} cannot be preloaded: LD_PRELOAD separates libraries by spaces and colons; install it "
            "in a folder without them"
        )
    chosen = {**inherited.environment(), **extra}
    environment = {**_DEFAULTS, **_openmp_waits(ranks, cores, chosen), **inherited.environment(), **_MPI_ENVIRONMENT}
    environment["APENET_MAPPING"] = mapping_path
    environment["APENET_LIFELINE"] = _core.descriptor_path(lifeline)
    environment["APENET_KEPT"] = " ".join(f"{kind}{name}" for kind, names in _KEPT.items() for name in names)
    environment["PATH"] = search_path()
    if has_sockets:
        environment["LD_PRELOAD"] = f"{environment.get('LD_PRELOAD', '')} {SOCKETS}".strip()
        # Names of nodes: the C library finds them, and Go's own search would ask a server.
        if "netdns=" not in environment.get("GODEBUG", ""):
            environment["GODEBUG"] = f"{environment.get('GODEBUG', '')},netdns=cgo".lstrip(",")
    environment.update(inherited.preloaded(SHIM, program, environment))
    return {**environment, **loader_variables, **extra}


def _openmp_waits(ranks: int, cores: int, chosen: Mapping[str, str]) -> dict[str, str]:
    if any(name in chosen for name in ("OMP_WAIT_POLICY", *_OPENMP_SPINS)):
        return {}
    levels = chosen.get("OMP_NUM_THREADS", "1").split(",")
    numbers = [int(level) for level in levels if re.fullmatch(r"\s*[0-9]{1,9}\s*", level)]
    return _OPENMP_SPINS if ranks * math.prod(numbers) <= cores else _OPENMP_SLEEPS


def start_ranks(
    program: Path,
    command: Sequence[str],
    count: int,
    environment: dict[str, str],
    folder: OutputFolder | None = None,
    *,
    reads_input: bool = True,
) -> Launched:
    """Starts one process per rank, with the simulator as its process manager (PMI-1 over a socket pair).

    `reads_input`: rank 0 has this process's standard input.
    If one of them cannot be started, ends the others and raises InputError.
    """
    _raise_file_limit(count)
    with ExitStack() as given, ExitStack() as ours:
        ends = [
            _RankEnds(rank, count, folder, given, ours, reads_input=reads_input and rank == 0) for rank in range(count)
        ]
        try:
            supervisor, process_ids = _start(program, command, environment, ends)
        except OSError as error:
            raise InputError("program", str(program), expected_program(program, error)) from error
        ours.pop_all()
    ranks = [LaunchedRank(process_id, end.ours) for process_id, end in zip(process_ids, ends, strict=True)]
    return Launched(supervisor, ranks)


class _RankEnds:
    """The descriptors that connect a future rank with the simulator: `given` to the rank, and `ours`."""

    def __init__(
        self,
        rank: int,
        count: int,
        folder: OutputFolder | None,
        given: ExitStack,
        ours: ExitStack,
        *,
        reads_input: bool,
    ) -> None:
        streams = RankStreams(rank, folder, given, ours)
        with named_call("socketpair"):
            our_end, theirs = socket.socketpair()
        self.ours = (our_end.detach(), *streams.read_ends)
        stdin = _standard_input() if reads_input else os.open(os.devnull, os.O_RDONLY)
        self.streams = (stdin, *streams.write_ends)
        self.manager = theirs.detach()
        for stack, descriptors in ((given, (stdin, self.manager)), (ours, self.ours[:1])):
            for descriptor in descriptors:
                stack.callback(os.close, descriptor)
        self.environment = {
            "APENET_RANK": str(rank),
            "PMI_FD": str(_MANAGER),
            "PMI_RANK": str(rank),
            "PMI_SIZE": str(count),
        }


def _start(
    program: Path, command: Sequence[str], environment: dict[str, str], ends: list[_RankEnds]
) -> tuple[Supervisor, list[int]]:
    has_sockets = str(SOCKETS) in environment["LD_PRELOAD"].split()  # virtual time begins with the interpreter
    if not has_sockets and is_python_script(program, command):
        return _fork_script(program, command, environment, ends)
    if _may_fork(program, environment, ends):
        with suppress(OSError):  # it needs a few descriptors and variables more
            forked = _fork_program(program, command, environment, ends)
            if forked is not None:
                return forked
    return _start_each(program, command, environment, ends)


def _start_each(
    program: Path, command: Sequence[str], environment: dict[str, str], ends: list[_RankEnds]
) -> tuple[Supervisor, list[int]]:
    supervisor = Supervisor(
        program,
        command,
        environment,
        [Planned(end.streams, end.environment, moved={end.manager: _MANAGER}) for end in ends],
    )
    with _ended_unless_started(supervisor):
        supervisor.start()
    return supervisor, supervisor.process_ids


@contextmanager
def _ended_unless_started(supervisor: Supervisor) -> Iterator[None]:
    """Ends the supervisor if the start of its processes raises an exception."""
    try:
        yield
    except BaseException:
        supervisor.end()
        raise


def is_python_script(program: Path, command: Sequence[str]) -> bool:
    """Whether this command is a Python interpreter with a script that compiles and no option before it."""
    if re.fullmatch(r"python3?(\.[0-9]+)?", program.name) is None or len(command) < 2:  # noqa: PLR2004
        return False
    script = Path(command[1])
    if command[1].startswith("-") or not script.is_file():
        return False
    try:
        compile(script.read_bytes(), str(script), "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError):
        return False
    return True


def _may_fork(program: Path, environment: dict[str, str], ends: list[_RankEnds]) -> bool:
    """Whether this is a program of an MPI library and the C and C++ libraries alone.

    Another library, of the program or of the user, may read its rank, process or streams when it is loaded.
    A program that does not begin in the C library would not stop before its own code.
    """
    needed = inherited.needed_libraries(program)
    is_mpi = any(name.startswith("libmpi") for name in needed) and all(map(_PLAIN_LIBRARY.fullmatch, needed))
    is_mpi = is_mpi and inherited.calls(program, "__libc_start_main")
    is_clear = min(descriptor for end in ends for descriptor in end.streams) > _STANDARD_ERROR
    return is_mpi and is_clear and len(ends) > 1 and environment["LD_PRELOAD"] == str(SHIM)


def _fork_program(
    program: Path, command: Sequence[str], environment: dict[str, str], ends: list[_RankEnds]
) -> tuple[Supervisor, list[int]] | None:
    """Starts the ranks of a program from one process of it; see src/runtime/shim/forked_ranks.cpp.

    Returns None if they must be started each by itself.
    """
    environment = dict(environment)
    mapping = environment.pop("APENET_MAPPING")  # the server itself is no rank
    with ExitStack() as stack:
        answer, report = os.pipe()
        answers = stack.enter_context(os.fdopen(answer))
        with ExitStack() as given:
            given.callback(os.close, report)
            plan = given.enter_context(os.fdopen(memory_file("apenet-plan"), "w+b"))
            unheard, words = os.pipe()  # as the streams of ranks are
            given.callback(os.close, unheard)
            given.callback(os.close, words)
            nothing = os.open(os.devnull, os.O_RDONLY)
            given.callback(os.close, nothing)
            texts = [str(report), str(len(ends)), str(_MANAGER)]
            descriptors = []
            rooms: dict[str, int] = {}
            for end in ends:
                own = [*end.streams, end.manager]
                descriptors += own
                variables = [
                    f"{name}={value}" for name, value in ({"APENET_MAPPING": mapping} | end.environment).items()
                ]
                texts += [*map(str, own), str(len(variables)), *variables]
                for place, variable in enumerate(variables):
                    name = f"APENET_RANK_PLACE_{place}"
                    rooms[name] = max(rooms.get(name, 0), len(os.fsencode(variable)))
            plan.write(b"".join(os.fsencode(text) + b"\0" for text in texts))
            plan.flush()
            environment["APENET_RANK_PLAN"] = str(plan.fileno())
            environment |= {name: "-" * room for name, room in rooms.items()}
            server = Planned((nothing, words, words), kept=[plan.fileno(), report, *descriptors])
            supervisor = Supervisor(program, command, environment, [server])
        with _ended_unless_started(supervisor):
            supervisor.start()
            said = answers.read().split()  # reads until the server ends
    if len(said) == len(ends) and all(map(str.isdecimal, said)):
        return supervisor, [int(process_id) for process_id in said]
    supervisor.end()
    return None


def _fork_script(
    program: Path, command: Sequence[str], environment: dict[str, str], ends: list[_RankEnds]
) -> tuple[Supervisor, list[int]]:
    """Starts the ranks of a Python script from one interpreter; see rank_server.py."""
    environment = dict(environment)
    mapping = {"APENET_MAPPING": environment.pop("APENET_MAPPING")}  # the server itself is no rank
    descriptors = [descriptor for end in ends for descriptor in (*end.streams, end.manager)]
    plan = {
        "descriptors": descriptors,
        "manager": _MANAGER,
        "ranks": [
            {"environment": mapping | end.environment, "descriptors": [*end.streams, end.manager]} for end in ends
        ],
    }
    with ExitStack() as stack:
        file = stack.enter_context(os.fdopen(memory_file("apenet-plan"), "w+"))
        json.dump(plan, file)
        file.seek(0)
        answer, report = os.pipe()
        answers = stack.enter_context(os.fdopen(answer))
        with ExitStack() as given:
            given.callback(os.close, report)
            nothing = os.open(os.devnull, os.O_RDONLY)
            given.callback(os.close, nothing)
            arguments = (command[0], str(_SERVER), str(file.fileno()), *command[1:])
            server = Planned((nothing, report, _standard_error(given)), kept=[file.fileno(), *descriptors])
            supervisor = Supervisor(program, arguments, environment, [server])
        with _ended_unless_started(supervisor):
            supervisor.start()
            said = answers.read()  # reads until the server ends
            if not said:
                raise OSError(errno.EIO, "its interpreter ended at the start")
    return supervisor, json.loads(said)


def _standard_error(stack: ExitStack) -> int:
    """Standard error for the server of Python ranks; /dev/null if this process has closed its own."""
    try:
        descriptor = os.dup(2)
    except OSError:
        descriptor = os.open(os.devnull, os.O_WRONLY)
    stack.callback(os.close, descriptor)
    return descriptor


def _standard_input() -> int:
    """Standard input of rank 0; /dev/null for a terminal, because no rank is in its foreground process group."""
    try:
        if not os.isatty(0):
            return os.dup(0)
    except OSError:
        pass  # closed
    return os.open(os.devnull, os.O_RDONLY)


def _raise_file_limit(ranks: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = ranks * _FDS_PER_RANK + _SPARE_FDS
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard not in (resource.RLIM_INFINITY,) and hard < needed:
        raise LimitError(f"{ranks} ranks need {needed} open files, this user may have {hard} (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


@contextmanager
def interrupts() -> Iterator[list[int]]:
    """Collects SIGINT, SIGTERM and SIGHUP during a run, so that the run ends its ranks before this process exits.

    A signal that this process ignores, as under nohup or in the background of a shell, stays ignored.
    """
    seen: list[int] = []
    all_signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    wanted = [number for number in all_signals if signal.getsignal(number) != signal.SIG_IGN]
    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    previous = {number: signal.signal(number, lambda number, _frame: seen.append(number)) for number in wanted}
    try:
        yield seen
    finally:
        for number, handler in previous.items():
            # None: a handler of a library in C, which cannot be set again from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
