"""The result of a program's run, the error of a failed one, and the short report that `apenet run` prints."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from apenet.base.errors import ApenetError
from apenet.base.escape import escape_line
from apenet.compute.charging import Charged
from apenet.run.results import Result, show_size, show_time

_TELLING_SHARE = 0.1  # share of the virtual time
# More than a small program's first pass through its code takes (page faults, lazy binding): 5 to 75 us between the
# calls of an empty C program and of one that prints a line.
_TELLING_S = 200e-6
_TAIL_LINES = 20
_TAIL_BYTES = 4096


@dataclass(frozen=True)
class RankResult:
    """The activity of one rank. Times in virtual microseconds."""

    status: int
    virtual_time_us: float
    waiting_us: float
    compute_us: float
    library: str
    used_network: bool
    finalised: bool


@dataclass(frozen=True)
class RouteChange:
    """A program has replaced routes of a network (`ape_route_apply`). `routes` counts those that are its own since."""

    at_us: float
    rank: int
    rail: int
    routes: int


@dataclass(frozen=True, kw_only=True)
class RunResult(Result):
    """The result of a run. Everything except `wall_time_s`, `uncharged_cpu_s` and captured output repeats exactly.

    `uncharged_cpu_s` estimates the CPU time that the rank with the most of it computed without any virtual time, with
    `compute` none; 0 if the program declares its computation itself, and where the cycle counter is trapped.
    `idle_rails` are the cards of the nodes that carried no message, while another one did. `nodes` has the node of each
    rank, `grid` the extents of the program's first MPI_Cart_create (empty: it made none), `traffic` a sender, a
    receiver and the bytes of each pair of ranks with a message.
    """

    exit_status: int
    outcome: str
    message: str
    compute: str
    ranks: tuple[RankResult, ...]
    route_changes: tuple[RouteChange, ...]
    computation: Charged | None = None
    note: str = ""
    uncharged_cpu_s: float = 0.0
    idle_rails: tuple[str, ...] = ()
    nodes: tuple[int, ...] = field(default=(), repr=False)
    grid: tuple[int, ...] = ()
    traffic: tuple[tuple[int, int, int], ...] = field(default=(), repr=False)
    stdout: bytes | None = field(default=None, repr=False)
    stderr: bytes | None = field(default=None, repr=False)

    @property
    def ok(self) -> bool:
        """Whether the program completed with status 0. If not, its times are those of the part that ran."""
        return self.outcome == "completed" and self.exit_status == 0

    @property
    def time(self) -> float:
        """The virtual time in seconds; not a number for a failed program, so that it is less than no limit."""
        return self.virtual_time_us * 1e-6 if self.ok else math.nan

    @property
    def waiting_share(self) -> float:
        """Share of the ranks' virtual time that was spent waiting, 0 to 1."""
        total = sum(rank.virtual_time_us for rank in self.ranks)
        return sum(rank.waiting_us for rank in self.ranks) / total if total > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        """The contents of run.json."""
        return {
            **self.machine_json,
            "seed": self.seed,
            "version": self.version,
            "outcome": self.outcome,
            "exit_status": self.exit_status,
            "message": self.message,
            # No time for a failed program: the part that ran must not look like a fast run.
            "virtual_time_us": self.virtual_time_us if self.ok else None,
            "ended_at_us": self.virtual_time_us,
            **({} if self.flit_virtual_time_us is None else {"flit_virtual_time_us": self.flit_virtual_time_us}),
            "messages": self.messages,
            "bytes": self.bytes,
            "compute": self.compute,
            "waiting_share": round(self.waiting_share, 6),
            "computation": None if self.computation is None else self.computation.to_json(),
            "trace_hash": self.trace_hash,
            "faults": vars(self.faults),
            "route_changes": [vars(change) for change in self.route_changes],
            "warnings": list(self.warnings),
            "ranks": [vars(rank) for rank in self.ranks],
            "links": [vars(link) for link in self.links if link.packets > 0],
            "ports": [vars(port) for port in self.ports],
        }

    def of_host(self) -> dict[str, Any]:
        """The CPU time that cost no virtual time."""
        return {"uncharged_cpu_s": round(self.uncharged_cpu_s, 6)}


