"""Benchmarks: the published tests, at the card and through MPI, and workloads of the whole machine at the card.

`apenet.bench.pingpong(apenet.machine("ape16"), sizes="16:1M")`, `apenet.bench.halo("ape128", sizes=[4096])` and their
kin; the same as `apenet bench`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from apenet.base.errors import InputError
from apenet.base.numbers import checked_seed, whole
from apenet.base.sizes import checked_sizes
from apenet.bench import card, mpi, workloads
from apenet.bench import partitions as partitions_of
from apenet.bench.card import Conditions
from apenet.bench.lattice import parse_lattice
from apenet.bench.mpi import BenchError
from apenet.bench.result import DEFINITIONS, PAIR_TESTS, TESTS, WORKLOADS, BenchResult, WorkloadResult
from apenet.bench.workloads import ALGORITHMS
from apenet.host.toolchain import MpiChoice
from apenet.machine import ENGINES, Machine
from apenet.machine import machine as read_machine
from apenet.machine.mapping import MOST_RANKS

__all__ = [
    "ALGORITHMS",
    "DEFINITIONS",
    "LAYERS",
    "PAIR_TESTS",
    "TESTS",
    "WORKLOADS",
    "BenchError",
    "BenchResult",
    "Conditions",
    "WorkloadResult",
    "allreduce",
    "alltoall",
    "bidirectional",
    "bisection",
    "flush",
    "halo",
    "measure",
    "oneway",
    "pingping",
    "pingpong",
    "randomaccess",
    "rate",
    "roundtrip",
    "unidirectional",
]

LAYERS = ("card", "mpi")
DEFAULT_SITE_BYTES = 48  # a half-spinor in single precision
MOST_ITERATIONS = 2**32 - 1  # what the core counts
MOST_CHANNELS = 2**16 - 1
DEFAULT_SIZES = "16:1M"  # from the card's smallest payload on


def _no_progress(_size_bytes: int) -> None:
    """Nobody watches."""


def measure(
    test: str,
    machine: Machine | str,
    *,
    sizes: str | int | Sequence[int] = DEFAULT_SIZES,
    nodes: Sequence[int] | None = None,
    count: int | None = None,
    channels: int | Sequence[int] = 1,
    layer: str = "card",
    iterations: int | None = None,
    window: int | None = None,
    memory: str = "host",
    path: str = "auto",
    until: str = "reply",
    region: int | None = None,
    algorithm: str | None = None,
    partitions: Sequence[int] | None = None,
    lattice: str | None = None,
    site_bytes: int = DEFAULT_SITE_BYTES,
    engine: str = "packet",
    seed: int = 1,
    mpi_library: MpiChoice = "auto",
    pin: bool = True,
    progress: Callable[[int], None] = _no_progress,
) -> BenchResult:
    """One test over message sizes.

    `nodes` are the ones that talk (default: node 0 and its neighbour; for a workload all, or the first `count`).
    `channels` messages at once use as many hardware queues, at layer card; several numbers of them are measured one
    after another. `window`, `memory`, `path`, `until` and `region` (in bytes): see `apenet.bench.card.Conditions` and
    docs/reference/tests.md. `algorithm` is that of allreduce. A workload with one size over `partitions` is done on
    machines of so many nodes each; a halo of a `lattice`, "64x64x64x192", has its surfaces with `site_bytes` a site as
    messages. `engine` is that of `apenet.run`. Raises InputError and MachineError for bad input, BenchError when
    the MPI program of layer mpi fails.
    """
    if test not in TESTS:
        raise InputError("test", test, "one of " + ", ".join(TESTS))
    if layer not in LAYERS:
        raise InputError("layer", layer, "one of " + ", ".join(LAYERS))
    chosen = read_machine(machine) if isinstance(machine, str) else machine
    checked = checked_sizes(sizes)
    nodes = None if nodes is None else _checked_nodes(chosen, nodes)
    seed = checked_seed(seed)
    all_channels = [
        whole("channels", number, 1, MOST_CHANNELS, "a whole number of at least 1")
        for number in (channels if isinstance(channels, Iterable) else [channels])
    ]
    if iterations is not None:
        iterations = whole("iterations", iterations, 1, MOST_ITERATIONS, "a whole number of at least 1")
    if engine not in ENGINES:
        raise InputError("engine", engine, " or ".join(ENGINES))
    conditions = Conditions(window=window, memory=memory, path=path, until=until, region_bytes=region)
    if test in WORKLOADS or layer == "mpi":
        _check_plain(test, layer, all_channels, conditions)
    if test in WORKLOADS:
        _check_workload(test, layer, algorithm)
        if partitions is not None:
            _check_partitions(test, checked, nodes, count)
            return partitions_of.measure(
                chosen,
                test,
                checked[0],
                partitions,
                iterations=iterations,
                engine=engine,
                seed=seed,
                progress=progress,
            )
        if lattice is not None and test != "halo":
            raise InputError("lattice", lattice, f"none for {test}: it belongs to halo")
        return workloads.measure(
            chosen,
            test,
            checked,
            nodes=nodes,
            count=count,
            lattice=None if lattice is None else parse_lattice(lattice, site_bytes),
            iterations=iterations,
            algorithm=algorithm,
            engine=engine,
            seed=seed,
            progress=progress,
        )
    for name, given in (("algorithm", algorithm), ("n", count), ("lattice", lattice), ("partitions", partitions)):
        if given is not None:
            raise InputError(name, given, f"none for {test}: it belongs to {', '.join(WORKLOADS)}")
    if layer == "card":
        return card.measure(
            chosen,
            test,
            checked,
            nodes=nodes,
            channels=all_channels,
            iterations=iterations,
            conditions=conditions,
            engine=engine,
            seed=seed,
            progress=progress,
        )
    return mpi.measure(
        chosen,
        test,
        checked,
        nodes=nodes,
        iterations=iterations,
        window=window,
        engine=engine,
        seed=seed,
        mpi=mpi_library,
        pin=pin,
        progress=progress,
    )


def _check_plain(test: str, layer: str, channels: list[int], conditions: Conditions) -> None:
    """What belongs to the card's own tests of two nodes."""
    where = f"for {test}" if test in WORKLOADS else "at layer mpi"
    if channels != [1]:
        raise InputError(
            "channels", ",".join(map(str, channels)), f"1 {where}: channels belong to the card's own tests"
        )
    for name, value in conditions.given.items():
        if name != "window" or layer != "mpi" or test in WORKLOADS:
            key = name.removesuffix("_bytes")
            raise InputError(key, value, f"none {where}: {key} belongs to the card's own tests")


