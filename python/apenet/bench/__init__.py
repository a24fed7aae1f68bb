"""Benchmarks: the published tests, at the card and through MPI, and workloads of the whole machine at the card.

`apenet.bench.pingpong(apenet.machine("ape16"), sizes="16:1M")`, `apenet.bench.halo("ape128", sizes=[4096])` and
similar functions do the same as `apenet bench`; `apenet.bench.lqcd(["ape128", "pax"], ranks=[1, 8, 64])` is the scaling
of a lattice QCD program. The parameters of a function are the options of its test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from apenet.base.errors import InputError
from apenet.bench import pairs
from apenet.bench.fanout import FanOut
from apenet.bench.lqcd_result import LqcdResult
from apenet.bench.lqcd_scaling import Lqcd
from apenet.bench.mpi import BenchError
from apenet.bench.random_access import RandomAccess
from apenet.bench.request import Catalogue, MachineRequest, Request, Traits
from apenet.bench.result import BenchResult, WorkloadResult
from apenet.bench.workload_plan import Pattern
from apenet.bench.workloads import (
    ALGORITHMS,
    GrowingWorkload,
    HaloWorkload,
    LatticeWorkload,
    ReductionWorkload,
    Workload,
)
from apenet.machine import Machine

__all__ = [
    "ALGORITHMS",
    "CATALOGUE",
    "PAIR_TESTS",
    "TESTS",
    "WORKLOADS",
    "BenchError",
    "BenchResult",
    "LqcdResult",
    "Request",
    "WorkloadResult",
    "make_request",
    "measure",
]

CATALOGUE = Catalogue()

pingpong = CATALOGUE.add(pairs.PingPong)
pingping = CATALOGUE.add(pairs.PingPing)
roundtrip = CATALOGUE.add(pairs.RoundTrip)
oneway = CATALOGUE.add(pairs.OneWay)
unidirectional = CATALOGUE.add(pairs.Unidirectional)
bidirectional = CATALOGUE.add(pairs.Bidirectional)
flush = CATALOGUE.add(pairs.Flush)
rate = CATALOGUE.add(pairs.Rate)
PAIR_TESTS = tuple(CATALOGUE.requests)
put = CATALOGUE.add(pairs.Put)
get = CATALOGUE.add(pairs.Get)
fanout = CATALOGUE.add(FanOut)
randomaccess = CATALOGUE.add(RandomAccess)


def _workload(base: type[Workload], traits: Traits, pattern: Pattern) -> Callable[..., BenchResult]:
    request = type(traits.test.capitalize(), (base,), {"traits": traits, "pattern": pattern})
    return CATALOGUE.add(request)


_WORKLOADS: tuple[tuple[type[Workload], Traits, Pattern], ...] = (
    (
        HaloWorkload,
        Traits(
            "halo",
            "every node to both neighbours in each dimension; bandwidth is what one node sends",
            bandwidth_of="node",
        ),
        Pattern("halo"),
    ),
    (
        ReductionWorkload,
        Traits(
            "allreduce",
            "a vector of this size, reduced over all nodes; bandwidth is size over time",
            bandwidth_of="vector",
        ),
        Pattern("allreduce"),
    ),
    (
        GrowingWorkload,
        Traits("alltoall", "every node to every other one; bandwidth is what one node sends", bandwidth_of="node"),
        Pattern("alltoall"),
    ),
    (
        GrowingWorkload,
        Traits(
            "randompairs",
            "random pairs exchange, new ones each time; bandwidth is what one node sends",
            bandwidth_of="node",
        ),
        Pattern("randompairs"),
    ),
    (
        GrowingWorkload,
        Traits(
            "bisection",
            "one half exchanges with its mirror image in the other; bandwidth is that across the cut, both ways",
            bandwidth_of="cut",
        ),
        Pattern("bisection", is_row=True),
    ),
    (
        LatticeWorkload,
        Traits(
            "halo4d",
            "as halo in a grid of four dimensions, two of them on one dimension of the nodes",
            bandwidth_of="node",
        ),
        Pattern("halo", folds_grid=True),
    ),
    (
        GrowingWorkload,
        Traits(
            "checkerboard",
            "as halo twice, once for the sites of each parity; bandwidth is what one node sends",
            bandwidth_of="node",
        ),
        Pattern("halo", rounds=2),
    ),
    (
        GrowingWorkload,
        Traits(
            "globalsum",
            "the two sums of an iteration of conjugate gradients; bandwidth is what one node sends",
            bandwidth_of="node",
        ),
        Pattern("allreduce", rounds=2, algorithm="recursive-doubling"),
    ),
    (
        GrowingWorkload,
        Traits(
            "fft",
            "every node to every other one in its line, along each dimension in turn; bandwidth is what one node sends",
            bandwidth_of="node",
        ),
        Pattern("fft"),
    ),
)
_FUNCTIONS = {traits.test: _workload(base, traits, pattern) for base, traits, pattern in _WORKLOADS}
WORKLOADS = tuple(_FUNCTIONS)
TESTS = tuple(CATALOGUE.requests)
"""The tests of one machine over message sizes."""
lqcd = CATALOGUE.add(Lqcd)


def __getattr__(name: str) -> Callable[..., BenchResult]:
    """The functions of the workloads."""
    if name not in _FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _FUNCTIONS[name]


def make_request(test: str, machine: Machine | str, **options: Any) -> MachineRequest[BenchResult]:  # noqa: ANN401
    """The checked request of one test of TESTS. Raises InputError and MachineError for bad input."""
    if test not in TESTS:
        raise InputError("test", test, "one of " + ", ".join(CATALOGUE.requests))
    CATALOGUE.refuse_foreign(test, options)
    kind = cast("type[MachineRequest[BenchResult]]", CATALOGUE.requests[test])
    return kind(machine, **options)


def measure(test: str, machine: Machine | str, **options: Any) -> BenchResult:  # noqa: ANN401 (those of the test)
    """One test of TESTS over message sizes: the same as the function of its name.

    Raises InputError and MachineError for bad input, BenchError if a program fails.
    """
    return make_request(test, machine, **options).measure()
