"""Simulated sockets of a run, and the file of their packets for Wireshark and tcpdump, which `--pcap` names."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from apenet import _core
from apenet.base.errors import InputError
from apenet.base.outfiles import given_path
from apenet.machine import Machine
from apenet.run.core_file import CoreFile

_SECTION = struct.pack("=IIIHHqHH6sHI", 0x0A0D0D0A, 44, 0x1A2B3C4D, 1, 0, -1, 4, 6, b"apenet", 0, 0)
HEADING = _SECTION + struct.pack("=I", 44)
END = struct.pack("=IIII", 4, 16, 0, 16)


def has_sockets(ip: bool, machine: Machine, compute: str, pcap: str | Path | None) -> bool:
    """Whether the ranks have simulated sockets. Raises InputError where there can be none."""
    if not ip and pcap is not None:
        raise InputError("pcap", pcap, "simulated sockets, whose packets it keeps: --ip")
    if not ip:
        return False
    if not _core.has_ip_stack():
        expected = "a build with the TCP/IP stack: install Rust (cargo 1.85 or later), then apenet again"
        raise InputError("ip", "true", expected)
    if machine.file.software.ip is None:
        raise InputError("ip", "true", f"a machine with [software.ip], which {machine.name} lacks")
    if compute.startswith("record:"):
        raise InputError("compute", compute, "none, measured or a profile, with --ip")
    return True


@dataclass(frozen=True)
class Packets:
    """The file that packets go to, and the only node whose packets do; None: all nodes."""

    path: Path
    node: int | None


def packet_file(pcap: str | Path | None, node: int | None) -> Packets | None:
    """What the user asks for. Raises InputError."""
    path = given_path("pcap", pcap, "a file")
    if path is None:
        if node is not None:
            raise InputError("pcap_node", node, "a file for the packets of this node: --pcap FILE")
        return None
    if node is not None and node < 0:
        raise InputError("pcap_node", node, "the number of a node that has a rank")
    return Packets(path, node)


class PacketFile(CoreFile):
    """The file that ip::PacketCapture writes: its first and its last block are always the same."""

    def __init__(self, packets: Packets) -> None:
        super().__init__("pcap", packets.path, HEADING, END)
        self._node = -1 if packets.node is None else packets.node

    def apply(self, options: _core.SessionOptions) -> None:
        """Tells the core."""
        options.capture_packets(self.writable, self._node)
