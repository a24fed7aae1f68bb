"""Options that benchmarks refuse: invalid ones, and what would take hours."""

import sys

import pytest

import apenet
from apenet.base.errors import InputError
from apenet.bench.mpi import BenchError


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"sizes": [0]}, "sizes"),
        ({"sizes": "0:16"}, "sizes"),
        ({"sizes": "\u0661\u0666"}, "sizes"),
        ({"nodes": "\u0660,\u0661"}, "nodes"),
        ({"nodes": [0]}, "nodes"),
        ({"nodes": [0, 0]}, "nodes"),
        ({"nodes": [0, 16]}, "nodes"),
        ({"nodes": [0, 1, 2, 3]}, "nodes"),
        ({"layer": "wire"}, "layer"),
        ({"mpi": "openmpi"}, "mpi"),
        ({"pin": False}, "pin"),
        ({"test": "halo", "mpi": "mpich", "layer": "card"}, "mpi"),
        ({"channels": 0}, "channels"),
        ({"channels": [1, 99]}, "channels"),
        ({"window": 0}, "window"),
        ({"window": 4}, "window"),
        ({"window": 4, "layer": "mpi"}, "window"),
        ({"test": "unidirectional", "window": 2_000_000_000}, "window"),
        ({"test": "unidirectional", "window": 101}, "window"),
        ({"test": "unidirectional", "window": 9, "iterations": 8}, "window"),
        ({"test": "unidirectional", "window": 9, "iterations": 8, "layer": "mpi"}, "window"),
        ({"test": "unidirectional", "window": 2**17, "layer": "mpi"}, "window"),
        ({"test": "bidirectional", "window": 21}, "window"),
        ({"test": "rate", "window": 2001}, "window"),
        ({"memory": "disk"}, "memory"),
        ({"memory": "host,host,host"}, "memory"),
        ({"memory": "gpu"}, "memory"),
        ({"memory": "host,gpu-staged"}, "memory"),
        ({"memory": "host-copied", "layer": "mpi"}, "memory"),
        ({"memory": "gpu", "layer": "mpi"}, "memory"),
        ({"memory": "gpu", "test": "halo"}, "memory"),
        ({"path": "wormhole"}, "path"),
        ({"path": "send", "test": "rate"}, "path"),
        ({"until": "landed"}, "until"),
        ({"until": "dawn", "test": "oneway"}, "until"),
        ({"region": 8}, "region"),
        ({"test": "get", "layer": "mpi"}, "test"),
        ({"test": "halo", "window": 4}, "window"),
        ({"test": "rate", "sizes": "8M"}, "sizes"),
        ({"channels": 99}, "channels"),
        ({"channels": 2, "layer": "mpi"}, "channels"),
        ({"iterations": 0}, "iterations"),
        ({"nodes": [0, 1, 2], "layer": "mpi"}, "nodes"),
        ({"sizes": "16:2G", "layer": "mpi"}, "sizes"),
        ({"sizes": "2G", "layer": "apelib"}, "sizes"),
        ({"test": "put", "window": 2**17, "layer": "gasnet"}, "window"),
        ({"iterations": 2**31 - 1, "layer": "mpi"}, "iterations"),
        ({"iterations": 2**31 - 1, "layer": "apelib"}, "iterations"),
        ({"test": "fanout", "iterations": 2**31 - 1}, "iterations"),
        ({"test": "flush", "iterations": 2**31 - 1, "sizes": [16]}, "iterations"),
        ({"test": "randompairs", "machine": "ideal", "iterations": 2**28, "sizes": [16], "n": 2}, "iterations"),
        ({"machine": "ape17"}, "machine"),
        ({"test": "flood"}, "test"),
    ],
)
def test_bad_input_is_named(options, name):
    arguments = {"test": "pingpong", "machine": "ape16", **options}
    with pytest.raises(InputError) as caught:
        apenet.bench.measure(arguments.pop("test"), arguments.pop("machine"), **arguments)
    assert caught.value.name == name


@pytest.mark.parametrize(("layer", "messages"), [("mpi", 1000), ("apelib", 100)])
def test_a_window_without_so_many_messages_is_refused_by_the_programs(layer, messages):
    with pytest.raises(BenchError, match=f"at most the {messages} messages of a size; more with --iterations"):
        apenet.bench.unidirectional("ape16", sizes=[64], layer=layer, window=messages + 1)


