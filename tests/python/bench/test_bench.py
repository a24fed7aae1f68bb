"""Benchmarks as Python functions."""

import json

import numpy as np
import pytest

import apenet
from apenet.base.gather import gather_warnings
from apenet.bench import conduits
from apenet.bench.fanout import neighbours_of_0
from apenet.bench.layer_table import LAYERS
from apenet.bench.mpi import doubling_stretches

# The messages of dslash have the sizes of its lattice.
SIZED_WORKLOADS = [test for test in apenet.bench.WORKLOADS if test != "dslash"]


def test_the_teaching_machine_is_its_two_numbers():
    result = apenet.bench.pingpong("ideal", sizes=[1, 2**20])
    # 1 us, and 1000 MiB/s: 2^20 bytes take 1000 us more.
    assert result.times_us == pytest.approx([1.0, 1001.0], abs=0.01)
    assert result.bandwidths_mib_s[1] == pytest.approx(1000 / 1.001, rel=1e-4)


@pytest.mark.parametrize("test", [*apenet.bench.PAIR_TESTS, *SIZED_WORKLOADS])
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


@pytest.mark.parametrize("name", ["apenetplus-v4", "apenetplus-v5", "quong", "ape128", "extoll-64", "pax"])
def test_a_longer_message_takes_no_less_time(name):
    """Translations are warm when the clock starts: a page walk would make a short message slower than a long one."""
    times_us = apenet.bench.pingpong(name, sizes="16:64K").times_us
    assert (times_us[1:] >= times_us[:-1]).all()


@pytest.mark.parametrize(
    ("test", "whose", "title"),
    [("halo", "node", "A node"), ("allreduce", "vector", "Vector"), ("bisection", "cut", "Across")],
)
def test_a_workload_says_whose_its_bandwidth_is(test, whose, title):
    result = getattr(apenet.bench, test)("ideal", sizes=[64], n=16, iterations=1)
    assert result.bandwidth_of == result.to_json()["bandwidth_of"] == whose
    assert f" {title} (MiB/s)" in result.to_table()
    pair = apenet.bench.pingpong("ideal", sizes=[64])
    assert pair.bandwidth_of is None
    assert "bandwidth_of" not in pair.to_json()
    assert " Bandwidth (MiB/s)" in pair.to_table()


def test_json_is_the_contract():
    result = apenet.bench.oneway("ape16", sizes="16:64", seed=3)
    content = json.loads(json.dumps(result.to_json()))
    assert list(content) == ["machine", "test", "layer", "seed", "version", "points"]
    assert (content["machine"], content["test"], content["layer"], content["seed"]) == ("ape16", "oneway", "card", 3)
    assert list(content["points"][0]) == ["size_bytes", "time_us", "bandwidth_mib_s", "channels", "rate_per_s"]


@pytest.mark.parametrize(
    ("test", "options"),
    [("pingpong", {}), ("halo", {}), ("halo", {"partitions": [8, 16]}), ("pingpong", {"layer": "mpi"})],
)
def test_the_flit_engine_measures_too_and_says_what_it_rounds(test, options):
    packet, flit = (
        apenet.bench.measure(test, "ape16", sizes=[1024], engine=engine, **options) for engine in ("packet", "flit")
    )
    # Without contention only the rounding to cycles remains.
    assert flit.times_us == pytest.approx(packet.times_us, rel=0.05)
    assert (flit.times_us >= packet.times_us).all()
    assert "engine flit" in flit.to_table()
    assert (packet.to_json().get("engine"), flit.to_json()["engine"]) == (None, "flit")
    assert any("latency = 70000 ps becomes 9 cycles" in warning for warning in flit.to_json()["warnings"])
    assert any("70000 ps becomes 9 cycles" in line for line in flit.to_table().splitlines()[-4:])


