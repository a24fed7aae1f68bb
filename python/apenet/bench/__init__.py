"""Benchmarks: the published tests, at the card and through MPI, and workloads of the whole machine at the card.

`apenet.bench.pingpong(apenet.machine("ape16"), sizes="16:1M")`, `apenet.bench.halo("ape128", sizes=[4096])` and
similar functions do the same as `apenet bench`; `apenet.bench.lqcd(["ape128", "pax"], ranks=[1, 8, 64])` is the scaling
of a lattice QCD program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Unpack

from apenet.base.errors import InputError
from apenet.base.numbers import checked_seed, whole
from apenet.base.sizes import checked_sizes
from apenet.bench import card, conduits, mpi, random_access, workloads
from apenet.bench import fanout as fanout_of
from apenet.bench import layers as layers_of
from apenet.bench import partitions as partitions_of
from apenet.bench.card import Conditions
from apenet.bench.conduits import CONDUITS
from apenet.bench.lattice import parse_lattice
from apenet.bench.layers import LAYERS as NATIVE_LAYERS
from apenet.bench.lqcd_result import LqcdResult
from apenet.bench.lqcd_scaling import TEST as LQCD
from apenet.bench.lqcd_scaling import measure as lqcd
from apenet.bench.mpi import BenchError
from apenet.bench.request import ACTIVE_MESSAGES, DEFAULT_SITE_BYTES, DEFAULTS, BenchRequest, Options, no_progress
from apenet.bench.result import DEFINITIONS, PAIR_TESTS, TESTS, WORKLOADS, BenchResult, WorkloadResult
from apenet.bench.workloads import ALGORITHMS
from apenet.machine import ENGINES, Machine
from apenet.machine import machine as read_machine
from apenet.machine.mapping import MOST_RANKS

__all__ = [
    "ALGORITHMS",
    "CACHES",
    "CONDUITS",
    "DEFAULT_SITE_BYTES",
    "DEFINITIONS",
    "LAYERS",
    "PAIR_TESTS",
    "TESTS",
    "WORKLOADS",
    "BenchError",
    "BenchResult",
    "Conditions",
    "LqcdResult",
    "WorkloadResult",
    "allreduce",
    "alltoall",
    "bidirectional",
    "bisection",
    "checkerboard",
    "fanout",
    "fft",
    "flush",
    "get",
    "globalsum",
    "halo",
    "halo4d",
    "lqcd",
    "measure",
    "oneway",
    "pingping",
    "pingpong",
    "put",
    "randomaccess",
    "randompairs",
    "rate",
    "roundtrip",
    "unidirectional",
]

LAYERS = ("card", *NATIVE_LAYERS)
CACHES = ("on", "off")
FAN_OUT = "fanout"
RANDOM_ACCESS = "randomaccess"
GASNET_LAYERS = ("gasnet", "upc")
LATTICE_TESTS = ("halo", workloads.FOUR_DIMENSIONS)
MOST_ITERATIONS = 2**31 - 1  # limit of the core's counter, which also counts the rounds of a pattern
MOST_CHANNELS = 2**16 - 1
DEFAULT_SIZES = "16:1M"  # from the card's smallest payload on


def measure(
    test: str,
    machine: Machine | str,
    *,
    sizes: str | int | Sequence[int] | None = None,
    nodes: Sequence[int] | None = None,
    layer: str | None = None,
    iterations: int | None = None,
    caches: str = "on",
    engine: str = "packet",
    seed: int = 1,
    progress: Callable[[int], None] = no_progress,
    **options: Unpack[Options],
) -> BenchResult:
    """One test over message sizes.

    `sizes` are 16:1M by default; for randomaccess, 8K. `layer` is card by default; for fanout and randomaccess, mpi.
    `nodes` are the nodes that communicate (default: node 0 and its neighbour, for fanout all its neighbours; for a
    workload and randomaccess all nodes, or the first `count`). `iterations` are, for randomaccess, the updates of each
    process (default: four a word). With `caches` "off" the software takes `host.uncached_factor` times as long.
    `engine` is as for `apenet.run`. Each of the other options belongs to one kind of test: see `CardOptions`,
    `MpiOptions` and `WorkloadOptions` of `apenet.bench.request`, and docs/reference/tests.md. Raises InputError and
    MachineError for bad input, BenchError if a program fails.
    """
    if unknown := options.keys() - DEFAULTS.keys():
        raise TypeError(f"unknown option {min(unknown)}: one of {', '.join(DEFAULTS)}")
    if test not in TESTS:
        raise InputError("test", test, "one of " + ", ".join((*TESTS, LQCD)))
    if layer is None:
        layer = "mpi" if test in {FAN_OUT, RANDOM_ACCESS} else "card"
    if layer not in LAYERS:
        raise InputError("layer", layer, "one of " + ", ".join(LAYERS))
    if engine not in ENGINES:
        raise InputError("engine", engine, " or ".join(ENGINES))
    if sizes is None:
        sizes = random_access.DEFAULT_TABLE_BYTES if test == RANDOM_ACCESS else DEFAULT_SIZES
    if caches not in CACHES:
        raise InputError("caches", caches, " or ".join(CACHES))
    given: Options = {**DEFAULTS, **options}
    chosen = read_machine(machine) if isinstance(machine, str) else machine
    if caches != CACHES[0]:
        chosen = chosen.with_settings(f"host.caches={caches}")
    _check_gasnet(chosen, layer, given)
    request = BenchRequest(
        machine=chosen,
        test=test,
        sizes=checked_sizes(sizes),
        nodes=None if nodes is None else _checked_nodes(chosen, nodes),
        iterations=None
        if iterations is None
        else whole("iterations", iterations, 1, MOST_ITERATIONS, "a whole number of at least 1"),
        engine=engine,
        seed=checked_seed(seed),
        progress=progress,
        active_messages=given["active_messages"],
        conduit=given["conduit"],
    )
    channels = _checked_channels(given["channels"])
    conditions = Conditions(
        window=given["window"],
        memory=given["memory"],
        path=given["path"],
        until=given["until"],
        region_bytes=given["region"],
    )
    if test in WORKLOADS or layer != "card":
        _check_plain(test, layer, channels, conditions)
    _check_owners(test, given)
    if test in WORKLOADS:
        return _measure_workload(request, layer, given)
    if test == FAN_OUT:
        return _measure_fan_out(request, layer, conditions, given)
    if test == RANDOM_ACCESS:
        return _measure_random_access(request, layer, conditions, given)
    return _measure_pair(request, layer, conditions, channels, given)


def _check_gasnet(machine: Machine, layer: str, given: Options) -> None:
    """Of the options of the layers over GASNet."""
    active_messages, conduit = given["active_messages"], given["conduit"]
    for key, value in (("active_messages", active_messages), ("conduit", conduit)):
        if value is not None and layer not in GASNET_LAYERS:
            raise InputError(key, value, f"none at layer {layer}: it belongs to {' and '.join(GASNET_LAYERS)}")
    if active_messages is not None and active_messages not in ACTIVE_MESSAGES:
        raise InputError("active_messages", active_messages, " or ".join(ACTIVE_MESSAGES))
    conduits.check(machine, conduit, active_messages)


def _check_owners(test: str, given: Options) -> None:
    """Refuses options that belong to other tests."""
    if given["neighbors"] is not None and test != FAN_OUT:
        raise InputError("neighbors", str(list(given["neighbors"])), f"none for {test}: they belong to {FAN_OUT}")
    if given["look_ahead"] is not None and test != RANDOM_ACCESS:
        raise InputError("look_ahead", given["look_ahead"], f"none for {test}: it belongs to {RANDOM_ACCESS}")
    if given["ranks_per_node"] != 1 and test != RANDOM_ACCESS:
        raise InputError("ranks_per_node", given["ranks_per_node"], f"1 for {test}: others belong to {RANDOM_ACCESS}")
    if test in WORKLOADS:
        return
    if given["count"] is not None and test != RANDOM_ACCESS:
        raise InputError("n", given["count"], f"none for {test}: it belongs to {', '.join(WORKLOADS)}")
    for key in ("algorithm", "lattice", "partitions"):
        if given[key] is not None:
            raise InputError(key, given[key], f"none for {test}: it belongs to {', '.join(WORKLOADS)}")


def _measure_pair(
    request: BenchRequest, layer: str, conditions: Conditions, channels: list[int], given: Options
) -> BenchResult:
    if layer == "card" and request.test in layers_of.ACCESS_TESTS:
        raise InputError("layer", layer, f"one of {', '.join(_access_layers(request.test))} for {request.test}")
    if layer == "card":
        return card.measure(request, conditions, channels)
    if layer != "mpi" or request.test in NATIVE_LAYERS["mpi"].tests:
        return layers_of.measure(
            request,
            layer,
            channels=channels,
            window=conditions.window,
            pin=given["pin"],
            library=given["mpi_library"],
        )
    return mpi.measure(
        request,
        window=conditions.window,
        memory=conditions.memory,
        library=given["mpi_library"],
        pin=given["pin"],
    )


def _access_layers(test: str) -> list[str]:
    return [name for name, layer in NATIVE_LAYERS.items() if test in layer.tests]


def _measure_fan_out(request: BenchRequest, layer: str, conditions: Conditions, given: Options) -> BenchResult:
    if layer != "mpi":
        raise InputError("layer", layer, f"mpi: {FAN_OUT} is a program of MPI")
    if conditions.window is not None:
        raise InputError("window", conditions.window, f"none for {FAN_OUT}: it has 8 messages to each neighbour")
    if conditions.memory != "host":
        raise InputError("memory", conditions.memory, f"host: {FAN_OUT} has no buffers in a GPU")
    return fanout_of.measure(request, given["neighbors"], library=given["mpi_library"], pin=given["pin"])


def _measure_random_access(request: BenchRequest, layer: str, conditions: Conditions, given: Options) -> BenchResult:
    if conditions.window is not None:
        raise InputError("window", conditions.window, f"none for {RANDOM_ACCESS}")
    if conditions.memory != "host":
        raise InputError("memory", conditions.memory, f"host for {RANDOM_ACCESS}")
    return random_access.measure(
        request,
        layer,
        count=given["count"],
        look_ahead=given["look_ahead"],
        ranks_per_node=given["ranks_per_node"],
        pin=given["pin"],
        library=given["mpi_library"],
    )


def _measure_workload(request: BenchRequest, layer: str, given: Options) -> BenchResult:
    test, algorithm, lattice, partitions = request.test, given["algorithm"], given["lattice"], given["partitions"]
    if layer != "card" and test != layers_of.HALO:
        raise InputError(
            "layer", layer, f"card: {test} is a scripted workload; a program of its own runs by apenet run"
        )
    if algorithm is not None and (test != "allreduce" or algorithm not in ALGORITHMS):
        expected = "one of " + ", ".join(ALGORITHMS) if test == "allreduce" else f"none for {test}"
        raise InputError("algorithm", algorithm, expected)
    if partitions is not None and layer != "card":
        raise InputError("partitions", str(list(partitions)), f"none at layer {layer}")
    if partitions is not None:
        _check_partitions(request, given["count"])
        return partitions_of.measure(request, partitions)
    if lattice is not None and test not in LATTICE_TESTS:
        raise InputError("lattice", lattice, f"none for {test}: it belongs to {', '.join(LATTICE_TESTS)}")
    surfaces = None if lattice is None else parse_lattice(lattice, given["site_bytes"])
    if layer == "card":
        return workloads.measure(request, count=given["count"], lattice=surfaces, algorithm=algorithm)
    plan = workloads.make_plan(request, count=given["count"], lattice=surfaces)
    return layers_of.measure_halo(request, layer, plan, pin=given["pin"], library=given["mpi_library"])


def _checked_channels(channels: int | Sequence[int]) -> list[int]:
    numbers = channels if isinstance(channels, Iterable) else [channels]
    return [whole("channels", number, 1, MOST_CHANNELS, "a whole number of at least 1") for number in numbers]


def _check_plain(test: str, layer: str, channels: list[int], conditions: Conditions) -> None:
    """Refuses options that exist only for the card's own tests of two nodes."""
    where = f"for {test}" if test in WORKLOADS else f"at layer {layer}"
    taken: tuple[str, ...] = ()
    if test not in WORKLOADS:
        taken = ("window", "memory") if layer == "mpi" else ("window",)
    if channels != [1] and (test in WORKLOADS or layer == "mpi"):
        raise InputError(
            "channels", ",".join(map(str, channels)), f"1 {where}: channels belong to the card's own tests"
        )
    for name, value in conditions.given.items():
        if name not in taken:
            key = name.removesuffix("_bytes")
            raise InputError(key, value, f"none {where}: {key} belongs to the card's own tests")


def _check_partitions(request: BenchRequest, count: int | None) -> None:
    if request.test == "allreduce":
        raise InputError("partitions", request.test, "a workload other than allreduce")
    for name, given in (("nodes", request.nodes), ("n", count)):
        if given is not None:
            raise InputError(name, given, "none with partitions, which give the numbers of nodes")
    if len(request.sizes) != 1:
        raise InputError("sizes", len(request.sizes), "one size with partitions, such as 64K")


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
fanout = partial(measure, FAN_OUT)
rate = partial(measure, "rate")
put = partial(measure, "put")
get = partial(measure, "get")
halo = partial(measure, "halo")
allreduce = partial(measure, "allreduce")
alltoall = partial(measure, "alltoall")
randomaccess = partial(measure, RANDOM_ACCESS)
randompairs = partial(measure, "randompairs")
bisection = partial(measure, "bisection")
halo4d = partial(measure, "halo4d")
checkerboard = partial(measure, "checkerboard")
globalsum = partial(measure, "globalsum")
fft = partial(measure, "fft")
