"""The nodes of a machine as network namespaces: the host's own programs talk over the simulated network."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from apenet import _core
from apenet.base.errors import HostError, InputError
from apenet.gateway import namespaces
from apenet.machine import machine

PYTHON = sys.executable
FIRST = 0x0A000001


def can_make_namespaces() -> bool:
    if os.geteuid() != 0 or shutil.which("ip") is None or not os.access("/dev/net/tun", os.W_OK):
        return False
    made = subprocess.run(["ip", "netns", "add", "apenet-probe"], capture_output=True, check=False).returncode == 0
    subprocess.run(["ip", "netns", "delete", "apenet-probe"], capture_output=True, check=False)
    return made


needs_namespaces = pytest.mark.skipif(not can_make_namespaces(), reason="needs root, /dev/net/tun and iproute2")


def packet(source: int, target: int, payload: bytes, version: int = 4) -> bytes:
    header = struct.pack("!BBHHHBBHII", version << 4 | 5, 0, 20 + len(payload), 0, 0, 64, 17, 0, source, target)
    return header + payload


@pytest.fixture
def gateway():
    """Carries packets between sockets instead of interfaces."""
    stopped, stop = os.pipe()
    started = []

    def start(settings=(), nodes=3, name="ape16", pcap=""):
        pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(nodes)]
        for theirs, ours in pairs:
            theirs.setblocking(False)
            ours.settimeout(60)
        ports = [(node, FIRST + node, theirs.fileno()) for node, (theirs, _) in enumerate(pairs)]
        carried = _core.IpGateway(machine(name).with_settings(*settings).description(), ports, pcap, 0)
        thread = threading.Thread(target=carried.run, args=(stopped,))
        thread.start()
        started.append((thread, pairs))
        return carried, [ours for _, ours in pairs]

    def end():
        os.write(stop, b".")
        for thread, _ in started:
            thread.join()

    start.end = end
    yield start
    end()
    for _, pairs in started:
        for pair in pairs:
            for one in pair:
                one.close()
    os.close(stopped)
    os.close(stop)


def test_packets_reach_their_node_in_order(gateway):
    carried, (first, second, third) = gateway()
    sent = [packet(FIRST, FIRST + 2, number.to_bytes(2, "big") * 300) for number in range(50)]
    for one in sent:
        first.send(one)
    second.send(packet(FIRST + 1, FIRST + 2, b"other"))
    got = [third.recv(65536) for _ in range(51)]
    assert [one for one in got if len(one) > 100] == sent
    assert packet(FIRST + 1, FIRST + 2, b"other") in got
    third.send(packet(FIRST + 2, FIRST, b"back"))
    assert first.recv(65536)[20:] == b"back"
    gateway.end()
    assert (carried.counters.packets, carried.counters.lost, carried.counters.refused) == (52, 0, 0)


def test_what_no_node_has_and_what_is_lost_is_counted(gateway):
    carried, (first, second, _) = gateway(["software.ip.loss_probability=0.5"])
    for stranger in (packet(FIRST, FIRST + 99, b"x"), packet(FIRST, FIRST + 1, b"x", version=6), b"short"):
        first.send(stranger)
    for number in range(200):
        first.send(packet(FIRST, FIRST + 1, bytes([number])))
    for _ in range(64):  # one of them arrives, behind all others
        first.send(packet(FIRST, FIRST + 1, b"end"))
    got = 0
    while second.recv(65536)[20:] != b"end":
        got += 1
    gateway.end()
    assert carried.counters.unreachable == 3
    assert 60 < got < 140
    assert carried.counters.lost >= 200 - got


def test_a_machine_without_interfaces_is_refused(gateway):
    with pytest.raises(ValueError, match=r"software.ip"):
        gateway(name="qpace")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"machine": machine("qpace")}, r"\[software.ip\]"),
        ({"machine": machine("ideal")}, "a number of nodes"),
        ({"nodes": 17}, "1 to 16 nodes of ape16"),
        ({"nodes": 0}, "1 to 16 nodes of ape16"),
        ({"machine": machine("ape16").with_partition("1x2x2")}, "whole"),
    ],
)
def test_networks_that_cannot_be(options, expected, tmp_path):
    with pytest.raises(InputError, match=expected):
        namespaces.up(**{"machine": machine("ape16"), "folder": tmp_path / "net", **options})
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_a_network(tmp_path):
    with pytest.raises(InputError, match="apenet ip up has started"):
        namespaces.down(tmp_path)
    with pytest.raises(InputError, match="a new folder"):
        namespaces.up(machine("ape16"), tmp_path)


def test_without_rights_or_tools_nothing_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(namespaces.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(namespaces.shutil, "which", lambda _: "/sbin/ip")
    with pytest.raises(HostError, match="need root"):
        namespaces.up(machine("ape16"), tmp_path / "net")
    monkeypatch.setattr(namespaces.shutil, "which", lambda _: None)
    with pytest.raises(HostError, match="iproute2"):
        namespaces.up(machine("ape16"), tmp_path / "net")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def network(apenet, tmp_path):
    """The folder of a network of three nodes."""
    folder = tmp_path / "net"
    options = ["--set", "network.dims=[3]", "--set", "machine.name=apt", "-m", "ape16"]
    done = apenet("ip", "up", *options, "--dir", folder, "--pcap", tmp_path / "all.pcapng", timeout_s=100)
    assert done.returncode == 0, done.stderr
    yield folder
    if folder.exists():
        apenet("ip", "down", "--dir", folder, timeout_s=100)


def within(name: str, *command: object, **options: object) -> subprocess.CompletedProcess[str]:
    line = ["ip", "netns", "exec", name, *map(str, command)]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=100, **options)


SERVER = """
import socket
s = socket.create_server(("", 7000)); print("ready", flush=True); c, peer = s.accept(); got = 0
while part := c.recv(65536): got += len(part)
print(got, peer[0])
"""
CLIENT = """
import socket
s = socket.create_connection(("node0", 7000)); s.sendall(b"x" * 1_000_000)
print(socket.gethostbyname("apt-2"))
"""


@needs_namespaces
def test_programs_of_the_host_talk_over_the_simulated_network(network, apenet, tmp_path):
    names = namespaces.opened(network).nodes
    with subprocess.Popen(
        ["ip", "netns", "exec", names[0], PYTHON, "-c", SERVER], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout.readline() == "ready\n"
        client = within(names[1], PYTHON, "-c", CLIENT)
        assert client.stdout == "10.0.0.3\n", client.stderr
        assert server.stdout.read() == "1000000 10.0.0.2\n"
    outside = within(names[1], PYTHON, "-c", "import socket; socket.create_connection(('192.0.2.1', 9), 5)")
    assert "Network is unreachable" in outside.stderr
    left = subprocess.Popen(["ip", "netns", "exec", names[2], "sleep", "600"])
    while not namespaces._processes(names[2]):
        time.sleep(0.01)
    second = apenet("ip", "up", "--dir", network, timeout_s=100)
    assert second.returncode != 0
    assert f"apenet ip down --dir {network}" in second.stderr
    done = apenet("ip", "down", "--dir", network, timeout_s=100)
    assert done.returncode == 0, done.stderr
    assert "ended the processes in its namespaces" in done.stderr
    assert left.wait(timeout=100) == -signal.SIGTERM
    assert not set(names) & namespaces._namespaces()
    assert not any((Path("/etc/netns") / name).exists() for name in names)
    assert not network.exists()
    assert (tmp_path / "all.pcapng").stat().st_size > 1_000_000


@needs_namespaces
def test_nothing_is_left_after_the_carrier_was_killed(network, apenet):
    found = namespaces.opened(network)
    (carrier,) = namespaces._carriers(found.folder)
    os.kill(carrier, signal.SIGKILL)
    done = apenet("ip", "down", "--dir", network, timeout_s=100)
    assert done.returncode == 0, done.stderr
    assert not set(found.nodes) & namespaces._namespaces()
    assert not network.exists()