def test_a_sweep_gives_each_warning_once():
    result = apenet.bench.unidirectional("quong", sizes="2K:64K")
    (warning,) = result.warnings
    assert warning.startswith("packet engine: latencies may be off by up to ")
    assert gather_warnings([["a 1", "a 2", "b"], [], ["a 5", "c", "a 1"]]) == ("a 5", "a 2", "b", "c")


def test_a_setting_without_effect_on_one_point_only_is_not_called_so():
    idle, busy = (f"--set {key}=1 had no effect on any event of this run" for key in ("a", "b"))
    assert gather_warnings([[idle, busy], [busy]]) == (busy,)
    # One neighbour uses one FIFO, whatever the rule; six do not.
    by_queue = apenet.bench.fanout(
        apenet.machine("torus-slice", ["router.injection_rule=queue"]), sizes=[65536], neighbors=[1, 6]
    )
    assert by_queue.bandwidths_mib_s[1] < 4 * by_queue.bandwidths_mib_s[0]
    assert not [words for words in by_queue.warnings if "no effect" in words]


def test_the_same_twice():
    first, second = (apenet.bench.bidirectional("ape16", sizes="16:64K").to_json() for _ in range(2))
    assert first == second


def test_channels_and_rates_stand_at_the_points():
    both = apenet.bench.oneway("ape128", sizes=[16, 64], channels=[1, 4])
    assert both.channels.tolist() == [1, 1, 4, 4]
    assert both.sizes_bytes.tolist() == [16, 64, 16, 64]
    assert both.rates_per_s == pytest.approx(both.channels * 1e6 / both.times_us)
    puts = apenet.bench.rate("ape128", sizes=[16], channels=4).to_json()["points"][0]
    assert puts["rate_per_s"] == pytest.approx(1e6 / puts["time_us"])
    assert "rate_per_s" not in apenet.bench.pingping("ape128", sizes=[16]).to_json()["points"][0]


def test_a_window_of_one_is_blocking():
    blocking, free = (apenet.bench.unidirectional("ape128", sizes=[4096], window=window) for window in (1, 16))
    assert blocking.bandwidths_mib_s[0] < free.bandwidths_mib_s[0]
    assert blocking.to_json()["window"] == 1


def test_copies_of_either_side_count():
    times = [
        apenet.bench.pingpong("apenet-2004", sizes=[2**20], memory=memory).times_us[0]
        for memory in ("host", "host-copied,host", "host,host-copied", "host-copied")
    ]
    assert times[1] - times[0] == pytest.approx(1000, rel=1e-3)  # 1 MiB out and in again at 1000 MiB/s, halved
    assert times[2] == pytest.approx(times[1])
    assert times[3] - times[0] == pytest.approx(2000, rel=1e-3)


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


def test_stretches_of_doubling_sizes():
    assert list(doubling_stretches([1, 2, 4, 5, 10, 3])) == [(1, 4), (5, 10), (3, 3)]


def test_published_times_through_mpi():
    """The four results of 2005, from one parameter set, with the MPICH of this environment: see ape128.toml."""
    results = apenet.machine("ape128").file.results
    for key in ("rtt_min", "oneway_min", "uni_bw_peak", "bidir_bw_peak"):
        published = results[f"apenet-2005.{key}"]
        sizes = [16] if published.quantity == "time_us" else [2**20]
        measured = apenet.bench.measure(published.test, "ape128", sizes=sizes, layer="mpi")
        value = measured.times_us[0] if published.quantity == "time_us" else measured.bandwidths_mib_s[0]
        assert value == pytest.approx(published.value, rel=published.tolerance_percent / 100)


def test_a_curve_through_mpi_says_where_its_protocol_changes():
    machine = apenet.machine("ape16", ["software.mpi.eager_limit_bytes=100"])
    result = apenet.bench.pingpong(machine, sizes="64:128", layer="mpi", iterations=2)
    assert result.protocol_step == "MPI on ape16: eager up to 100 bytes, rendezvous above"
    assert f"# {result.protocol_step}" in result.to_table().splitlines()
    assert result.to_json()["eager_limit_bytes"] == 100
    assert apenet.bench.pingpong(machine, sizes="64", layer="mpi", iterations=2).protocol_step == ""
    assert apenet.bench.pingpong(machine, sizes="64:128").protocol_step == ""


