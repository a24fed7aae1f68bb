"""Benchmarks of workloads: their times, messages and partitions."""

import json
import re

import pytest

import apenet
from apenet.base.errors import InputError


def test_workloads_on_the_teaching_machine_are_their_closed_forms():
    """1 us, 1000 MiB/s, no software: latency and bytes per step."""
    size = 2**20
    on_the_wire_us = 1000.0
    halo = apenet.bench.halo("ideal", sizes=[size], n=27)
    assert halo.grid == (3, 3, 3)
    assert halo.times_us[0] == pytest.approx(1 + 6 * on_the_wire_us, rel=1e-6)
    ring = apenet.bench.allreduce("ideal", sizes=[size], n=8)
    assert ring.times_us[0] == pytest.approx(2 * 7 * (1 + on_the_wire_us / 8), rel=1e-6)
    doubling = apenet.bench.allreduce("ideal", sizes=[size], n=8, algorithm="recursive-doubling")
    assert doubling.times_us[0] == pytest.approx(3 * (1 + on_the_wire_us), rel=1e-6)
    everybody = apenet.bench.alltoall("ideal", sizes=[size], n=5, algorithm="ring")
    assert everybody.times_us[0] == pytest.approx(4 * (1 + on_the_wire_us), rel=1e-6)
    four = apenet.bench.halo4d("ideal", sizes=[size], n=27 * 8)
    assert four.grid == (3, 6, 6, 2)
    assert four.times_us[0] == pytest.approx(1 + 8 * on_the_wire_us, rel=1e-6)
    twice = apenet.bench.checkerboard("ideal", sizes=[size], n=27)
    assert twice.times_us[0] == pytest.approx(2 * halo.times_us[0], rel=1e-6)
    sums = apenet.bench.globalsum("ideal", sizes=[size], n=8)
    assert sums.times_us[0] == pytest.approx(2 * doubling.times_us[0], rel=1e-6)
    lines = apenet.bench.fft("ideal", sizes=[size], n=12)
    assert lines.grid == (3, 2, 2)
    assert lines.times_us[0] == pytest.approx((2 + 1 + 1) * (1 + on_the_wire_us), rel=1e-6)
    assert lines.to_json()["bandwidth_of"] == "node"
    assert lines.bandwidths_mib_s[0] == pytest.approx(1000, rel=1e-2)
    across = apenet.bench.bisection("ideal", sizes=[size], n=16)
    assert across.bandwidths_mib_s[0] == pytest.approx(16 * 1000 / 1.001, rel=1e-6)


def test_an_all_to_all_is_sent_as_its_size_asks():
    """1 us, 1000 MiB/s: Bruck's blocks to 256 bytes, windows of 32 to 32 KiB, then steps of pairs."""
    sizes = [256, 257, 32768, 32769]
    result = apenet.bench.alltoall("ideal", sizes=sizes, n=8)
    content = result.to_json()
    assert content["algorithm"] == "auto"
    assert [point["algorithm"] for point in content["points"]] == ["bruck", "direct", "direct", "pairwise"]
    assert "(auto)" in result.to_table()
    assert "pairwise" in result.to_table()
    on_the_wire_us = [size / 2**20 * 1000 for size in sizes]
    expected = [
        3 * (1 + 4 * on_the_wire_us[0]),
        *(1 + 7 * one for one in on_the_wire_us[1:3]),
        7 * (1 + on_the_wire_us[3]),
    ]
    assert result.times_us == pytest.approx(expected, rel=1e-3)
    assert "bisection_percent" not in content["points"][0]
    with pytest.raises(InputError, match="algorithm"):
        apenet.bench.alltoall("ideal", sizes=[8], n=4, algorithm="rings")


def test_an_all_to_all_says_what_it_uses_of_the_bisection():
    """4x2x2: 8 x 8 messages cross 8 links of 16 bytes in 3 cycles of 115 MHz, from either half."""
    result = apenet.bench.alltoall("ape16", sizes=[4096], algorithm="direct")
    least_us = 64 * 4096 / (8 * 16 * 115e6 / 3) * 1e6
    assert result.bisection_percent == pytest.approx(100 * least_us / result.times_us)
    assert result.bisection_percent < 100
    assert apenet.bench.alltoall("ape16", sizes=[4096], n=8).bisection_percent is None
    assert apenet.bench.alltoall("pax", sizes=[4096], n=8).bisection_percent is None