def _check_workload(test: str, layer: str, algorithm: str | None) -> None:
    if layer != "card":
        raise InputError(
            "layer", layer, f"card: {test} is a scripted workload; a program of its own runs by apenet run"
        )
    if algorithm is not None and (test != "allreduce" or algorithm not in ALGORITHMS):
        expected = "one of " + ", ".join(ALGORITHMS) if test == "allreduce" else f"none for {test}"
        raise InputError("algorithm", algorithm, expected)


def _check_partitions(test: str, sizes: list[int], nodes: Sequence[int] | None, count: int | None) -> None:
    if test == "allreduce":
        raise InputError("partitions", test, "a workload other than allreduce")
    for name, given in (("nodes", nodes), ("n", count)):
        if given is not None:
            raise InputError(name, given, "none beside partitions, which say how many nodes")
    if len(sizes) != 1:
        raise InputError("sizes", len(sizes), "one size with partitions, such as 64K")


def _checked_nodes(machine: Machine, nodes: Sequence[int]) -> list[int]:
    text = ",".join(map(str, nodes))
    count = machine.node_count
    expected = f"nodes of {machine.name}" + (f": 0 to {count - 1}" if count else "")
    most = (count or MOST_RANKS) - 1
    checked = []
    for node in nodes:
        try:
            checked.append(whole("nodes", node, 0, most, expected))
        except InputError as error:
            raise InputError("nodes", text, expected) from error
    if len(set(checked)) != len(checked) or len(checked) < card.PAIR:
        raise InputError("nodes", text, "at least two different nodes, such as 0,1")
    return checked


pingpong = partial(measure, "pingpong")
roundtrip = partial(measure, "roundtrip")
oneway = partial(measure, "oneway")
pingping = partial(measure, "pingping")
unidirectional = partial(measure, "unidirectional")
bidirectional = partial(measure, "bidirectional")
flush = partial(measure, "flush")
rate = partial(measure, "rate")
halo = partial(measure, "halo")
allreduce = partial(measure, "allreduce")
alltoall = partial(measure, "alltoall")
randomaccess = partial(measure, "randomaccess")
bisection = partial(measure, "bisection")
