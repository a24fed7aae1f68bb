"""The files by which computation goes to and from the ranks (src/runtime/ipc/compute_table.hpp)."""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from apenet._core import descriptor_path
from apenet.base.calls import memory_file
from apenet.compute.elf import fnv

_MAGIC = 0x41504354
UNKNOWN_PS = -1
Key = tuple[str, str]
Calls = tuple[str, str]


@dataclass(frozen=True)
class Samples:
    """Passes of a region, in picoseconds."""

    count: int = 0
    total_ps: float = 0.0
    squares: float = 0.0
    least_ps: int = 0
    most_ps: int = 0

    def __add__(self, other: Samples) -> Samples:
        if self.count == 0 or other.count == 0:
            return other if self.count == 0 else self
        return Samples(
            self.count + other.count,
            self.total_ps + other.total_ps,
            self.squares + other.squares,
            min(self.least_ps, other.least_ps),
            max(self.most_ps, other.most_ps),
        )

    @property
    def mean_ps(self) -> float:
        """0 without samples."""
        return self.total_ps / self.count if self.count else 0.0

    @property
    def variance(self) -> float:
        """The variance of single passes."""
        return max(self.squares / self.count - self.mean_ps**2, 0.0) if self.count else 0.0


class Pass(NamedTuple):
    """A pass of a region on one rank. `probe_ns`: how long the probe took beside it (src/runtime/shim/probe.hpp)."""

    number: int
    ns: int
    probe_ns: int


@dataclass(frozen=True)
class Passed:
    """A region of one rank: how often it passed, with a core of its own and without.

    `alone_passes` and `beside_passes`: single ones of them. `call_paths`: of the calls before.
    """

    calls: Calls
    count: int
    alone: Samples
    beside: Samples
    alone_passes: tuple[Pass, ...] = ()
    beside_passes: tuple[Pass, ...] = ()
    call_paths: tuple[str, ...] = ()


@dataclass
class RankReport:
    """A rank's report at its end.

    `lost`: passes of regions for which the tables have no room, or no file. `lengthened`: passes of regions that are
    shorter than any that the profile knows after the same calls. `has_call_paths`: there was room for all of them.
    """

    modules: dict[str, str] = field(default_factory=dict)
    regions: dict[Key, Passed] = field(default_factory=dict)
    charged: int = 0
    lost: int = 0
    lengthened: int = 0
    has_call_paths: bool = True


class Exchange:
    """The unnamed files of one run: the table for the ranks, if there is one, and their reports."""

    def __init__(self, table: bytes | None) -> None:
        with ExitStack() as stack:
            self._report = stack.enter_context(tempfile.TemporaryFile())
            self._table = None
            if table is not None:
                self._table = stack.enter_context(os.fdopen(memory_file("apenet-compute"), "r+b"))
                self._table.write(table)
                self._table.flush()
            self._closing = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which the ranks find the files."""
        table = {} if self._table is None else {"APENET_COMPUTE_TABLE": descriptor_path(self._table.fileno())}
        return {"APENET_COMPUTE_REPORT": descriptor_path(self._report.fileno()), **table}

    def reports(self) -> dict[int, RankReport]:
        """The reports of the ranks that have written one."""
        self._report.seek(0)
        return parse_reports(self._report.read())


def make_table(
    modules: Mapping[str, str], costs: Mapping[Key, tuple[int, int]], call_paths: Mapping[str, tuple[int, int]]
) -> bytes:
    """The table of costs: of each pair of call sites the picoseconds of rank 0 and of every other rank.

    `call_paths`: the same of the call paths after which ranks overlap, as hexadecimal numbers.
    """
    lines = sorted((fnv(start.encode()), fnv(end.encode()), *ps) for (start, end), ps in costs.items())
    after = sorted((int(call_path, 16), *ps) for call_path, ps in call_paths.items())
    head = struct.pack("<IIII", _MAGIC, len(modules), len(lines), len(after))
    known = [struct.pack("<QQ", fnv(name.encode()), fnv(identity.encode())) for name, identity in modules.items()]
    packed = (struct.pack("<QQqq", *line) for line in lines)
    return b"".join((head, *known, *packed, *(struct.pack("<Qqq", *line) for line in after)))


def parse_reports(content: bytes) -> dict[int, RankReport]:
    """The reports by rank."""
    reports: dict[int, RankReport] = {}
    for line in content.decode(errors="replace").splitlines():
        kind, rank, *rest = line.split("\t")
        report = reports.setdefault(int(rank), RankReport())
        if kind == "module":
            report.modules[rest[0]] = rest[1]
        elif kind == "rank":
            report.charged, report.lost, report.lengthened = map(int, rest[:3])
            report.has_call_paths = rest[3] == "1"
        else:
            start, start_call, end, end_call, count, *samples, alone, beside, call_paths = rest
            report.regions[start, end] = Passed(
                (start_call, end_call),
                int(count),
                _samples(samples[:5]),
                _samples(samples[5:]),
                _passes(alone),
                _passes(beside),
                tuple(call_paths.split()),
            )
    return reports


def _passes(text: str) -> tuple[Pass, ...]:
    return tuple(Pass(*map(int, part.split(":"))) for part in text.split())


def _samples(fields: list[str]) -> Samples:
    count, total, squares, least, most = fields
    return Samples(int(count), float(total), float(squares), int(least), int(most))