@pytest.mark.parametrize("algorithm", apenet._core.workload("allreduce").algorithms)
def test_a_workload_reports_each_node_and_counts(algorithm):
    result = apenet.bench.allreduce("ape16", sizes=[1024], algorithm=algorithm, iterations=2)
    content = json.loads(json.dumps(result.to_json()))
    assert content["algorithm"] == algorithm
    assert (content["nodes"], content["grid"], content["iterations"]) == (16, [4, 2, 2], 2)
    assert result.finish_us.shape == (1, 16)
    assert result.finish_us.max() / 2 == pytest.approx(content["points"][0]["time_us"])
    assert content["points"][0]["messages"] == result.messages[0] > 0
    if algorithm != "recursive-doubling":
        assert result.payload_bytes[0] == 2 * 2 * 15 * 1024


@pytest.mark.parametrize("test", [test for test in apenet.bench.WORKLOADS if test != "dslash"])
def test_a_trace_of_a_workload_has_its_messages(test, tmp_path):
    """Replayed, the ranks send as much and all end; an odd number of nodes leaves processes without partner."""
    for count in (16, 7) if test != "halo4d" else (16,):
        trace = tmp_path / f"{count}.goal"
        options = {"sizes": [48], "n": count, "iterations": 2}
        result = getattr(apenet.bench, test)("ape16", goal=trace, **options)
        plain = getattr(apenet.bench, test)("ape16", **options)
        assert result.to_json() == plain.to_json()
        text = trace.read_text()
        sent = [int(size) for size in re.findall(r": send (\d+)b", text)]
        assert len(sent) == result.messages[0] == text.count(": recv ")
        assert sum(sent) == result.payload_bytes[0]
        assert apenet.replay(trace, machine="ape16").virtual_time_us > 0


def test_a_part_of_a_machine_is_a_grid_of_its_own():
    assert apenet.bench.halo("ape128", sizes=[64], n=12).grid == (3, 2, 2)
    assert apenet.bench.halo("ape128", sizes=[64]).grid == (8, 4, 4)
    assert apenet.bench.alltoall("ape128", sizes=[64], nodes=[0, 5, 9]).grid == (3, 1, 1)


def test_a_lattice_gives_the_messages_of_its_surfaces():
    """64x64x64x192 on 8x4x4: parts of 8x16x16x192 sites."""
    halo = apenet.bench.halo("ape128", sizes=[16], lattice="64x64x64x192", site_bytes=24, iterations=1)
    faces = [16 * 16 * 192 * 24, 8 * 16 * 192 * 24, 8 * 16 * 192 * 24]
    assert list(halo.face_bytes) == faces
    assert halo.payload_bytes[0] == 128 * 2 * sum(faces)
    assert halo.to_json()["face_bytes"] == faces
    with pytest.raises(InputError, match="lattice"):
        apenet.bench.halo("ape128", lattice="63x64x64x192")
    with pytest.raises(InputError, match="lattice"):
        apenet.bench.halo("ape128", lattice="64x64")


def test_partitions_are_machines_of_that_size():
    grown = apenet.bench.bisection("ape128", sizes=[4096], partitions=[16, 64, 128], iterations=1)
    assert grown.grids == ((4, 2, 2), (4, 4, 4), (8, 4, 4))
    assert grown.nodes.tolist() == [16, 64, 128]
    points = grown.to_json()["points"]
    assert [point["nodes"] for point in points] == [16, 64, 128]
    # The longer the torus, the smaller is a node's share of the cut.
    assert points[2]["node_mib_s"] < points[0]["node_mib_s"]
    # A halo's bandwidth is per node, and is the same on the larger machine, whose cuts the halo does not cross.
    halo = apenet.bench.halo("ape128", sizes=[4096], partitions=[64, 128], iterations=1)
    assert [point["node_mib_s"] for point in halo.to_json()["points"]] == halo.bandwidths_mib_s.tolist()
    assert halo.bandwidths_mib_s[1] == pytest.approx(halo.bandwidths_mib_s[0], rel=0.2)
    rows = [line.split() for line in halo.to_table().splitlines()]
    assert "All nodes (MiB/s)" in halo.to_table()
    assert float(rows[-1][-2]) == pytest.approx(128 * halo.bandwidths_mib_s[1], rel=1e-3)
    whole = apenet.bench.bisection("ape128", sizes=[4096], iterations=1)
    assert whole.bandwidths_mib_s[0] == grown.bandwidths_mib_s[2]
