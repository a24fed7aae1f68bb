"""Machines from measurements: ordinary machine files whose benchmarks agree with the measurements."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import apenet as package
from apenet.fit import MeasurementError, fit_paths, parse, read, write_machine
from apenet.fit.protocols import protocols

FOLDER = Path(__file__).parent / "measurements"
PROMISED_PERCENT = 5.0


def measured(rows, test="pingpong"):
    text = "size_bytes,time_us\n" + "".join(f"{size},{time!r}\n" for size, time in rows)
    return parse("points.csv", text.encode(), test=test)


@pytest.mark.parametrize(
    ("file", "section"), [("osu_latency.txt", None), ("osu_latency_tail.txt", None), ("imb_mpi1.txt", "PingPong-2")]
)
def test_pingpong_agrees_with_real_files(apenet, tmp_path, file, section):
    mine = tmp_path / "mine.toml"
    options = ["--section", section] if section else []
    done = apenet("fit", FOLDER / file, *options, "--to-machine", mine, "--json")
    assert done.returncode == 0, done.stderr
    (agreement,) = json.loads(done.stdout)["machine"]["agreement"]
    assert apenet("machine", "check", mine).returncode == 0
    measurement = read(FOLDER / file, section=section)
    assert agreement["points"] == len(measurement)
    sizes = [size for size in measurement.sizes_bytes.tolist() if size > 0]
    bench = apenet("bench", "pingpong", "--machine", mine, "--sizes", ",".join(map(str, sizes)), "--json")
    times = {point["size_bytes"]: point["time_us"] for point in json.loads(bench.stdout)["points"]}
    worst = max(
        abs(times[size] / time - 1) * 100
        for size, time in zip(measurement.sizes_bytes.tolist(), measurement.times_us.tolist(), strict=True)
        if size > 0
    )
    assert worst <= PROMISED_PERCENT
    assert worst <= abs(agreement["worst_percent"]) + 1e-9


def test_every_number_has_a_class_and_names_its_file(tmp_path):
    mine = tmp_path / "mine.toml"
    write_machine([read(FOLDER / "osu_latency.txt")], mine)
    card = package.machine(mine).file.card
    (path,) = card.paths.values()
    assert path.latency_ns.origin == "fitted"
    assert path.latency_ns.source == "fitted to osu_latency.txt"
    assert path.gap_ns.origin == "assumed"
    assert str(tmp_path) not in mine.read_text()


def test_steps_become_protocols():
    rows = [(2**k, 1 + 2**k * 1e-3) for k in range(4, 12)] + [(2**k, 6 + 2**k * 5e-4) for k in range(12, 20)]
    first, second = protocols(measured(rows))
    assert first.max_size_bytes == 2048
    assert first.latency_us == pytest.approx(1.0)
    assert second.latency_us == pytest.approx(6.0)
    assert second.hold_us_per_byte == pytest.approx(5e-4)


def test_a_stream_determines_how_long_a_message_holds_the_wire(tmp_path):
    """Latency 2 us + N/1000, with a gap of 0.5 us + N/2000 in a stream."""
    sizes = [2**k for k in range(0, 18)]
    pingpong = measured([(size, 2 + size / 1000) for size in sizes])
    stream = measured([(size, 0.5 + size / 2000) for size in sizes], test="unidirectional")
    (protocol,) = protocols(pingpong, stream)
    assert protocol.gap_us == pytest.approx(0.5, rel=1e-3)
    assert protocol.hold_us_per_byte == pytest.approx(1 / 2000, rel=1e-3)
    assert protocol.time_us(1000) == pytest.approx(3.0, rel=1e-6)
    written = write_machine([pingpong, stream], tmp_path / "both.toml")
    assert [agreement.test for agreement in written.agreements] == ["pingpong", "unidirectional"]
    assert abs(written.agreements[0].worst_percent) < 0.01
    # The closing answer of a stream counts in its time: 3.5 us over 64 messages of 0.5 us.
    assert abs(written.agreements[1].worst_percent) < 11


def test_paths_over_channels_come_back_from_the_machine(tmp_path):
    """T(N, Nvc) of two paths, fitted and written, comes out of a simulation with the same numbers of channels."""
    qpace = ((0.766, 0.57, 4084.74), (2.76, 0.037, 937.8))
    rows = ["size_bytes,latency_us,nvc"]
    for channels in (1, 2, 4, 5, 6, 7, 8):
        for size in range(64, 2049, 64):
            time = max(fixed + channels * gap + channels * size / rate for fixed, gap, rate in qpace)
            rows.append(f"{size},{time!r},{channels}")
    measurement = parse("qpace.csv", "\n".join(rows).encode())
    written = write_machine([measurement], tmp_path / "qpace.toml", fit_paths(measurement, 2))
    assert written.paths == 2
    assert abs(written.agreements[0].worst_percent) < 0.1


def test_an_undetermined_bandwidth_limits_nothing(tmp_path):
    measurement = measured([(2**k, 1.5) for k in range(3, 23)])
    written = write_machine([measurement], tmp_path / "flat.toml", fit_paths(measurement, 2))
    assert abs(written.agreements[0].worst_percent) < 1
    rate = package.machine(str(written.path)).file.card.paths["path1"].bandwidth_mib_s
    assert rate.origin == "assumed"


def test_measurements_that_determine_no_machine_are_refused(apenet, tmp_path):
    rows = [(1, 1.0), (2, 1.1), (4, 1.2)]
    with pytest.raises(MeasurementError, match="a ping-pong: a stream does not determine a latency"):
        write_machine([measured(rows, test="unidirectional")], tmp_path / "no.toml")
    with pytest.raises(MeasurementError, match="one ping-pong, and at most one stream"):
        write_machine([measured(rows), measured(rows)], tmp_path / "no.toml")
    with pytest.raises(MeasurementError, match="at least 3"):
        write_machine([measured(rows[:2])], tmp_path / "no.toml")
    done = apenet("fit", FOLDER / "osu_latency.txt", "--to-machine", tmp_path / "no.yaml")
    assert done.returncode == 2
    assert "--to-machine" in done.stderr
    assert not list(tmp_path.iterdir())


@settings(max_examples=25, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 2**26), st.floats(0.05, 1e5)), min_size=3, max_size=12))
def test_any_curve_that_is_accepted_agrees(tmp_path, rows):
    sizes = sorted({size for size, _ in rows})
    try:
        pingpong = measured(list(zip(sizes, [time for _, time in rows], strict=False)))
        written = write_machine([pingpong], tmp_path / "any.toml")
    except MeasurementError:
        return
    assert abs(written.agreements[0].worst_percent) <= PROMISED_PERCENT


FABRIC = """
[machine]
name = "f"
title = "f"
summary = "f"
[network]
topology = { value = "none", class = "assumed", source = "x" }
[host]
copy_bandwidth_mib_s = { value = 1000, class = "assumed", source = "x" }
local_latency_ns = { value = 1000, class = "assumed", source = "x" }
flops_per_second = { value = 1, class = "assumed", source = "x" }
[card]
kind = "fabric"
switch_bytes = { value = [100], class = "assumed", source = "x" }
[card.paths.wire]
latency_ns = { value = [1000, 2000], class = "assumed", source = "x" }
gap_ns = { value = [0, 0], class = "assumed", source = "x" }
bandwidth_mib_s = { value = [1000, 1000], class = "assumed", source = "x" }
"""


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("[1000, 2000]", "[1000]", "card.paths.wire.latency_ns = [1000.0]: expected 2 values, one for each protocol"),
        ("[1000, 2000]", "[1000, -1]", "card.paths.wire.latency_ns[1] = -1: expected a number of at least 0"),
        ("[1000, 2000]", "1000", "card.paths.wire.latency_ns = 1000: expected a list of numbers"),
        ("[1000, 2000]", "[0, 0]", "card.latency_ns = 0 ps: expected more than zero"),
        ("[1000, 1000]", "[1000, 1e30]", "card.paths.wire.bandwidth_mib_s = 1e+30: expected at most 2^60"),
        ("[100]", "[100, 50]", "card.switch_bytes = [100, 50]: expected sizes that rise"),
        ("gap_ns", "gap_us", 'card.paths.wire.gap_us = [0, 0]: expected "gap_ns", in ns'),
        ("[card.paths.wire]", "[card.paths]", "card.paths"),
    ],
)
def test_an_impossible_fabric_is_refused_by_key(tmp_path, old, new, named):
    layer = package.machine("ideal").to_toml().split("[software.card]")[1]
    mine = tmp_path / "f.toml"
    mine.write_text(FABRIC.replace(old, new) + "[software.card]" + layer)
    with pytest.raises(package.ApenetError) as caught:
        package.machine(mine).wire()
    assert named in str(caught.value)
