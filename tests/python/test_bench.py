"""Benchmarks as Python functions."""

import json

import numpy as np
import pytest

import apenet
from apenet.bench.mpi import doubling_stretches
from apenet.errors import InputError


def test_the_teaching_machine_is_its_two_numbers():
    result = apenet.bench.pingpong("ideal", sizes=[1, 2**20])
    # 1 us, and 1000 MiB/s: 2^20 bytes take 1000 us more.
    assert result.times_us == pytest.approx([1.0, 1001.0], abs=0.01)
    assert result.bandwidths_mib_s[1] == pytest.approx(1000 / 1.001, rel=1e-4)


@pytest.mark.parametrize("test", apenet.bench.TESTS)
def test_every_test_gives_arrays_of_one_length(test):
    result = apenet.bench.measure(test, "apenet-2004", sizes="16:256")
    assert result.sizes_bytes.tolist() == [16, 32, 64, 128, 256]
    assert result.times_us.shape == result.bandwidths_mib_s.shape == (5,)
    assert (np.diff(result.times_us) >= 0).all()
    assert (result.times_us > 0).all()


def test_a_round_trip_is_two_half_ones():
    half = apenet.bench.pingpong("ape16", sizes="16:4K")
    whole = apenet.bench.roundtrip("ape16", sizes="16:4K")
    assert whole.times_us == pytest.approx(2 * half.times_us, rel=1e-6)


def test_json_is_the_contract():
    result = apenet.bench.oneway("ape16", sizes="16:64", seed=3)
    content = json.loads(json.dumps(result.to_json()))
    assert list(content) == ["machine", "test", "layer", "seed", "version", "points"]
    assert (content["machine"], content["test"], content["layer"], content["seed"]) == ("ape16", "oneway", "card", 3)
    assert list(content["points"][0]) == ["size_bytes", "time_us", "bandwidth_mib_s"]


def test_the_same_twice():
    first, second = (apenet.bench.bidirectional("ape16", sizes="16:64K").to_json() for _ in range(2))
    assert first == second


def test_distance_costs_time():
    near = apenet.bench.pingpong("ape128", sizes=[16], nodes=(0, 1))
    far = apenet.bench.pingpong("ape128", sizes=[16], nodes=(0, 4 + 2 * 8 + 2 * 32))
    assert far.times_us[0] > near.times_us[0]


def test_a_slower_bus_is_slower():
    slow = apenet.machine("ape16", ["bus.clock_mhz=33"])
    assert (
        apenet.bench.pingpong(slow, sizes=[2**20]).times_us[0]
        > apenet.bench.pingpong("ape16", sizes=[2**20]).times_us[0]
    )


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"sizes": [0]}, "sizes"),
        ({"sizes": "0:16"}, "sizes"),
        ({"nodes": [0]}, "nodes"),
        ({"nodes": [0, 0]}, "nodes"),
        ({"nodes": [0, 16]}, "nodes"),
        ({"nodes": [0, 1, 2, 3]}, "nodes"),
        ({"layer": "wire"}, "layer"),
        ({"channels": 0}, "channels"),
        ({"channels": 99}, "channels"),
        ({"channels": 2, "layer": "mpi"}, "channels"),
        ({"iterations": 0}, "iterations"),
        ({"nodes": [0, 1, 2], "layer": "mpi"}, "nodes"),
        ({"sizes": "16:2G", "layer": "mpi"}, "sizes"),
        ({"machine": "ape17"}, "machine"),
        ({"test": "flood"}, "test"),
    ],
)
def test_bad_input_is_named(options, name):
    arguments = {"test": "pingpong", "machine": "ape16", **options}
    with pytest.raises(InputError) as caught:
        apenet.bench.measure(arguments.pop("test"), arguments.pop("machine"), **arguments)
    assert caught.value.name == name


def test_stretches_of_doubling_sizes():
    assert list(doubling_stretches([1, 2, 4, 5, 10, 3])) == [(1, 4), (5, 10), (3, 3)]


def test_published_times_through_mpi():
    """The four results of 2005, from one parameter set, with the MPICH of this environment: see ape128.toml."""
    results = apenet.machine("ape128").file.results
    assert set(results) == {"round_trip", "one_way", "unidirectional_bandwidth", "bidirectional_bandwidth"}
    for published in results.values():
        sizes = [16] if published.quantity == "time_us" else [2**20]
        measured = apenet.bench.measure(published.test, "ape128", sizes=sizes, layer="mpi")
        value = measured.times_us[0] if published.quantity == "time_us" else measured.bandwidths_mib_s[0]
        assert value == pytest.approx(published.value, rel=published.tolerance_percent / 100)
