"""Network namespaces for the nodes of a machine: made, joined by the simulated network, and removed.

Each node has a namespace with its name, in it the interface `apenet0` (TUN) with the node's address, and names of all
nodes (`/etc/netns/NAME/hosts`, which `ip netns exec` shows as /etc/hosts). One process carries the packets.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from apenet import _core
from apenet.base.errors import HostError, InputError
from apenet.machine import Machine
from apenet.machine import machine as read_machine
from apenet.run.packet_file import PacketFile, Packets

FOLDER = "apenet-ip"
"""Where the state of a network lies, unless the user says otherwise."""
MOST_NODES = 256
_STATE = "network.json"
_MACHINE = "machine.toml"
_LOG = "gateway.log"
_NAMES = Path("/etc/netns")
_TUN = Path("/dev/net/tun")
_TUNSETIFF = 0x400454CA
_IFF_TUN_NO_PI = 0x1001
_FIRST = ipaddress.IPv4Address("10.0.0.1")
_INTERFACE = "apenet0"
_START_S = 60.0
_END_S = 5.0
_POLL_S = 0.05


@dataclass(frozen=True)
class Network:
    """A network that runs: the names of its nodes, which are those of the namespaces."""

    folder: Path
    machine: str
    nodes: tuple[str, ...]

    def addresses(self) -> Iterator[tuple[str, str]]:
        """Each node's name and address."""
        return ((name, str(_FIRST + number)) for number, name in enumerate(self.nodes))


