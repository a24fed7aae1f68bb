"""`apenet traffic`: its output, its errors, and that both engines agree without contention."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import apenet
from apenet.base.errors import InputError, MachineError
from apenet.cli import app
from apenet.run.traffic import PATTERNS, parse_loads

SHORT = {"warmup_cycles": 500, "measure_cycles": 1500}


def test_the_command_prints_one_object_with_its_points():
    command = (
        "traffic --machine iq-router-v1 --engine flit --set network.dims=[4,4,2] --set router.virtual_channels=2 "
        "--set router.buffer_flits=6 --packet-flits 4 --pattern uniform --load 0.1:0.3:0.1 --warmup 500 --measure 1500 "
        "--json"
    )
    done = CliRunner().invoke(app, command.split())
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    assert content["settings"] == ["network.dims=[4,4,2]", "router.virtual_channels=2", "router.buffer_flits=6"]
    assert [point["offered"] for point in content["points"]] == [0.1, 0.2, 0.3]
    for point in content["points"]:
        assert point["accepted"] == pytest.approx(point["offered"], rel=0.15)
        assert point["packet_latency_cycles"] >= point["network_latency_cycles"] > 2 + 5 + 3
        assert 2.0 < point["hops"] < 3.0
        assert point["saturated"] is False


def test_an_idle_network_has_the_latency_of_its_pipeline_on_both_engines():
    for packet_flits in (1, 6):
        for engine in ("flit", "packet"):
            result = apenet.traffic(
                "iq-router-v1",
                loads=(0.001,),
                pattern="neighbor",
                packet_flits=packet_flits,
                engine=engine,
                measure_cycles=4000,
            )
            # Three links and four routers of 5 cycles, 2 cycles for the wires of the card, and the flits after the
            # first.
            alone_cycles = 2 + 5 * 4 + (packet_flits - 1)
            assert result.points[0].min_latency_cycles == alone_cycles
            assert result.points[0].network_latency_cycles == alone_cycles


def test_the_seed_decides_everything():
    def run(seed):
        return apenet.traffic("iq-router-v2", loads=(0.2,), packet_flits=8, engine="flit", seed=seed, **SHORT)

    assert run(3) == run(3)
    assert run(3).points != run(4).points


def test_saturation_is_reported():
    result = apenet.traffic("iq-router-v2", loads=(0.2, 0.9), packet_flits=8, engine="flit", **SHORT)
    assert [point.saturated for point in result.points] == [False, True]
    assert "saturated" in result.to_table().splitlines()[-1]


def test_the_packet_engine_says_that_a_saturated_switch_is_beyond_it():
    def run(engine, load):
        settings = ["network.topology=crossbar", "network.nodes=9"]
        return apenet.traffic("iq-router-v1", loads=(load,), engine=engine, settings=settings, **SHORT)

    assert any(warning.startswith("packet engine: ") for warning in run("packet", 0.9).warnings)
    assert not run("packet", 0.1).warnings
    assert not run("flit", 0.9).warnings


def test_points_without_packets_are_no_measurement():
    assert any("no packet" in warning for warning in apenet.traffic("iq-router-v1", loads=(1e-7,), **SHORT).warnings)


@pytest.mark.parametrize("at", ["0.01us", "1us"])  # at the former all sources are full before the window begins
def test_a_fault_that_outlasts_the_run_is_no_saturation(at):
    machine = apenet.machine("iq-router-v1").with_faults(f"link (0,0,0)+x down @{at}")
    assert any("1000000 cycles" in warning for warning in apenet.traffic(machine, loads=(0.2,), **SHORT).warnings)
    quick = machine.with_settings("network.reconfiguration_us=0.1")
    assert not any("stops" in warning for warning in apenet.traffic(quick, loads=(0.2,), **SHORT).warnings)


def test_a_machine_in_other_units_is_rounded_and_says_so():
    result = apenet.traffic("ape16", loads=(0.1,), packet_flits=4, engine="flit", **SHORT)
    said = [warning for warning in result.warnings if "network.link" in warning]
    assert len(said) == 1 and "network.link.latency = 70000 ps becomes 9 cycles" in said[0]
    slower = ["network.link.y.latency_ns=75"]
    result = apenet.traffic("ape16", loads=(0.1,), packet_flits=4, engine="flit", settings=slower, **SHORT)
    assert any("network.links[1].latency = 75000 ps becomes 9 cycles" in warning for warning in result.warnings)
    assert not apenet.traffic("iq-router-v1", loads=(0.1,), engine="flit", **SHORT).warnings


def test_rounding_says_by_how_much_a_link_is_slower_and_that_the_engines_simulate_two_machines():
    settings = ["router.clock_mhz=400", "router.flit_bytes=32"]  # 2.56 ns a flit, cycles of 2.5 ns

    def warnings(engine):
        options = {"loads": (0.6,), "packet_flits": 64, "settings": settings, "engine": engine}
        return " ".join(apenet.traffic("my-cluster", **options, **SHORT).warnings)

    rounded = "a flit of 32 bytes every 2 cycles, 5000 ps, instead of 2560 ps: 1.95 times as long"
    assert f"network.link.rate: {rounded}" in warnings("flit")
    assert "its links would be 95 % slower than this machine's" in warnings("packet")


@pytest.mark.parametrize("settings", [[], ["router.clock_mhz=400"]])
def test_the_engines_agree_with_flits_of_whole_cycles(settings):
    """my-cluster: 12.5 GB/s is 125 bytes in 10 ns."""
    options = {"loads": (0.2,), "packet_flits": 16, "settings": settings}
    packet, flit = (apenet.traffic("my-cluster", engine=engine, **options, **SHORT) for engine in ("packet", "flit"))
    assert not any("rate" in warning for warning in flit.warnings)
    assert packet.points[0].packet_latency_cycles == pytest.approx(flit.points[0].packet_latency_cycles, rel=0.05)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern_delivers(pattern):
    result = apenet.traffic("iq-router-v1", loads=(0.01,), pattern=pattern, engine="flit", **SHORT)
    assert result.points[0].packets > 0
    assert not result.points[0].saturated


@pytest.mark.parametrize(
    ("text", "loads"),
    [("0.3", (0.3,)), ("0.1:0.3:0.1", (0.1, 0.2, 0.3)), ("0.1,1", (0.1, 1.0)), ("0.1:0.35:0.1", (0.1, 0.2, 0.3))],
)
def test_loads(text, loads):
    assert parse_loads(text) == loads


@pytest.mark.parametrize(
    "text",
    [
        *("", "0", "1.1", "-0.1", "0.1:0.3", "0.3:0.1:0.1", "0.1:0.3:0", "nan", "a", "0.1:1:1e-9", "0." + "1" * 99),
        *("\u0660.\u0661", "0.1:0.2:1e-999999999", "1e999999999:1:1", "1e-999999999"),
    ],
)
def test_impossible_loads_are_refused(text):
    with pytest.raises(InputError, match="load"):
        parse_loads(text)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pattern": "uniforn"}, 'did you mean "uniform"'),
        ({"pattern": "transpose", "settings": ["network.dims=[8,4,1]"]}, "even power of two"),
        ({"pattern": "bitcomp", "settings": ["network.dims=[3,4,1]"]}, "a power of two of nodes"),
        ({"packet_flits": 0}, "packet_flits = 0"),
        ({"packet_flits": 70000}, "packet_flits = 70000"),
        ({"measure_cycles": 0}, "measure_cycles = 0"),
        ({"seed": -1}, "seed = -1"),
        ({"engine": "fast"}, "packet or flit"),
        ({"loads": (2.0,)}, "load = 2"),
        ({"measure_cycles": 10**9}, "load = 0.1: expected packets to need at most 1e.10 packet-hops.*--allow-long"),
        ({"settings": ["router.virtual_channels=1"]}, "one for each of the 2 classes"),
        ({"settings": ["router.virtual_channels=64", "network.dims=[2,2,2,2,2]"]}, "at most 512"),
        ({"settings": ["router.buffer_flits=70000"]}, "65535 flits"),
        ({"settings": ["network.dims=[0,4]"]}, "network.dims"),
        ({"settings": ["router.switching=wormhol"]}, "virtual-cut-through"),
    ],
)
def test_invalid_options_are_refused(options, said):
    with pytest.raises((InputError, MachineError), match=said):
        apenet.traffic("iq-router-v1", **{"engine": "flit", **options})


def test_wiring_errors_name_the_file():
    with pytest.raises(MachineError, match=r"iq-router-v1\.toml: router\.virtual_channels = 1"):
        apenet.traffic("iq-router-v1", settings=["router.virtual_channels=1"])


def test_a_machine_without_a_network_is_refused():
    with pytest.raises(InputError, match="a machine with a network"):
        apenet.traffic("ideal")


@pytest.mark.parametrize(
    ("machine", "load", "may_deviate"),
    [
        ("extoll-64", 0.25, False),
        ("extoll-64", 0.5, True),
        ("pax", 0.15, False),
        ("pax", 0.28, True),
        ("ape128", 0.5, False),
    ],
)
def test_the_packet_engine_warns_where_it_may_deviate(machine, load, may_deviate):
    """As measured in docs/models/flit-engine.md; a deviation above 10 % always gives a warning."""
    options = {"loads": (load,), "packet_flits": 8, "warmup_cycles": 2000, "measure_cycles": 2000}
    packet, flit = (apenet.traffic(machine, engine=engine, **options) for engine in ("packet", "flit"))
    deviation = packet.points[0].packet_latency_cycles / flit.points[0].packet_latency_cycles - 1
    is_said = any(warning.startswith("packet engine: ") for warning in packet.warnings)
    assert is_said == may_deviate
    assert is_said or abs(deviation) < 0.1
    assert abs(deviation) > 0.05 or not is_said


def to_neighbours(engine, load):
    """No link is shared: a packet waits only behind packets of its own source."""
    settings = ["router.buffer_flits=32"]
    options = {"loads": (load,), "pattern": "neighbor", "packet_flits": 16, "engine": engine, "settings": settings}
    return apenet.traffic("iq-router-v1", **options, **SHORT).points[0]


@pytest.mark.parametrize("engine", ["packet", "flit"])
def test_a_packet_that_waits_in_its_source_is_not_in_the_network(engine):
    point = to_neighbours(engine, 0.6)
    alone_cycles = 2 + 5 * 4 + 15
    assert point.network_latency_cycles == pytest.approx(alone_cycles, rel=0.01)
    assert point.packet_latency_cycles > 1.2 * alone_cycles


@pytest.mark.parametrize("engine", ["packet", "flit"])
def test_long_waits_at_the_sources_are_saturation(engine):
    """Nearly all packets of the window arrive in it, and all of them in the end: only the waiting time shows it."""
    assert to_neighbours(engine, 1.0).saturated


def test_a_packet_that_a_fault_takes_back_enters_again():
    machine = apenet.machine("iq-router-v1").with_faults("link (0,0,0)+x down @1us")
    quick = machine.with_settings("network.reconfiguration_us=0.1")
    point = apenet.traffic(quick, loads=(0.2,), **SHORT).points[0]
    assert 2 + 5 * 2 < point.network_latency_cycles < point.packet_latency_cycles


@pytest.mark.parametrize("engine", ["packet", "flit"])
def test_far_beyond_saturation_a_packet_is_never_faster_in_the_network_than_alone(engine):
    point = apenet.traffic("iq-router-v1", loads=(0.1,), pattern="hotspot", engine=engine, **SHORT).points[0]
    assert point.saturated
    assert point.min_latency_cycles <= point.network_latency_cycles < point.packet_latency_cycles


def test_loads_and_cycles_may_be_numpys():
    loads = np.linspace(0.1, 0.2, 2)
    found = apenet.traffic("iq-router-v1", loads=loads, packet_flits=np.int64(2), measure_cycles=np.int32(500))
    assert [point.offered for point in found.points] == [0.1, 0.2]
    assert json.dumps(found.to_json())
    with pytest.raises(InputError, match=r"packet_flits = 1\.5"):
        apenet.traffic("iq-router-v1", packet_flits=1.5)


def test_packets_queued_before_the_window_are_measured_on_request():
    options = {"loads": (0.95,), "pattern": "neighbor", "settings": ["network.dims=[8]"], "engine": "flit", **SHORT}
    without = apenet.traffic("iq-router-v1", **options)
    found = apenet.traffic("iq-router-v1", measure_queued=True, **options)
    assert found.to_json()["measure_queued"] is True
    assert without.to_json()["measure_queued"] is False
    assert found.points[0].packets > without.points[0].packets
    assert found.points[0].packet_latency_cycles < without.points[0].packet_latency_cycles
    assert found.points[0].accepted == without.points[0].accepted


@pytest.mark.parametrize("pattern", ["uniform", "tornado", "bitcomp", "randperm"])
def test_traffic_in_a_plane_is_that_of_a_machine_of_its_shape(pattern):
    """Only its nodes send and receive, by their numbers in it, and packets meet nobody else's."""
    plane = apenet.traffic(apenet.machine("ape128", partition="1x4x4@6,0,0"), pattern=pattern, loads="0.3,0.6")
    alone = apenet.traffic(apenet.machine("ape128", ["network.dims=[1,4,4]"]), pattern=pattern, loads="0.3,0.6")
    assert plane.points == alone.points
    assert plane.to_json()["partition"] == "1x4x4@6,0,0"
    assert "partition" not in alone.to_json()


def test_leaves_send_to_each_other_alone():
    """The 16 nodes of a chassis share its switch: no link between switches is crossed, as from the whole machine."""
    leaf = apenet.traffic(apenet.machine("pax", partition="nodes:32-47"), loads="0.2")
    assert leaf.points[0].hops == 0
    assert leaf.points[0].accepted == pytest.approx(0.2, rel=0.05)
    assert apenet.traffic("pax", loads="0.2").points[0].hops > 1


def test_several_fifos_of_a_node_in_a_box():
    """A box with several sources at each node; along X it is a mesh."""
    torus = apenet.machine("bluegene-l", ["network.dims=[8,4,4]"])
    box = apenet.traffic(torus.with_partition("1x4x4@2,0,0"), loads="1.0")
    assert box.points[0].packets > 0
    assert box.points[0].packets < apenet.traffic(torus, loads="1.0").points[0].packets / 4
