"""Drawn sequences of socket calls do as the host's kernel does them over its loopback: `apenet run --ip`.

The reference is the kernel of the host. The rules below were found with Linux 6.18.
"""

import os
import re
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hosts import needs_stack

import apenet as package

PORTS_OF_A_SEQUENCE = 16  # drawn_calls.c
PAUSE_MS = 45  # longer than a delayed acknowledgement
SIMULATED_PORT = 21000
NATIVE_AT_ONCE = 12  # they mostly sleep
SEQUENCES_OF_A_RUN = 72
PORTS_IN_A_ROW = PORTS_OF_A_SEQUENCE * SEQUENCES_OF_A_RUN // NATIVE_AT_ONCE

PROFILES = re.findall(
    r'^    \{"([a-z-]+)", "',
    Path(__file__).with_name("sockets").joinpath("drawn_calls.c").read_text(encoding="utf-8"),
    re.MULTILINE,
)

# What differs, and why: patterns of the line of Linux, and of the line here. docs/apis/ip.md has them.
KNOWN = (
    # The usual sizes of buffers, which Linux also changes by itself.
    (r"\d+ getsockopt SO_(RCV|SND)BUF .* = 0 ", r"\d+ getsockopt SO_(RCV|SND)BUF .* = 0 "),
    # The kernel takes it from the first packet of an accepted connection.
    (r"\d+ getsockopt IP_MULTICAST_TTL .* = 0 64/", r"\d+ getsockopt IP_MULTICAST_TTL .* = 0 1/"),
    # SIOCOUTQ of a socket that was connected, or has listened, and is not now: Linux gives a number without a meaning.
    (r"\d+ ioctl 5411 = 0 ", r"\d+ ioctl 5411 = 0 "),
)
# The same, after which what follows may differ, too.
LAST = (
    # A list of buffers of which one is no memory, and which the data does not reach.
    (r"\d+ (readv|recvmsg) .*!.* = \d", r"\d+ (readv|recvmsg) .*!.* = -1 Bad address"),
    # A socket that has been shut down and then connects to itself: the end comes at once on the host.
    (r"\d+ connect .* = -1 Software caused connection abort", r"\d+ connect .* = 0"),
)


def is_in(rules: tuple[tuple[str, str], ...], of_host: str, here: str) -> bool:
    return any(re.match(host, of_host) and re.match(own, here) for host, own in rules)


def host_address() -> str:
    """One of this host's addresses beside its loopback's, if it has one. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        try:
            own.connect(("192.0.2.77", 9))
        except OSError:
            return "127.0.0.1"
        return own.getsockname()[0]


def is_free(port: int) -> bool:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as own:
            try:
                own.bind(("", port))
            except OSError:
                return False
    return True


def free_ports(at: int) -> int:
    """The first of PORTS_IN_A_ROW, below those that the kernel gives out itself. `at`: another for each caller."""
    for tries in range(20):
        first = 10001 + (at + tries * NATIVE_AT_ONCE) % 220 * (PORTS_IN_A_ROW + 1)
        if all(is_free(port) for port in range(first - 1, first + PORTS_IN_A_ROW)):
            return first
    raise RuntimeError(f"no {PORTS_IN_A_ROW} ports in a row are free")


def native(program: Path, sequences: list[str], is_pair: bool, at: int) -> str:
    port = free_ports(os.getpid() * NATIVE_AT_ONCE + at)
    addresses = ["127.0.0.1", "127.0.0.2"] if is_pair else [host_address(), "-"]
    command = [program, PAUSE_MS, port, *addresses, *sequences]
    processes = [
        subprocess.Popen(map(str, command), env={**os.environ, "APENET_RANK": str(rank)}, stdout=subprocess.PIPE)
        for rank in range(2 if is_pair else 1)
    ]
    outputs = [process.communicate()[0].decode() for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), outputs
    return "".join(outputs)


def simulated(program: Path, sequences: list[str], is_pair: bool) -> str:
    addresses = ["10.0.0.1", "10.0.0.2" if is_pair else "-"]
    command = [str(part) for part in (program, PAUSE_MS, SIMULATED_PORT, *addresses, *sequences)]
    result = package.run(command, n=2 if is_pair else 1, machine="my-cluster", ip=True, capture=True, check=False)
    return result.stdout.decode()


def lines_of(output: str) -> dict[tuple[int, ...], str]:
    """By the numbers of the sequence, the step and its part."""
    found = {}
    for line in output.splitlines():
        place, text = line.split(" ", 1)
        found[tuple(map(int, place.split(".")))] = text
    return found


def first_difference(expected: dict[tuple[int, ...], str], got: dict[tuple[int, ...], str], sequence: int) -> str:
    """The first of a sequence, because others may follow from it. Empty: there is none, but those that are known."""
    for place in sorted(place for place in expected if place[0] == sequence):
        of_host, here = expected[place], got.get(place, "nothing")
        if of_host == here or is_in(KNOWN, of_host, here):
            continue
        return "" if is_in(LAST, of_host, here) else f"step {place[1:]}\n  Linux: {of_host}\n  here:  {here}"
    return ""


def compare(program: Path, sequences: list[str], is_pair: bool) -> list[str]:
    differences = []
    for begin in range(0, len(sequences), SEQUENCES_OF_A_RUN):
        part = sequences[begin : begin + SEQUENCES_OF_A_RUN]
        share = -(-len(part) // NATIVE_AT_ONCE)
        shares = [part[at : at + share] for at in range(0, len(part), share)]
        with ThreadPoolExecutor(NATIVE_AT_ONCE) as pool:
            of_host = pool.map(lambda at: native(program, shares[at], is_pair, at), range(len(shares)))  # noqa: B023
            got = lines_of(simulated(program, part, is_pair))
            expected = {}
            for number, output in enumerate(of_host):
                expected |= {(place[0] + number * share, *place[1:]): text for place, text in lines_of(output).items()}
        for sequence, name in enumerate(part):
            if difference := first_difference(expected, got, sequence):
                differences.append(f"{name}, {difference}")
    return differences


@needs_stack
@pytest.mark.parametrize("is_pair", [False, True], ids=["one process", "two nodes"])
def test_drawn_calls_do_as_on_the_host(compile_native, whole, is_pair):
    profiles = [profile for profile in PROFILES if profile.startswith("pair-") == is_pair]
    assert len(profiles) == (4 if is_pair else 20)
    seeds = range(1, 31 if whole else 2)
    sequences = [f"{profile}:{seed}" for seed in seeds for profile in profiles]
    assert compare(compile_native("sockets/drawn_calls.c"), sequences, is_pair) == []
