"""Faults from Python and from the command line: dead links and nodes, bit errors."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import apenet as package
from apenet import InputError, MachineError, PartitionError

SOON = ["network.reconfiguration_us=50"]
DEAD_CABLE = "link (0,0,0)+x down @25us"


def exchange(rank):
    for step in range(20):
        receive = yield rank.irecv(rank.id ^ 1, tag=step)
        send = yield rank.isend(rank.id ^ 1, 3000, tag=step)
        yield rank.wait(send, receive)


def test_a_workload_goes_around_a_dead_cable():
    machine = package.machine("ape16", SOON)
    whole = package.workload(exchange, n=16, machine=machine)
    faulty = package.workload(exchange, n=16, machine=machine, faults=[DEAD_CABLE])
    assert faulty.virtual_time_us > whole.virtual_time_us + 30
    assert (faulty.messages, faulty.bytes) == (whole.messages, whole.bytes)
    assert (faulty.faults.events, faulty.faults.reconfigurations) == (1, 1)
    assert faulty.faults.packets_taken_back > 0
    assert whole.faults.summary() == ""
    assert faulty.faults.summary().startswith("fault events: 1, reconfigurations: 1, ")
    assert package.workload(exchange, n=16, machine=machine, faults=[DEAD_CABLE]).trace_hash == faulty.trace_hash


def test_a_node_cut_off_for_ever_is_an_error():
    with pytest.raises(
        PartitionError, match=r"cannot reach node 5 at \(1,1,0\): there has been no path since 3 us"
    ) as caught:
        package.workload(exchange, n=16, machine="ape16", faults=["node (1,1,0) down @3us"])
    assert isinstance(caught.value, package.ApenetError)


def test_a_node_cut_off_for_a_while_waits():
    machine = package.machine("ape16", SOON, ["node (1,1,0) down @3us up @1ms"])
    result = package.workload(exchange, n=16, machine=machine)
    assert result.finish_us[[4, 5]].min() > 1050
    assert np.delete(result.finish_us, [4, 5]).max() < 500


def test_bit_errors_cost_time_and_are_counted():
    wrong = package.machine("ape16", ["network.link.bit_error_rate=1e-5"])
    whole = package.workload(exchange, n=16)
    result = package.workload(exchange, n=16, machine=wrong)
    assert result.virtual_time_us > whole.virtual_time_us
    assert result.faults.corrupted_packets == sum(link.corrupted_packets for link in result.links) > 0
    assert result.faults.retransmitted_bytes == sum(link.retransmitted_bytes for link in result.links)
    assert "corrupted packets" in result.faults.summary()
    in_x = package.machine("ape16", ["network.link.x.bit_error_rate=1e-5"])
    links = package.workload(exchange, n=16, machine=in_x).links
    assert {link.name[-1] for link in links if link.corrupted_packets} == {"x"}
    none = package.machine("ape16", ["network.link.bit_error_rate=0"])
    assert package.workload(exchange, n=16, machine=none).trace_hash == whole.trace_hash


def test_faults_behind_the_end_do_not_happen_and_that_is_said():
    late = ["link (0,0,0)+x down @1s up @2s"]
    whole = package.workload(exchange, n=16)
    found = package.workload(exchange, n=16, faults=late)
    assert (found.virtual_time_us, found.faults.events) == (whole.virtual_time_us, 0)
    assert found.warnings == ("2 of 2 fault events are scheduled after the end of the run and were ignored",)
    machine = package.machine("ape16").with_faults(*late)
    assert package.bench.pingpong(machine, sizes=[64]).warnings == found.warnings


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("link (0,0,0)x down @1us", "did you mean (0,0,0)+x?"),
        ("link (9,0,0)+x down @1us", "a link of this machine"),
        ("node 16 down @1us", "a number below 16"),
        ("link (0,0,0)+x down @2us up @1us", "increasing times"),
        ("link (0,0,0)+x down", "down @TIME"),
        ("cable 3 down @1us", "link|node|switch"),
    ],
)
def test_an_impossible_fault_is_refused(apenet, fault, said):
    with pytest.raises(MachineError) as caught:
        package.machine("ape16", faults=[fault])
    assert said in str(caught.value)
    done = apenet("bench", "pingpong", "--sizes", "16:16", "--fault", fault)
    assert done.returncode == 2
    assert f'fault = "{fault}": expected' in done.stderr
    assert said in done.stderr


def test_a_machine_of_many_nodes_goes_around_a_dead_cable():
    """9261 nodes have 86 million routes, more than the cache has places."""
    machine = package.machine("ape16", ["network.dims=[21,21,21]", *SOON])
    whole = package.workload(exchange, n=16, machine=machine)
    faulty = package.workload(exchange, n=16, machine=machine, faults=[DEAD_CABLE])
    assert faulty.virtual_time_us > whole.virtual_time_us + 30
    assert (faulty.messages, faulty.bytes, faulty.faults.reconfigurations) == (whole.messages, whole.bytes, 1)


def test_up_down_as_the_routing_of_a_machine_has_routes_to_check():
    """20x20x20 is within the 2^26 routes, 24x24x24 is not."""
    changes = ["network.dims=[24,24,24]", "network.routing=up-down"]
    with pytest.raises(MachineError, match=f"at most 67108864 routes .* not {24**6}"):
        package.machine("iq-router-v1", changes).wire()


@pytest.mark.parametrize(
    ("rate", "said"), [("1", "272 bytes on the wire"), ("0.1", "with probability 1,"), ("-1", "at least 0")]
)
def test_a_rate_at_which_nothing_passes_is_refused(apenet, rate, said):
    done = apenet("bench", "pingpong", "--sizes", "16:16", "--set", f"network.link.bit_error_rate={rate}")
    assert done.returncode == 2
    assert "bit_error_rate" in done.stderr
    assert said in done.stderr


def test_both_engines_take_the_same_way_around_a_dead_cable(apenet):
    """At low load, where packets meet no others."""

    def measure(engine, *options):
        settings = ["--set", "network.dims=[8]", "--set", "network.reconfiguration_us=0.1"]
        traffic = ["traffic", "--machine", "iq-router-v1", "--engine", engine, "--load", "0.001", "--json"]
        done = apenet(*traffic, *settings, *options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["points"][0]

    dead = ["--fault", "link (0)+x down @0ns"]
    packet, flit = measure("packet", *dead), measure("flit", *dead)
    assert flit["hops"] == packet["hops"] > measure("flit")["hops"] + 0.5
    assert flit["packet_latency_cycles"] == pytest.approx(packet["packet_latency_cycles"], rel=1e-3)


def test_the_flit_engine_repeats_corrupted_packets_and_counts_them():
    machine = package.machine("iq-router-v1", ["network.link.bit_error_rate=1e-4"])
    result = package.workload(exchange, n=16, machine=machine, engine="flit")
    assert (
        result.virtual_time_us > package.workload(exchange, n=16, machine="iq-router-v1", engine="flit").virtual_time_us
    )
    assert result.faults.corrupted_packets == sum(link.corrupted_packets for link in result.links) > 0
    assert result.faults.retransmitted_bytes == sum(link.retransmitted_bytes for link in result.links)


def test_machines_without_network_have_no_faults():
    with pytest.raises((InputError, MachineError), match="without a network"):
        package.machine("ideal", faults=[DEAD_CABLE])


def test_the_commands_take_faults(apenet, tmp_path):
    trace = tmp_path / "t.goal"
    trace.write_text("num_ranks 2\nrank 0 {\nl1: send 9000b to 1 tag 0\n}\nrank 1 {\nl1: recv 9000b from 0 tag 0\n}\n")
    common = ("--set", SOON[0], "--fault", DEAD_CABLE)
    done = apenet("replay", trace, *common, "--out", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["faults"]["events"] == 1
    assert json.loads((tmp_path / "out" / "command.json").read_text())["faults"] == [DEAD_CABLE]
    assert "fault events: 1," in apenet("replay", trace, *common).stdout
    whole = apenet("bench", "halo", "--sizes", "4096:4096", "--json")
    halo = apenet("bench", "halo", "--sizes", "4096:4096", "--json", *common)
    assert halo.returncode == 0, halo.stderr
    assert json.loads(halo.stdout)["points"][0]["time_us"] > json.loads(whole.stdout)["points"][0]["time_us"]
    cut = apenet("bench", "halo", "--sizes", "4096:4096", "--set", SOON[0], "--fault", "node 0 down @1us")
    assert cut.returncode == 1
    assert "cannot reach" in cut.stderr


@settings(max_examples=60)
@given(text=st.text(alphabet="link(0,)+xdownup@12.us \n\t-é", max_size=50))
def test_any_text_is_a_fault_or_refused(text):
    try:
        package.machine("ape16", faults=[text])
    except MachineError as error:
        assert "fault = " in str(error)