class RunError(ApenetError):
    """A program that did not complete with status 0: what `apenet.run` raises unless `check` is false.

    `result` is the result of the part that ran. `ranks` are the ranks with another status than 0, also those that
    ended because another failed. `stderr` is the end of the program's standard error: of all ranks if it was captured,
    of the first of `ranks` if it went to a folder, and empty if it went to this process's own.
    """

    def __init__(self, result: RunResult, stderr: bytes = b"") -> None:
        lines = stderr[-_TAIL_BYTES:].decode(errors="replace").splitlines()[-_TAIL_LINES:]
        said = result.message or f"{result.outcome}, exit status {result.exit_status}"
        super().__init__("\n".join([said, *(f"  stderr: {escape_line(line)}" for line in lines)]))
        self.result = result
        self.stderr = "\n".join(lines)

    @property
    def exit_status(self) -> int:
        """The status with which `apenet run` ends."""
        return self.result.exit_status

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that ended with another status than 0."""
        return failed_ranks(self.result)


def failed_ranks(result: RunResult) -> tuple[int, ...]:
    """The ranks that ended with another status than 0."""
    return tuple(number for number, rank in enumerate(result.ranks) if rank.status != 0)


def _stand_ins(result: RunResult) -> str:
    """The note that another library than the program's own has served its MPI calls; empty if none has."""
    found = sorted({rank.library for rank in result.ranks if ", in place of " in rank.library})
    return "; ".join(" ".join(library.split()) for library in found)


def _idle_note(result: RunResult) -> str:
    """The note that cards of the nodes carried nothing; empty if none was idle."""
    if not result.ok or not result.idle_rails:
        return ""
    cards = ("card " if len(result.idle_rails) == 1 else "cards ") + ", ".join(result.idle_rails)
    return f"no message took {cards}: an MPI library uses a node's first card unless it is told otherwise (--rail)"


def uncharged_note(result: RunResult) -> str:
    """The note that computation cost no virtual time; empty if it is little, by itself or beside the virtual time."""
    least_s = max(_TELLING_S, _TELLING_SHARE * result.virtual_time_us * 1e-6)
    if not result.ok or result.uncharged_cpu_s <= least_s:
        return ""
    rounded_us = float(f"{result.uncharged_cpu_s * 1e6:.0e}")
    unit, unit_us = next((name, us) for name, us in (("s", 1e6), ("ms", 1e3), ("us", 0.0)) if rounded_us >= us)
    time = f"{rounded_us / (unit_us or 1):g} {unit}"
    return f"a rank computes for about {time} that cost no virtual time; --compute measured charges them"


def _compute_text(result: RunResult) -> str:
    if result.computation is None:
        return result.compute
    return f"{result.compute}, recorded times x {result.computation.scale:.4g}"


def summary(result: RunResult, gain: str = "") -> str:
    """The short report that `apenet run` prints when a program has ended; `gain` is what another placement would do."""
    lines = []
    if result.virtual_time_us > 0:
        ended = "" if result.ok else "ended without success after "
        lines = [
            f"{result.where}, {len(result.ranks)} ranks: {ended}{show_time(result.virtual_time_us)} of virtual time, "
            f"{result.messages} messages, {show_size(result.bytes)}; {result.waiting_share:.0%} of the time waiting",
            f"{result.busiest_text}; compute: {_compute_text(result)}; {result.wall_time_s:.2f} s of wall time",
        ]
    notes = (result.note, _stand_ins(result), _idle_note(result), uncharged_note(result), gain)
    lines += [f"note: {text}" for text in notes if text]
    lines += [text for text in (result.flit_text, result.faults.summary()) if text]
    lines += [f"warning: {warning}" for warning in result.warnings]
    if result.message:
        first, *rest = result.message.splitlines()
        heading = first if first.startswith(result.outcome) else f"{result.outcome}: {first}"
        lines += [heading, *rest]
    return "\n".join(f"apenet: {line}" for line in lines)
