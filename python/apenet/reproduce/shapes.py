"""Shapes: statements of the literature on forms and orders, without a number, as executable checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from apenet.bench.result import BenchResult
from apenet.machine import machine_names
from apenet.machine.published import Role
from apenet.reproduce.rows import Row
from apenet.reproduce.sweeps import Sweep


@dataclass(frozen=True)
class Shape:
    """A statement, the sweeps that test it, and a function of them that must be above 1."""

    key: str
    machine: str
    test: str
    statement: str
    source: str
    sweeps: tuple[Sweep, ...]
    factor: Callable[[list[BenchResult]], float]
    note: str
    role: Role
    lacks: str = ""
    """What is not built and would be needed to judge the statement."""

    def row(self, measured: Mapping[Any, Any]) -> Row:
        """The row: it holds where the factor is above 1."""
        factor = self.factor([measured[sweep] for sweep in self.sweeps])
        return Row(
            key=self.key,
            machine=self.machine,
            test=self.test,
            published=self.statement,
            simulated=factor,
            unit="x",
            tolerance_percent=None,
            bound="lower",
            target="shape",
            role=self.role,
            source=self.source,
            note=self.note,
            reason=self.lacks,
            holds=None if self.lacks else factor > 1,
        )


def _smallest(results: list[BenchResult]) -> list[float]:
    return [float(result.times_us[0]) for result in results]


def _mpi_over_card(results: list[BenchResult]) -> float:
    velo, rma, mpi = _smallest(results)
    return mpi / max(velo, rma)


def _last_bandwidths(results: list[BenchResult]) -> float:
    upper, lower = (float(result.bandwidths_mib_s[-1]) for result in results)
    return upper / lower


def _gap_under_half_round_trip(results: list[BenchResult]) -> float:
    gap, round_trip = _smallest(results)
    return round_trip / 2 / gap


_ALL = [
    Shape(
        "apenet-2004.zero_copy_above_copied",
        "apenet-2004",
        "pingpong",
        "zero-copy above copied transfers",
        "hep-lat/0409071 section 4, figure of bandwidth",
        tuple(Sweep("apenet-2004", "pingpong", "16:1M", memory=memory) for memory in ("host", "host-copied")),
        _last_bandwidths,
        "bandwidth at 1 MiB, zero-copy over copied: the rate of the copy is assumed",
        "assumed",
    ),
    Shape(
        "apenet-2005.gap_below_half_round_trip",
        "ape128",
        "oneway",
        "latencies partly overlap in the one-way test, and are fully exposed in the round trip",
        "PoS(LAT2005)100 section 2",
        (
            Sweep("ape128", "oneway", "16:1M", layer="mpi"),
            Sweep("ape128", "roundtrip", "16:1M", layer="mpi"),
        ),
        _gap_under_half_round_trip,
        "half the round trip over the one-way time, smallest size, through MPI: both are fitted",
        "follows",
    ),
    Shape(
        "extoll.mpi_vs_velo_overhead",
        "extoll-64",
        "pingpong",
        "VELO and RMA below the conduit below MPI",
        "Kujat, Silla, Duato, Froening, The New EXTOLL Conduit for the GASNet Networking Layer, Figs. 9 and 13",
        (
            Sweep("extoll-64", "pingpong", "16:4K", path="send"),
            Sweep("extoll-64", "pingpong", "16:4K", path="put"),
            Sweep("extoll-64", "pingpong", "16:4K", layer="mpi"),
        ),
        _mpi_over_card,
        "MPI over the slower of VELO and RMA, smallest size: the costs of MPI are assumed",
        "assumed",
        "the GASNet conduit is not built: only MPI is compared",
    ),
]


def shapes() -> list[Shape]:
    """The shapes of existing machines."""
    names = set(machine_names())
    return [shape for shape in _ALL if shape.machine in names]
