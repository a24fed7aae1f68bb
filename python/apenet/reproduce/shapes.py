"""Shapes: statements of the literature on forms and orders, without a number, as executable checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import Any, Literal

from apenet.bench.lqcd_result import MachineScaling
from apenet.bench.result import BenchResult, WorkloadResult
from apenet.machine import machine_names
from apenet.machine.published import Role
from apenet.reproduce.random_access import LAYERS, PROCESSES, AccessCurve, AccessRates, Placement
from apenet.reproduce.rows import Row
from apenet.reproduce.sweeps import Scaling, Sweep


@dataclass(frozen=True)
class Shape:
    """A statement, the sweeps that test it, and a function of them that must be above 1."""

    key: str
    machine: str
    test: str
    statement: str
    source: str
    sweeps: tuple[Sweep | Scaling | AccessCurve, ...]
    factor: Callable[[list[Any]], float]
    """Takes the results of the sweeps, in their order."""
    note: str
    role: Role
    between: tuple[float, float] | None = None
    """The range of the factor, for a statement with numbers."""
    target: Literal["hard", "soft"] = "hard"
    """For a statement with numbers."""
    repeats: str = ""
    """The key of the row that has the whole statement, of which this is a part."""

    def row(self, measured: Mapping[Any, Any]) -> Row:
        """The row: it holds where the factor is above 1, or in its range."""
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
            target="shape" if self.between is None else self.target,
            role=self.role,
            source=self.source,
            note=self.note,
            repeats=self.repeats,
            holds=factor > 1 if self.between is None else self.between[0] <= factor <= self.between[1],
        )


def _smallest(results: list[BenchResult]) -> list[float]:
    return [float(result.times_us[0]) for result in results]


def _least_step(results: list[BenchResult]) -> float:
    """The least ratio of a layer's time to that of the layer below; the lowest comes first."""
    times = _smallest(results)
    return min(upper / lower for lower, upper in pairwise(times))


def _allowed_over_difference(results: list[BenchResult]) -> float:
    upper, lower = _smallest(results)
    return _MARGINAL / abs(upper / lower - 1)


def _first_over_second(results: list[BenchResult]) -> float:
    first, second = _smallest(results)
    return first / second


def _largest_ratio(results: list[BenchResult]) -> float:
    """The largest ratio of the first's time to the second's, at any size."""
    upper, lower = results
    return float((upper.times_us / lower.times_us).max())


def _last_bandwidths(results: list[BenchResult]) -> float:
    upper, lower = (float(result.bandwidths_mib_s[-1]) for result in results)
    return upper / lower


def _gap_under_half_round_trip(results: list[BenchResult]) -> float:
    gap, round_trip = _smallest(results)
    return round_trip / 2 / gap


def _last_efficiency_over_linear(scalings: list[MachineScaling]) -> float:
    (scaling,) = scalings
    return scaling.efficiency(scaling.points[-1]) / (1 - _MARGINAL)


def _least_lead(curves: list[AccessRates]) -> float:
    """The least ratio of a curve to the next one, at any number of processes."""
    return min(
        upper.rates[processes] / lower.rates[processes] for upper, lower in pairwise(curves) for processes in PROCESSES
    )


def _allowed_over_largest_difference(curves: list[AccessRates]) -> float:
    upper, lower = curves
    return _MARGINAL / max(abs(upper.rates[processes] / lower.rates[processes] - 1) for processes in PROCESSES)


def _step_on_the_first_only(curves: list[AccessRates]) -> float:
    """The step of the first curve over a marginal one, or a marginal one over that of the second: the lesser."""
    first, second = (_step(curve) for curve in curves)
    marginal = 1 + _MARGINAL
    return min(first / marginal, marginal / second)


def _step(curve: AccessRates) -> float:
    """The growth of the rate from 256 to 512 processes, over the mean of the growths before and after."""
    before, begin, end, after = (curve.rates[processes] for processes in PROCESSES[-4:])
    return (end / begin) / sqrt((begin / before) * (after / end))


def _marginal_over_largest_overhead(results: list[BenchResult]) -> float:
    """A marginal overhead over the largest one, of pairs of a layer and one above it."""
    times = _smallest(results)
    return _MARGINAL / max(upper / lower - 1 for lower, upper in zip(times[::2], times[1::2], strict=True))


def _share_of_a_node(results: list[WorkloadResult]) -> float:
    """A node's share of the bandwidth across the cut, on the smaller part over the larger one."""
    small, large = (float(result.bandwidths_mib_s[-1] / result.finish_us.shape[1]) for result in results)
    return small / large


_MARGINAL = 0.1
"""A marginal difference, as this package takes it: the paper prints no number."""
_COUNTS = f"{', '.join(map(str, PROCESSES[:-1]))} and {PROCESSES[-1]}"
_SHIPPED = "rates of the package, not of this run"
_FIRST_NEIGHBOURS = "LQCD algorithms mainly use first-neighbour communication, so they scale linearly"
_KUJAT = "Kujat, Silla, Duato, Froening, The New EXTOLL Conduit for the GASNet Networking Layer"


