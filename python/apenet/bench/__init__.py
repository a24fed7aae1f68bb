"""Benchmarks: the published tests, at the card and through MPI, and workloads of the whole machine at the card.

`apenet.bench.pingpong(apenet.machine("ape16"), sizes="16:1M")`, `apenet.bench.halo("ape128", sizes=[4096])` and
similar functions do the same as `apenet bench`; `apenet.bench.lqcd(["ape128", "pax"], ranks=[1, 8, 64])` is the scaling
of a lattice QCD program. The parameters of a function are the options of its test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from apenet import _core
from apenet.base.errors import InputError
from apenet.bench import pairs
from apenet.bench.fanout import FanOut
from apenet.bench.lqcd_result import LqcdResult
from apenet.bench.lqcd_scaling import Lqcd
from apenet.bench.mpi import BenchError
from apenet.bench.random_access import RandomAccess
from apenet.bench.request import Catalogue, MachineRequest, Request
from apenet.bench.result import BenchResult, WorkloadResult
from apenet.bench.workloads import request_of
from apenet.machine import Machine

__all__ = [
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


_FUNCTIONS = {
    one.name: CATALOGUE.add(request_of(one)) for one in _core.workloads() if one.name not in CATALOGUE.requests
}
WORKLOADS = tuple(_FUNCTIONS)
TESTS = tuple(CATALOGUE.requests)
"""The tests of one machine over message sizes."""
lqcd = CATALOGUE.add(Lqcd)


def __getattr__(name: str) -> Callable[..., BenchResult]:
    """The functions of the workloads, which the core lists."""
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
