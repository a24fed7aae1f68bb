"""The interface of a node: which machines have one, packets that it loses, and the file of its packets."""

import gzip
import math
import re
import shutil
import struct
import subprocess

import pytest
from hosts import needs_stack
from socket_runs import run

import apenet as package
from apenet.base.errors import InputError, MachineError, NotWrittenError
from apenet.machine import machines

pytestmark = needs_stack

NONE = {
    "ape128-stable": "a machine with more ports, because the node's kernel has one of card.ports = 1",
    **{
        name: rf"a machine with \[software.ip\], which {name} lacks"
        for name in ("qpace", "qpace-8x16x16", "bluegene-l", "iq-router-v1", "iq-router-v2")
    },
}
INTERFACE, NAMES, PACKET, SECTION = 1, 4, 6, 0x0A0D0D0A


def received(result):
    return re.search(r"([0-9]+) bytes, sum ([0-9a-f]+), ([0-9.]+) us", result.stdout.decode())


def blocks(content):
    """The blocks of a file of packets: type and body. Each block says its length at both ends."""
    while content:
        kind, length = struct.unpack_from("=II", content)
        assert struct.unpack_from("=I", content, length - 4) == (length,)
        yield kind, content[8 : length - 4]
        content = content[length:]


def packets(content):
    """The interface of each packet, its time in ns and its bytes."""
    for kind, body in blocks(content):
        if kind == PACKET:
            interface, high, low, captured, length = struct.unpack_from("=IIIII", body)
            assert captured == length
            yield interface, high << 32 | low, body[20 : 20 + length]


def flags_of(packet):
    return packet[(packet[0] & 15) * 4 + 13]


@pytest.mark.parametrize("name", [one.name for one in machines()])
def test_machines_have_an_interface(compile_native, name):
    if name in NONE:
        with pytest.raises(InputError, match=NONE[name]):
            run(["true"], name)
        return
    done = run([compile_native("sockets/stream.c"), "100000"], name)
    assert received(done)[1] == "100000"


def test_a_kernel_has_a_port_of_the_card():
    with pytest.raises(InputError, match=r"at most 3 ranks a node, because .* has one of card.ports = 4"):
        run(["true"], n=4, ranks_per_node=4)
    assert run(["true"], n=3, ranks_per_node=3).ok


def test_a_card_that_reaches_only_neighbours_has_none():
    costs = ("system_call_us", "send_us", "send_packet_us", "interrupt_us", "receive_packet_us", "receive_us")
    sizes = ("software.ip.mtu_bytes=1500", "software.ip.header_bytes=0")
    with pytest.raises(MachineError, match=r"software.ip.*links lead to neighbours only"):
        run(["true"], "qpace", [*sizes, *(f"software.ip.{key}=1" for key in costs)])


def test_lost_packets_are_sent_again(compile_native):
    program = compile_native("sockets/stream.c")
    whole = run([program, "1000000"])
    first, second = (run([program, "1000000"], settings=["software.ip.loss_probability=0.02"]) for _ in range(2))
    assert (first.stdout, first.trace_hash) == (second.stdout, second.trace_hash)
    assert received(first)[2] == received(whole)[2]
    assert float(received(first)[3]) > float(received(whole)[3])
    other = run([program, "1000000"], settings=["software.ip.loss_probability=0.02"], seed=2)
    assert received(other)[3] != received(first)[3]


def test_goodput_under_loss_is_that_of_the_published_formula(compile_native):
    """Padhye et al., Modeling TCP throughput, SIGCOMM 1998, eq. 30, for an acknowledgement for every other segment."""
    loss, round_trip_s, time_out_s, segment_bytes = 0.01, 0.1, 1.0, 4056
    settings = [f"software.ip.loss_probability={loss}", f"router.port_latency_ns={round(round_trip_s / 4 * 1e9)}"]
    done = run([compile_native("sockets/stream.c"), "60000000"], "my-cluster", settings)
    by_loss = round_trip_s * math.sqrt(2 * 2 * loss / 3)
    by_time_outs = time_out_s * min(1, 3 * math.sqrt(3 * 2 * loss / 8)) * loss * (1 + 32 * loss**2)
    expected = segment_bytes / (by_loss + by_time_outs)
    assert 60e6 / (float(received(done)[3]) * 1e-6) == pytest.approx(expected, rel=0.15)