def opened(folder: Path) -> Network:
    """The network of a folder. Raises InputError if there is none."""
    try:
        state = json.loads((folder / _STATE).read_text(encoding="utf-8"))
        return Network(folder.absolute(), state["machine"], tuple(state["nodes"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError("dir", folder, "the folder of a network that apenet ip up has started") from error


def up(machine: Machine, folder: Path, nodes: int | None = None, pcap: Path | None = None) -> Network:
    """Makes the namespaces of the first `nodes` nodes, or of all, and starts the process that carries their packets.

    Raises InputError for machines and folders that do not do, HostError without the rights or tools: nothing is left.
    """
    machine.require_whole("a network")
    count = machine.node_count
    if machine.file.software.ip is None or count is None:
        raise InputError("machine", machine.name, "a machine with [software.ip] and a number of nodes")
    wanted = count if nodes is None else nodes
    if not 1 <= wanted <= min(count, MOST_NODES):
        raise InputError("nodes", wanted, f"1 to {min(count, MOST_NODES)} nodes of {machine.name}")
    if folder.exists() or folder.is_symlink():
        is_network = (folder / _STATE).exists()
        raise InputError(
            "dir", folder, f"no network there: apenet ip down --dir {folder}" if is_network else "a new folder"
        )
    if pcap is not None:
        PacketFile(Packets(pcap, None)).close()  # refused now rather than at the end
    _require_tools()
    description = machine.description()
    names = tuple(description.node_name(node) for node in range(wanted))
    taken = [name for name in names if name in _namespaces() or (_NAMES / name).exists()]
    if taken:
        raise InputError("machine", machine.name, f"no network namespace {taken[0]} on this host: ip netns delete")
    folder.mkdir(mode=0o700, parents=True)
    try:
        # First, so that `down` knows the folder whenever this process is killed.
        (folder / _STATE).write_text(json.dumps({"machine": machine.name, "nodes": names}), encoding="utf-8")
        for name, content in machine.saved().items():
            (folder / name).write_bytes(content)
        _wait_until_ready(folder, _start(folder, pcap))
    except BaseException:
        down(folder)
        raise
    return opened(folder)


def down(folder: Path) -> list[int]:
    """Ends the network and removes all of it. Returns the processes in its namespaces that had to be ended."""
    network = opened(folder)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in _carriers(network.folder):
            _send(process, number)
        if _wait(lambda: not _carriers(network.folder)):
            break
    there = _namespaces()
    ended = [process for name in network.nodes if name in there for process in _processes(name)]
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in ended:
            _send(process, number)
        if _wait(lambda: not any(_processes(name) for name in network.nodes if name in there)):
            break
    for name in network.nodes:
        if name in there:
            _ip("netns", "delete", name)
        shutil.rmtree(_NAMES / name, ignore_errors=True)
    with contextlib.suppress(OSError):
        _NAMES.rmdir()
    shutil.rmtree(folder, ignore_errors=True)
    return ended


def serve(folder: Path, pcap: str) -> None:
    """Makes the interfaces of a network and carries their packets until SIGTERM: the process that `up` starts."""
    network = opened(folder)
    stopped, stop = os.pipe()
    os.set_blocking(stop, False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.set_wakeup_fd(stop)
    machine = read_machine(str(folder / _MACHINE))
    assert machine.file.software.ip is not None  # noqa: S101 (up has checked)
    mtu = machine.file.software.ip.mtu_bytes.value
    hosts = "127.0.0.1 localhost\n" + "".join(
        f"{address} {name} node{number}\n" for number, (name, address) in enumerate(network.addresses())
    )
    ports = []
    for number, (name, address) in enumerate(network.addresses()):
        (_NAMES / name).mkdir(parents=True)
        (_NAMES / name / "hosts").write_text(hosts, encoding="utf-8")
        ports.append((number, int(ipaddress.IPv4Address(address)), _interface(name, address, mtu)))
    with contextlib.ExitStack() as stack:
        packets = stack.enter_context(PacketFile(Packets(Path(pcap), None))) if pcap else None
        path = "" if packets is None else packets.writable
        gateway = _core.IpGateway(machine.description(), ports, path, int(time.time()))
        (folder / "ready").touch()
        gateway.run(stopped)
        if packets is not None:
            packets.keep()
    counted = gateway.counters
    names = ("packets", "bytes", "lost", "unreachable", "refused", "late")
    counts = {name: getattr(counted, name) for name in names}
    (folder / "counters.json").write_text(json.dumps({**counts, "latest_us": counted.latest_ps * 1e-6}))


def _interface(name: str, address: str, mtu: int) -> int:
    """The descriptor of a new TUN interface in a new namespace."""
    _ip("netns", "add", name)
    descriptor = os.open(_TUN, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    made = f"apt{os.getpid() % 10**7}"
    fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH", made.encode(), _IFF_TUN_NO_PI))
    _ip("link", "set", made, "netns", name)
    for command in (
        ("link", "set", made, "name", _INTERFACE),
        ("link", "set", _INTERFACE, "mtu", str(mtu), "up"),
        ("link", "set", "lo", "up"),
        ("address", "add", f"{address}/8", "dev", _INTERFACE),
    ):
        _ip("-n", name, *command)
    return descriptor


def _start(folder: Path, pcap: Path | None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "apenet", "ip", "serve", "--dir", str(folder.absolute())]
    if pcap is not None:
        command += ["--pcap", str(pcap)]
    with (folder / _LOG).open("wb") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def _wait_until_ready(folder: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S
    while not (folder / "ready").exists():
        if process.poll() is not None or time.monotonic() > deadline:
            said = (folder / _LOG).read_text(errors="replace").strip().splitlines()
            raise HostError(f"the network does not start: {said[-1] if said else 'no word'}")
        time.sleep(_POLL_S)


def _require_tools() -> None:
    if shutil.which("ip") is None:
        raise HostError("ip is not installed, which makes network namespaces (Debian: iproute2)")
    if os.geteuid() != 0 or not os.access(_TUN, os.R_OK | os.W_OK):
        raise HostError(f"network namespaces and {_TUN} need root: apenet ip up as root, or in a virtual machine")


def _namespaces() -> set[str]:
    said = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    return {line.split()[0] for line in said.splitlines() if line.strip()}


def _processes(name: str) -> list[int]:
    said = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True, check=False).stdout
    return [int(one) for one in said.split()]


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HostError(f"ip {' '.join(arguments)}: {done.stderr.strip() or f'status {done.returncode}'}")


def _carriers(folder: Path) -> list[int]:
    """The process that carries the packets, found by its arguments: whoever started it may have been killed."""
    wanted = f"\0ip\0serve\0--dir\0{folder.absolute()}\0".encode()
    found = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdigit() and wanted in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


def _send(process: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)


def _wait(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + _END_S
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True