def _random_access(layer: str) -> Sweep:
    """With a process on each of 16 nodes, the smallest number of the paper."""
    return Sweep("extoll-64", "randomaccess", "1K", layer=layer, n=16, look_ahead=1)


def _accesses(machine: str, placement: Placement, layers: tuple[str, ...] = LAYERS) -> tuple[AccessCurve, ...]:
    return tuple(AccessCurve(machine, layer, placement) for layer in layers)


def _upc(active_messages: str) -> Sweep:
    """RandomAccess of UPC on the same nodes: few updates of a larger table, so that few are lost."""
    return Sweep(
        "extoll-64",
        "randomaccess",
        "8K",
        layer="upc",
        n=16,
        look_ahead=1,
        iterations=64,
        active_messages=active_messages,
    )


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
        "apenet-2005.lqcd_scales_weakly",
        "ape128",
        "lqcd",
        f"{_FIRST_NEIGHBOURS}: each node with a lattice of its own",
        "PoS(LAT2005)100 section 1",
        (Scaling("ape128", "8x8x8x8", (16, 128), "weak"),),
        _last_efficiency_over_linear,
        "Wilson CG through MPI, 8x8x8x8 sites a node in single precision, one rank a node; efficiency from 16 to 128 "
        "nodes over 0.9: 10 % is our reading of linear, and the rate of computation is assumed",
        "assumed",
    ),
    Shape(
        "apenet-2005.lqcd_scales_strongly",
        "ape128",
        "lqcd",
        f"{_FIRST_NEIGHBOURS}: one lattice, shared by more nodes",
        "PoS(LAT2005)100 section 1",
        (Scaling("ape128", "16x16x16x32", (16, 128), "strong"),),
        _last_efficiency_over_linear,
        "the same with 16x16x16x32 sites on 16 and on 128 nodes; the paper names no lattice, and a larger one scales "
        "better",
        "assumed",
    ),
    Shape(
        "pax.bisection_limited_between_switches",
        "pax",
        "bisection",
        "across chassis the bandwidth between first and second level switches limits the bisection",
        "Boyanov, QPACE and InfiniBand (Zeuthen 2011), slide on network topology",
        tuple(Sweep("pax", "bisection", "64K", n=count) for count in (16, 144)),
        _share_of_a_node,
        "64 KiB, a node's share across the cut in one chassis over that in all nine; the second level and its eight "
        "cables to each chassis are assumed",
        "assumed",
    ),
    Shape(
        "extoll.mpi_vs_velo_overhead",
        "extoll-64",
        "pingpong",
        "VELO and RMA below the conduit below MPI",
        f"{_KUJAT}, Figs. 9 and 13",
        tuple(Sweep("extoll-64", "pingpong", "16", layer=layer) for layer in ("velo", "gasnet", "mpi")),
        _least_step,
        "16 bytes by VELO, by Active Messages and by MPI, real processes; the least ratio of one to the one below. The "
        "conduit's costs are those of VELO and of copies, the costs of MPI are assumed",
        "assumed",
    ),
    Shape(
        "gasnet.randomaccess_conduit_vs_velo",
        "extoll-64",
        "randomaccess",
        "RandomAccess on the 3D mesh: marginal difference between the conduit and VELO",
        f"{_KUJAT}, Fig. 12",
        (_random_access("gasnet"), _random_access("velo")),
        _allowed_over_difference,
        "16 processes, every update a message of its own; 10 % over the difference of the rates: 10 % is our reading "
        "of marginal, and what the published program held back is not known. The same statement up to 1024 processes, "
        "gasnet.randomaccess_conduit_vs_velo_processes, is missed",
        "assumed",
        repeats="gasnet.randomaccess_conduit_vs_velo_processes",
    ),
    Shape(
        "gasnet.randomaccess_conduit_vs_mpi",
        "extoll-64",
        "randomaccess",
        "RandomAccess on the 3D mesh: notable overhead of MPI over the conduit",
        f"{_KUJAT}, Figs. 13 and 14",
        (_random_access("mpi"), _random_access("gasnet")),
        _first_over_second,
        "16 processes, every update a message of its own; rate of the conduit over that of MPI, whose costs are "
        "assumed",
        "assumed",
    ),
    Shape(
        "gasnet.randomaccess_order",
        "extoll-64",
        "randomaccess",
        "RandomAccess of 16 to 1024 processes on the 3D mesh: the conduit below VELO, MPI below both",
        f"{_KUJAT}, Figs. 12 to 14",
        _accesses("extoll-64", "spread"),
        _least_lead,
        f"the least ratio of one rate to the next at {_COUNTS} processes, spread evenly over the nodes; "
        f"{_SHIPPED}. The costs of MPI are assumed",
        "assumed",
    ),
    Shape(
        "gasnet.randomaccess_conduit_vs_velo_processes",
        "extoll-64",
        "randomaccess",
        "RandomAccess of 16 to 1024 processes on the 3D mesh: marginal difference between the conduit and VELO",
        f"{_KUJAT}, Fig. 12",
        _accesses("extoll-64", "spread", ("velo", "gasnet")),
        _allowed_over_largest_difference,
        f"10 % over the largest difference of the rates at {_COUNTS} processes, spread evenly over the nodes; "
        f"{_SHIPPED}. Up to 256 processes it is 8 %; from 512 on the network is full, and the 8 bytes that the conduit "
        "puts before each update of 8 count. Framing and headers of packets are assumed",
        "assumed",
    ),
    Shape(
        "extoll.randomaccess_step",
        "extoll-64",
        "randomaccess",
        "RandomAccess: a step between 256 and 512 processes on the 3D mesh, absent on the other topology",
        f"{_KUJAT}, section IV.C and Fig. 15",
        tuple(AccessCurve(machine, "velo", "spread") for machine in ("extoll-64", "extoll-64-2d")),
        _step_on_the_first_only,
        "step: the growth of VELO's rate from 256 to 512 processes over the mean of the growths before and after. The "
        "lesser of the 3D mesh's step over 1.1, and 1.1 over that of the 2D mesh, whose links are full before. "
        "The meshes' 4x4x4 and 8x8, and that the processes are spread evenly over the nodes, are assumed: with 16 on "
        f"each node the steps are 1.08 and 1.01; {_SHIPPED}",
        "assumed",
    ),
    Shape(
        "gasnet.overhead_extoll_vs_ibv",
        "l5530-pair",
        "pingpong",
        "the overheads of the conduits of EXTOLL, over VELO and RMA, and of InfiniBand, over Verbs, are comparable",
        f"{_KUJAT}, Figs. 10 and 11, and section V",
        (
            Sweep("extoll-64", "pingpong", "16", layer="velo"),
            Sweep("extoll-64", "pingpong", "16", layer="gasnet"),
            Sweep("l5530-pair", "pingpong", "16"),
            Sweep("l5530-pair", "pingpong", "16", layer="gasnet", conduit="ibv"),
        ),
        _marginal_over_largest_overhead,
        "16 bytes, half a round trip; 10 % over the larger overhead: both marginal is our reading of comparable. Layer "
        "card stands for Verbs, whose calls it charges. It is so by construction: each conduit has the costs of the "
        "layer below it",
        "follows",
    ),
    Shape(
        "gasnet.udp_over_ibv_factor",
        "l5530-pair",
        "pingpong",
        "latency of the UDP conduit 100 to 1000 times that of the IBV conduit, on one InfiniBand network",
        f"{_KUJAT}, section I and Fig. 1",
        tuple(Sweep("l5530-pair", "pingpong", "16", layer="gasnet", conduit=conduit) for conduit in ("udp", "ibv")),
        _first_over_second,
        "Active Messages of 16 bytes, real processes. software.udp.interrupt_us is fitted to the lower end: the other "
        "costs of the kernel are those of its time, and give 9 to 29 times with usual delays of an interrupt. The "
        "factor falls with the size, to 7 at 64 KiB; the sizes of the figure are lost",
        "fitted",
        between=(100, 1000),
    ),
    Shape(
        "gasnet.udp_conduit_overhead",
        "l5530-pair",
        "pingpong",
        "caches disabled: the UDP conduit can cost up to 100 % more than UDP in C",
        f"{_KUJAT}, section IV.B and Fig. 8",
        tuple(
            Sweep("l5530-pair", "pingpong", "16:32K", layer=layer, conduit=conduit, caches="off")
            for layer, conduit in (("gasnet", "udp"), ("udp", None))
        ),
        _largest_ratio,
        "16 bytes to 32 KiB, half a round trip: Active Messages over the conduit against datagrams, each a call of "
        "sendto and one of recvfrom; the largest ratio, which must lie between 1 and 2. All software takes "
        "host.uncached_factor = 50 times as long, which is assumed: 10 gives 1.2, 130 gives 1.5, and no other assumed "
        "number of software.udp or of copies alone gives more than 1.8. The conduit's part is its acknowledgements and "
        "copies; AMUDP's own bookkeeping is not charged. Both sides contain the fitted delay of an interrupt",
        "follows",
        between=(1, 2),
        target="soft",
    ),
    Shape(
        "gasnet.am_impl2_gain",
        "extoll-64",
        "randomaccess",
        "RandomAccess of UPC: the second implementation of Active Messages gains, up to 53 %",
        f"{_KUJAT}, Fig. 3",
        (_upc("first"), _upc("improved")),
        _first_over_second,
        "16 processes, a get and a put of Active Messages for each update; rate of the second over that of the first. "
        "The paper does not say in what they differ: that the first begins a packet for each section of a message, "
        "takes one a poll, and copies it once more, is our reading. Other numbers of processes give 1.42 to 1.59",
        "assumed",
    ),
]


def shapes() -> list[Shape]:
    """The shapes of existing machines."""
    names = set(machine_names())
    return [shape for shape in _ALL if shape.machine in names]