def test_a_fan_out_is_what_the_node_sends_to_all_its_neighbours():
    result = apenet.bench.fanout("ape16", sizes=[1000, 4096], neighbors=[1, 3], iterations=8)
    assert result.layer == "mpi"
    assert result.neighbors.tolist() == [1, 1, 3, 3]
    assert result.sizes_bytes.tolist() == [1000, 4096, 1000, 4096]
    moved_mib = result.sizes_bytes * result.neighbors / 2**20
    assert result.bandwidths_mib_s == pytest.approx(moved_mib / (result.times_us * 1e-6), rel=1e-5)
    assert "Neighbours" in result.to_table()
    assert [point["neighbors"] for point in result.to_json()["points"]] == [1, 1, 3, 3]


def test_neighbours_are_one_cable_away():
    assert neighbours_of_0(apenet.machine("ape128")) == [1, 7, 8, 24, 32, 96]
    assert neighbours_of_0(apenet.machine("ape16")) == [1, 3, 4, 8]
    assert neighbours_of_0(apenet.machine("extoll-64")) == [1, 4, 16]
    assert neighbours_of_0(apenet.machine("l5530-pair")) == [1]
    assert neighbours_of_0(apenet.machine("ideal")) == [1, 2, 3, 4, 5, 6]


def test_large_pages_outrun_the_soft_processor():
    """A page walk every 4 KiB limits to 2.16 GB/s, one every 2 MiB does not: docs/models/apelink-plus.md."""
    landed = {"sizes": [2**20], "path": "put", "until": "landed"}
    large = ["card.page_bytes=2097152", "card.receive_ring_bytes=2097152"]
    small_pages = apenet.bench.measure("oneway", "apenetplus-v5", **landed)
    large_pages = apenet.bench.measure("oneway", apenet.machine("apenetplus-v5", large), **landed)
    assert small_pages.bandwidths_mib_s[0] * 1.048576 == pytest.approx(2156, rel=0.01)
    assert large_pages.bandwidths_mib_s[0] > 2 * small_pages.bandwidths_mib_s[0]
    # A card that drops received data does no translation.
    flushed = apenet.bench.measure("flush", "apenetplus-v5", sizes=[2**16, 2**22])
    assert flushed.bandwidths_mib_s[1] == pytest.approx(flushed.bandwidths_mib_s[0], rel=0.05)


def test_the_core_says_what_drives_a_card():
    """Each layer with a library for some cards alone is that of a card, and so are the conduits."""
    cards = {card.kind.name: card.kind for card in apenet._core.schema().cards}
    own = {layer for kind in cards.values() for layer in kind.layers}
    assert own == {name for name, layer in LAYERS.items() if not layer.drives_all} == {"rdma", "velo", "rma", "tnw"}
    assert {name: kind.conduit for name, kind in cards.items() if kind.conduit} == {
        "apelink": "apelink",
        "apelink-plus": "apelink",
        "extoll": "extoll",
        "hca": "ibv",
    }
    assert conduits.possible(apenet.machine("quong")) == ["apelink", "ibv", "udp", "mpi"]
    assert [conduits.default(apenet.machine(name)) for name in ("quong", "pax", "qpace")] == ["apelink", "ibv", "mpi"]


def test_the_core_says_what_a_topology_is():
    shapes = {topology.name: topology for topology in apenet._core.schema().topologies}
    assert {name for name, shape in shapes.items() if shape.is_grid} == {"torus", "mesh"}
    assert {name for name, shape in shapes.items() if shape.wraps} == {"torus"}
    assert {name for name, shape in shapes.items() if not shape.has_routers} == {"none"}