@pytest.mark.parametrize(("layer", "messages"), [("card", 100), ("mpi", 1000), ("apelib", 100)])
def test_a_window_of_all_messages_is_what_is_measured(layer, messages):
    result = apenet.bench.unidirectional("ape16", sizes=[64], layer=layer, window=messages)
    assert result.to_json()["window"] == messages


@pytest.mark.parametrize(
    ("test", "options", "name"),
    [
        ("fanout", {"layer": "card"}, "layer"),
        ("fanout", {"neighbors": [5]}, "neighbors"),
        ("fanout", {"nodes": [0, 1], "neighbors": [2]}, "neighbors"),
        ("fanout", {"window": 4}, "window"),
        ("fanout", {"memory": "gpu"}, "memory"),
        ("fanout", {"memory": "host,gpu"}, "memory"),
        ("pingpong", {"neighbors": [1]}, "neighbors"),
        ("halo", {"neighbors": [1]}, "neighbors"),
    ],
)
def test_bad_fan_outs_are_named(test, options, name):
    with pytest.raises(InputError, match=f"^{name} = "):
        apenet.bench.measure(test, "quong", sizes=[64], **options)


@pytest.mark.parametrize(
    ("test", "options", "name"),
    [
        ("alltoall", {"layer": "mpi"}, "layer"),
        ("halo", {"channels": 2}, "channels"),
        ("halo", {"algorithm": "ring"}, "algorithm"),
        ("allreduce", {"algorithm": "tree"}, "algorithm"),
        ("pingpong", {"algorithm": "ring"}, "algorithm"),
        ("pingpong", {"n": 4}, "n"),
        ("halo", {"n": 17}, "n"),
        ("halo", {"n": 1}, "n"),
        ("halo", {"n": 4, "nodes": [0, 1]}, "n"),
        ("halo", {"nodes": [0, 99]}, "nodes"),
    ],
)
def test_invalid_workload_options_are_named(test, options, name):
    with pytest.raises(InputError) as refused:
        apenet.bench.measure(test, "ape16", sizes=[16], **options)
    assert refused.value.name == name


def test_an_option_that_no_test_has_is_a_type_error():
    with pytest.raises(TypeError, match="unknown option chanels: one of sizes, nodes,"):
        apenet.bench.pingpong("ideal", sizes=[16], chanels=2)


@pytest.mark.parametrize(
    ("test", "options", "name"),
    [
        ("allreduce", {"partitions": [16]}, "partitions"),
        ("pingpong", {"partitions": [16]}, "partitions"),
        ("bisection", {"partitions": [16], "n": 4}, "n"),
        ("bisection", {"partitions": [16], "sizes": "16:64"}, "sizes"),
        ("alltoall", {"lattice": "8x8x8x8"}, "lattice"),
        ("halo", {"lattice": "8x8x8x"}, "lattice"),
        ("halo", {"lattice": "8x8x8x8", "site_bytes": 0}, "site-bytes"),
    ],
)
def test_bad_partitions_and_lattices_are_named(test, options, name):
    with pytest.raises(InputError) as refused:
        apenet.bench.measure(test, "ape16", **{"sizes": [64], **options})
    assert refused.value.name == name


@pytest.mark.parametrize(
    ("machine", "options", "named"),
    [
        ("ape16", {"memory": "gpu"}, "memory = gpu: expected host: the card of ape16 does not reach a GPU's memory"),
        ("pax", {"memory": "gpu-staged"}, "expected host: pax has no host.gpu_copy_bandwidth_mib_s"),
        (
            "pax",
            {"memory": "host,gpu", "layer": "mpi"},
            "expected host: pax has no GPU (host.gpu_copy_bandwidth_mib_s)",
        ),
        ("quong", {"memory": "host-copied", "layer": "mpi"}, "expected one of host, gpu, gpu-staged at layer mpi"),
        ("extoll-64", {"channels": 2}, "channels = 2: expected at most the 1 of the card of extoll-64"),
    ],
)
def test_options_that_a_card_lacks_are_refused(machine, options, named):
    with pytest.raises(InputError) as refused:
        apenet.bench.measure("pingpong", machine, sizes=[16], **options)
    assert named in str(refused.value)


