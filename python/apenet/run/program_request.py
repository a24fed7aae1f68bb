"""The request to run a program: its options, checked before anything starts."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from apenet import _core
from apenet.base.errors import InputError
from apenet.base.numbers import checked_seed, whole
from apenet.compute.size import Size, parse_size
from apenet.host.applications import split
from apenet.host.loading import refuse_musl, refuse_static
from apenet.host.mpi_library import Family, MpiChoice, choose_mpi
from apenet.host.toolchain import find_program, search_path
from apenet.machine import Machine
from apenet.machine.mapping import Mapping, map_ranks
from apenet.run.limits import wall_time_s
from apenet.run.results import Request

MOST_RANKS = 65536
STALL_TIMEOUT_S = 10.0
LEAST_STALL_TIMEOUT_S = 0.1
MOST_STALL_TIMEOUT_S = 10**6
# By the parameter `pin` of run().
_CORES = {None: _core.CoreUse.adaptive, True: _core.CoreUse.one, False: _core.CoreUse.all}


@dataclass(frozen=True, kw_only=True)
class RunRequest(Request):
    """The request to run a program."""

    command: tuple[str, ...]
    compute: str
    size: Size | None
    mpi: Family
    trap_tsc: bool
    ip: bool = False
    limit_virtual: str | None = None
    limit_wall: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The contents of command.json."""
        return {
            "command": list(self.command),
            **super().to_json(),
            "compute": self.compute,
            "size": None if self.size is None else self.size.given,
            "mpi": self.mpi,
            "trap_tsc": self.trap_tsc,
            **({"ip": True} if self.ip else {}),
            "limit_virtual": self.limit_virtual,
            "limit_wall": self.limit_wall,
        }


def program_request(
    command: Sequence[str | Path],
    *,
    n: int,
    machine: Machine,
    ranks_per_node: int,
    map: Mapping,  # noqa: A002 (as in run())
    engine: str,
    mpi: MpiChoice,
    seed: int,
    compute: str = "none",
    size: str | None = None,
    trap_tsc: bool = False,
    ip: bool = False,
) -> tuple[RunRequest, Path]:
    """The checked request to run a program, and the program's file. Raises InputError and MachineError."""
    arguments = _checked_command(command)
    applications = split(arguments, n)
    n = whole("ranks", sum(one.ranks for one in applications), 1, MOST_RANKS, f"a whole number from 1 to {MOST_RANKS}")
    for one in applications:
        refuse_musl(find_program(one.command[0]), search_path())
        if ip:
            refuse_static(find_program(one.command[0]), search_path())
    program = find_program(arguments[0])
    request = RunRequest(
        command=arguments,
        machine=machine,
        ranks=n,
        ranks_per_node=ranks_per_node,
        mapping=str(map) if isinstance(map, str | Path) else "given",
        nodes=tuple(map_ranks(machine, n, ranks_per_node, map)),
        compute=compute,
        size=None if size is None else parse_size(size, n),
        engine=engine,
        mpi=_library(mpi, program, n),
        trap_tsc=_checked_trap(trap_tsc),
        ip=ip,
        seed=checked_seed(seed),
    )
    return request, program


def _checked_command(command: Sequence[str | Path]) -> tuple[str, ...]:
    if isinstance(command, str):
        raise InputError("program", command, "a list of the program and its arguments, a text each")
    arguments = tuple(str(part) for part in command)
    if not arguments:
        raise InputError("program", "", "a program and its arguments after --")
    if any("\0" in part for part in arguments):
        raise InputError("program", arguments, "arguments without zero bytes")
    return arguments


def _library(mpi: MpiChoice, program: Path, ranks: int) -> Family:
    known = get_args(MpiChoice)
    if mpi not in known:
        raise InputError("mpi", mpi, ", ".join(known[:-1]) + f" or {known[-1]}")
    return choose_mpi(mpi, program, ranks)


def _checked_trap(trap_tsc: bool) -> bool:
    if trap_tsc and platform.machine() != "x86_64":
        raise InputError("trap_tsc", True, "an x86-64 host, whose cycle counter can be trapped")
    return trap_tsc


def session_options(
    machine: Machine, pin: bool | None = None, stall_timeout: str | float = STALL_TIMEOUT_S
) -> _core.SessionOptions:
    """The options of a job on this machine or partition. Raises InputError."""
    options = _core.SessionOptions()
    if (part := machine.partition) is not None:
        options.set_partition(list(part.nodes), list(part.extents), part.spanned)
    options.cores = _CORES[pin]
    seconds = wall_time_s("stall_timeout", stall_timeout, LEAST_STALL_TIMEOUT_S, MOST_STALL_TIMEOUT_S)
    options.stall_timeout_ms = round(seconds * 1000)
    options.deadlock_wait_ms = min(options.deadlock_wait_ms, options.stall_timeout_ms)
    return options