def test_a_link_that_dies_loses_nothing(compile_native):
    program = compile_native("sockets/stream.c")
    whole = run([program, "1000000"])
    for fault in ("link (0,0,0)+x down @1ms", "node (1,0,0) down @1ms up @3s"):
        done = run([program, "1000000"], faults=[fault])
        assert received(done)[2] == received(whole)[2]


def test_the_file_has_each_packet_once(compile_native, tmp_path):
    program = compile_native("sockets/stream.c")
    file = tmp_path / "packets.pcapng"
    done = run([program, "100000"], pcap=file)
    content = file.read_bytes()
    kinds = [kind for kind, _ in blocks(content)]
    assert kinds[:4] == [SECTION, INTERFACE, INTERFACE, NAMES]
    assert kinds[-1] == NAMES
    assert b"ape16-1-0-0" in content
    found = list(packets(content))
    assert len(found) == done.messages
    times = [time for _, time, _ in found]
    assert times == sorted(times)
    start_s = 1_122_249_600  # 25 July 2005: the date that the programs see
    assert 0 < times[0] - start_s * 10**9 < 10**6
    assert flags_of(found[0][2]) == 2  # SYN
    server, client = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
    assert [packet[12:20] for _, _, packet in found[:2]] == [client + server, server + client]
    run([program, "100000"], pcap=file)  # a file of ours may be written again
    assert file.read_bytes() == content
    assert done.trace_hash == run([program, "100000"]).trace_hash


def test_the_packets_of_one_node(compile_native, tmp_path):
    program = compile_native("sockets/stream.c")
    file = tmp_path / "packets.pcapng.gz"
    run([program, "100000"], pcap=file, pcap_node=0)
    found = list(packets(gzip.decompress(file.read_bytes())))
    assert {interface for interface, _, _ in found} == {0}
    # The client's SYN has crossed the network when this node gets it.
    assert found[0][1] % 10**9 > 5000
    assert flags_of(found[0][2]) == 2


def test_tcpdump_reads_the_file(compile_native, tmp_path):
    tcpdump = shutil.which("tcpdump", path="/usr/bin:/usr/sbin")
    if tcpdump is None:
        pytest.skip("tcpdump is not installed")
    file = tmp_path / "packets.pcapng"
    run([compile_native("sockets/stream.c"), "10000"], pcap=file)
    said = subprocess.run([tcpdump, "-nn", "-r", file], check=True, capture_output=True, text=True).stdout.splitlines()
    assert "10.0.0.2.32768 > 10.0.0.1.5000: Flags [S]" in said[0]
    assert len(said) == len(list(packets(file.read_bytes())))


def test_packet_files_that_cannot_be(compile_native, tmp_path):
    program = compile_native("sockets/stream.c")
    foreign = tmp_path / "foreign.pcapng"
    foreign.write_bytes(b"\n\r\r\nof another program")
    for options, expected in (
        ({"pcap": foreign}, "pcap"),
        ({"pcap": tmp_path / "a", "pcap_node": 2}, "pcap_node = 2"),
        ({"pcap": tmp_path / "a", "pcap_node": -1}, "pcap_node = -1"),
        ({"pcap_node": 0}, "--pcap FILE"),
    ):
        with pytest.raises(InputError, match=expected):
            run([program], **options)
    with pytest.raises(InputError, match="--ip"):
        package.run([program], n=2, machine="ape16", pcap=tmp_path / "a")
    with pytest.raises(NotWrittenError, match="pcap"):
        run([program], pcap="/dev/full")