@pytest.mark.parametrize(
    ("test", "options"),
    [
        ("alltoall", {}),
        ("alltoall", {"sizes": [2048], "iterations": 10**9}),
        ("halo", {"n": 100, "sizes": "16:16M"}),  # 5x5x4 processes, whose neighbours are not those of the nodes
        ("bisection", {"sizes": [2**20], "partitions": [512, 1024]}),
    ],
)
def test_what_software_would_forward_for_long_is_refused_at_once(test, options):
    with pytest.raises(InputError) as refused:
        apenet.bench.measure(test, "qpace", **options)
    assert refused.value.name == "sizes"
    assert f"expected {test} to need at most 5e+07 packet-hops" in str(refused.value)
    assert "--sizes, fewer --iterations or fewer nodes (-n)" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("test", "options", "hops"),
    [
        ("halo", {"sizes": "128G"}, "2.6e+11"),  # 5 rounds of 16 nodes, 6 messages of 2^29 packets of 256 bytes
        ("alltoall", {"sizes": "1G"}, "1.1e+10"),
        ("randompairs", {"sizes": [16], "iterations": 2**31 - 1}, ""),
        ("allreduce", {"machine": "ideal", "n": 2**22, "sizes": [16]}, ""),
        ("halo", {"sizes": [2**39], "partitions": [4, 8]}, ""),
        ("pingpong", {"sizes": "1024G"}, "1.9e+11"),
        ("randomaccess", {"sizes": "1024G"}, "8.8e+12"),
        ("randomaccess", {"machine": "extoll-64", "layer": "upc", "sizes": "1G", "n": 2}, "8.6e+10"),
        ("pingpong", {"layer": "mpi", "sizes": "1G", "iterations": 10**6}, ""),
        ("halo", {"layer": "apelib", "sizes": "64M", "iterations": 10**6}, ""),
        ("fanout", {"sizes": "64M", "iterations": 10**6}, ""),
    ],
)
def test_what_would_take_hours_is_refused_at_once_with_its_number(test, options, hops):
    chosen = {"machine": "ape16", **options}
    with pytest.raises(InputError) as refused:
        apenet.bench.measure(test, chosen.pop("machine"), **chosen)
    assert refused.value.name == "sizes"
    assert f"expected {test} to need at most 1e+10 packet-hops" in str(refused.value)
    assert f"not {hops}" in str(refused.value)
    assert "choose smaller --sizes, fewer --iterations or fewer nodes (-n), or wait with --allow-long" in str(
        refused.value
    )


def test_what_takes_long_runs_if_it_is_allowed(monkeypatch):
    monkeypatch.setattr(sys.modules["apenet.run.long_runs"], "MOST_PACKET_HOPS", 100)
    with pytest.raises(InputError, match="at most 1e"):
        apenet.bench.halo("ape16", sizes=[256], iterations=2)
    assert apenet.bench.halo("ape16", sizes=[256], iterations=2, allow_long=True).messages[0] == 2 * 16 * 6
    assert apenet.bench.halo("ape16", sizes=[256], iterations=1).messages[0] == 16 * 6


# A byte a second: 2^20 bytes take 12 days, and 20 of them end after the simulator's clocks do.
def test_messages_beyond_the_end_of_virtual_time_are_refused():
    slow = apenet.machine("ideal", [f"card.bandwidth_mib_s={2**-20}"])
    for test, options in (("pingpong", {"iterations": 20}), ("oneway", {}), ("halo", {"n": 4, "iterations": 20})):
        with pytest.raises(InputError, match="sizes = 1048576: expected messages that end within 104 days"):
            apenet.bench.measure(test, slow, sizes=[16, 2**20], **options)
    assert apenet.bench.pingpong(slow, sizes=[2**16], iterations=2).times_us[0] == pytest.approx(65536e6 + 1)


def test_what_software_forwards_soon_runs():
    assert apenet.bench.alltoall("qpace", sizes=[16], n=8, iterations=1).times_us[0] > 0
    assert apenet.bench.halo("qpace", sizes=[2**16], iterations=1).times_us[0] > 0  # only between neighbours
