"""Sockets of the simulated nodes: `apenet run --ip`."""

import itertools
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hosts import GO, needs_dispatch, needs_go, needs_stack
from socket_runs import number, run

import apenet as package
from apenet.base.errors import InputError
from apenet.host import applications

PROGRAMS = Path(__file__).with_name("sockets")
PYTHON = shutil.which("python3", path="/usr/bin") or sys.executable


@needs_stack
def test_a_stream_and_its_times_repeat(compile_native):
    program = compile_native("sockets/stream.c")
    first, second = (run([program, "1000000"]) for _ in range(2))
    assert b"ape16-0-0-0: from 10.0.0.2" in first.stdout
    expected = 0
    for i in range(1_000_000):
        expected = (expected * 31 + i * 7 % 256) % 2**32
    assert f"1000000 bytes, sum {expected:08x}" in first.stdout.decode()
    assert (first.stdout, first.trace_hash) == (second.stdout, second.trace_hash)


@needs_stack
def test_a_stream_is_as_fast_as_its_slowest_part(compile_native):
    """The receiver's kernel: it takes two segments of 1460 bytes, and acknowledges them. 2 % of them are shorter."""
    program = compile_native("sockets/stream.c")
    took_us = number(r"([0-9.]+) us", run([program, "8000000"], settings=["software.ip.receive_packet_us=20"]))
    by_hand_us = 8_000_000 / 2920 * (2 * 20 + 1.5)
    assert by_hand_us < took_us < 1.04 * by_hand_us


@needs_stack
def test_a_round_trip_costs_what_the_machine_says(compile_native):
    program = compile_native("sockets/stream.c")

    def round_trip_us(**changes):
        settings = [f"software.ip.{key}={value}" for key, value in {"interrupt_us": 0, **changes}.items()]
        return number(r"echo: ([0-9.]+) us", run([program], settings=settings))

    base = round_trip_us()
    for changes, added_us in (({"send_us": 3.5}, 2), ({"receive_us": 3}, 4), ({"receive_packet_us": 3.5}, 2)):
        assert round_trip_us(**changes) - base == pytest.approx(added_us, abs=0.01)
    # A packet that comes while another waits for the interrupt waits with it.
    assert round_trip_us(interrupt_us=40) - round_trip_us(interrupt_us=30) == pytest.approx(20, abs=0.01)


@needs_stack
def test_datagrams_and_waits_for_several_sockets(compile_native):
    program = compile_native("sockets/readiness.c")
    first, second = (run([program], "my-cluster") for _ in range(2))
    assert first.stdout.count(b"done at") == 2
    assert (first.stdout, first.trace_hash) == (second.stdout, second.trace_hash)
    said = first.stderr.decode()
    for warning in (
        "socket(AF_INET6): the simulated nodes have no IPv6",
        "raw and packet sockets",
        "setsockopt(1, 25)",
    ):
        assert warning in said


@needs_stack
@pytest.mark.parametrize("most_ms", [-1, 5000])
def test_a_set_may_get_files_while_a_thread_waits_for_it(compile_native, most_ms):
    program = compile_native("sockets/growing_set.c")
    first, second = (run([program, str(most_ms)], "my-cluster", n=1) for _ in range(2))
    assert first.stdout == b"1 ready, file 1, after 0.020 s\n1 ready, file 2, after 0.030 s\n"
    assert (first.stdout, first.trace_hash) == (second.stdout, second.trace_hash)


@needs_stack
@pytest.mark.parametrize("how", ["syscall()", pytest.param("the instruction", marks=needs_dispatch)])
@pytest.mark.parametrize("source, arguments", [("stream.c", ["100000"]), ("readiness.c", [])])
def test_calls_by_number_do_as_those_by_name(compile_native, tmp_path, source, arguments, how):
    by_number = tmp_path / "by_number"
    options = ["-O2", "-w", "-include", PROGRAMS / "by_number.h", *(["-DDIRECT"] if how == "the instruction" else [])]
    subprocess.run(["gcc", *options, PROGRAMS / source, "-o", by_number], check=True)
    named = run([compile_native(f"sockets/{source}"), *arguments], "my-cluster")
    numbered = run([by_number, *arguments], "my-cluster")
    assert (named.stdout, named.trace_hash) == (numbered.stdout, numbered.trace_hash)


@needs_stack
@needs_dispatch
@needs_go
def test_a_program_in_go_serves_and_repeats(tmp_path):
    program = tmp_path / "web"
    environment = {**os.environ, "CGO_ENABLED": "1"}
    subprocess.run([GO, "build", "-o", program, PROGRAMS / "web.go"], env=environment, cwd=tmp_path, check=True)
    clients = 8
    # Threads of one process share work by memory alone: a clock read or a map's order of the host would tell.
    runs = [run([program, "server", ":", "-n", str(clients), program, "client"], "my-cluster", n=1) for _ in range(2)]
    assert runs[0].stdout.count(b"160 right, mean ") == clients
    assert (runs[0].stdout, runs[0].trace_hash) == (runs[1].stdout, runs[1].trace_hash)


@needs_stack
@pytest.mark.skipif(platform.machine() != "x86_64", reason="a counter of x86-64")
def test_the_cycle_counter_is_virtual(tmp_path):
    program = tmp_path / "cycles"
    subprocess.run(["gcc", "-O2", "-DSOCKETS", PROGRAMS.with_name("cycles.c"), "-o", program], check=True)
    for command in (
        [program],
        ["sh", "-c", 'sleep 0.1; exec "$0"', program],
        ["sh", "-c", '"$0"; true', program],
        ["sh", "-c", 'sleep 0.1; "$0"; true', program],
        [PYTHON, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])", program],
    ):
        assert run(command, trap_tsc=True).stdout == 2 * b"1000 cycles, processor 0\n", command


@needs_stack
def test_random_numbers_of_the_system_are_of_the_seed(compile_native):
    for command in ([PYTHON, PROGRAMS / "drawn.py", "first"], [compile_native("sockets/drawn.c")]):
        runs = [sorted(run(command, seed=seed).stdout.decode().split()) for seed in (1, 1, 2)]
        assert runs[0] == runs[1]
        assert len(set(runs[0])) == len(runs[0])
        assert not set(runs[0]) & set(runs[2])


@needs_stack
def test_a_static_program_is_refused(tmp_path):
    program = tmp_path / "static"
    subprocess.run(["gcc", "-static", "-x", "c", "-", "-o", program], input=b"int main(void) { return 0; }", check=True)
    with pytest.raises(
        InputError, match=r"linked dynamically with --ip; the sockets of .*static would be those of the host"
    ):
        run([program])
    with pytest.raises(InputError, match="linked dynamically"):
        run(["true", ":", "-n", "1", program], n=1)


@needs_stack
def test_a_connected_datagram_socket_has_the_nodes_address():
    code = """
import socket
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own.connect(("node0", 9))
print(own.getsockname()[0])
local = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
local.bind(("", 500))
local.connect(("127.0.0.1", 9))
print(local.getsockname())
"""
    lines = sorted(run([PYTHON, "-c", code]).stdout.decode().split("\n"))
    assert lines == ["", "('127.0.0.1', 500)", "('127.0.0.1', 500)", "10.0.0.1", "10.0.0.2"]


@needs_stack
@pytest.mark.parametrize("program", [("web.py",), ("many.py", "30")])
def test_python_programs_repeat(program):
    command = [PYTHON, str(PROGRAMS / program[0]), *program[1:]]
    first, second = (run(command) for _ in range(2))
    assert (first.stdout, first.trace_hash) == (second.stdout, second.trace_hash)
    assert first.virtual_time_us > 1_800_000_000 or program[0] == "web.py"


@needs_stack
def test_sockets_of_a_rank_that_has_ended_are_closed():
    server = "import socket\ns = socket.create_server(('', 70)); print(s.accept()[0].recv(9), s.accept()[0].recv(9))"
    client = "import os, socket\ns = socket.create_connection(('node0', 70)); s.send(b'last'); os._exit(0)"
    later = "import socket, time\ntime.sleep(1); s = socket.create_connection(('node0', 70)); s.send(b'more')"
    start = "import time\ntime.sleep(0.001)\n"
    command = [PYTHON, "-c", server, ":", "-n", "1", PYTHON, "-c", start + client, ":", "-n", "1", PYTHON, "-c", later]
    assert run(command, n=1).stdout == b"b'last' b'more'\n"


@needs_stack
@pytest.mark.parametrize("script", ['exec "$0"', 'sleep 0.01; exec "$0"', 'sleep 0.01; "$0"; true', 'timeout 9 "$0"'])
def test_a_script_starts_the_program_with_the_sockets(compile_native, script):
    done = run(["sh", "-c", script, compile_native("sockets/stream.c")])
    assert b"ape16-0-0-0: from 10.0.0.2" in done.stdout
    assert done.virtual_time_us < 1e6


@needs_stack
@pytest.mark.parametrize("how", ["forks", "workers", "killed"])
def test_children_have_the_sockets_of_their_rank(how):
    command = [PYTHON, str(PROGRAMS / "forking.py"), how]
    first, second = (run([*command, ":", "-n", "2", *command], n=1) for _ in range(2))
    lines = first.stdout.decode().splitlines()
    served = [line for line in lines if line.startswith({"forks": "child", "workers": "worker", "killed": "once"}[how])]
    assert (len(lines), len(served)) == ({"forks": 8, "workers": 7, "killed": 8}[how], 4)
    assert (first.stdout, first.trace_hash) == (second.stdout, second.trace_hash)
    if how == "workers":  # those that have waited longest are first
        assert [line.split()[1] for line in sorted(served, key=lambda line: line.split()[-3])] == list("0120")


@needs_stack
def test_signals_and_files_end_waits_for_sockets():
    first, second = (run([PYTHON, str(PROGRAMS / "interrupted.py")], n=1) for _ in range(2))
    lines = first.stdout.decode().splitlines()
    assert lines.pop() == "by a child of the handler"
    assert not [line for line in lines if "returned" in line]
    times = [float(line.split()[-1]) for line in lines]
    waits = [after - before for before, after in itertools.pairwise(times)][:14]
    assert waits == pytest.approx([0.05] * 14, abs=0.0002)
    assert [sum(word in line for line in lines) for word in ("alarm", "signal", "child", "pipe")] == [5, 5, 5, 3]
    assert [line.split()[0] for line in lines[-2:]] == ["handled", "accepted"]
    assert times[-1] - times[-3] == pytest.approx(0.06, abs=0.0002)
    assert (first.stdout, first.trace_hash) == (second.stdout, second.trace_hash)


@needs_stack
def test_the_low_water_mark_holds_up_reads_and_waits():
    """The times and counts are Linux's; what Python's own time limit waits for is poll()."""
    lines = run([PYTHON, str(PROGRAMS / "low_water.py")]).stdout.decode().splitlines()
    assert lines == [
        *("recv 70 0.009", "of less 5 0.000", "peek 70 0.009", "peek of all 200 0.019", "at once 10 0.000"),
        *("read 70 0.009", "recvmsg 70 0.009", "limit none 0.005", "poll 1 0.009", "epoll 1 0.009"),
        *("lowered 270 0.019", "to the end 270 0.029"),
    ]


@needs_stack
def test_select_leaves_what_is_left_of_its_limit():
    """As Linux does; ready from the begin, and never ready."""
    code = """
import ctypes, socket
libc = ctypes.CDLL(None)
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for to, most_s in ((0, 2), (1, 2), (1, 10**9)):  # 0: readable, 1: writable
    files, limit = (ctypes.c_uint64 * 16)(), (ctypes.c_long * 2)(most_s, 500_000)
    files[own.fileno() // 64] = 1 << own.fileno() % 64
    sets = (None, files, None) if to else (files, None, None)
    print(libc.select(own.fileno() + 1, *sets, limit), min(round(limit[0] + limit[1] / 1e6, 3), 1e6))
"""
    assert run([PYTHON, "-c", code], n=1).stdout.decode().splitlines() == ["0 0.0", "1 2.5", "1 1000000.0"]


@needs_stack
def test_options_that_messages_do_not_answer_are_told():
    code = """
import socket
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for level, name in ((1, 29), (1, 60), (0, 11), (0, 1)):
    own.setsockopt(level, name, 1)
"""
    said = run([PYTHON, "-c", code], n=1).stderr.decode()
    for option, is_warned in (("1, 29", True), ("1, 60", True), ("0, 11", True), ("0, 1", False)):
        assert (f"setsockopt({option}): is kept, but no message brings what it asks for" in said) == is_warned


@needs_stack
def test_sockets_in_messages_and_as_standard_streams(compile_native):
    """Also in a program that is started without an environment: it would have the host's network."""
    command = [PYTHON, str(PROGRAMS / "passed.py"), str(compile_native("sockets/streams.c"))]
    first, second = (run([*command, ":", "-n", "1", *command], n=1) for _ in range(2))
    told = "['1: one', '1: two', 'lo 127.0.0.1', 'eth0 10.0.0.1']"
    lines = [line.rpartition(" ")[0] for line in first.stdout.decode().splitlines()]
    assert lines == ["['the worker got one', 'two']", told, told]
    assert (first.stdout, first.trace_hash) == (second.stdout, second.trace_hash)


@needs_stack
def test_programs_inherit_sockets():
    command = [PYTHON, str(PROGRAMS / "heirs.py")]
    first, second = (run([*command, ":", "-n", "1", *command], n=1) for _ in range(2))
    lines = first.stdout.decode().splitlines()
    assert sum(line.startswith("b'to whom it concerns' ('10.0.0.1', 70)") for line in lines) == 3
    assert sum("the end comes: b''" in line and "ape16-0-0-0" in line for line in lines) == 3
    assert "ape16-1-0-0" in lines
    assert (first.stdout, first.trace_hash) == (second.stdout, second.trace_hash)


@needs_stack
@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_a_script_starts_several_clients(tmp_path):
    (tmp_path / "page").write_text("x" * 100_000)
    serve = "import http.server as h, sys\nh.test(h.SimpleHTTPRequestHandler, h.ThreadingHTTPServer, port=80)"
    script = f"""
        cd {tmp_path}
        {PYTHON} -c '{serve}' >/dev/null 2>&1 &
        server=$!; sleep 0.5
        curl -s http://node0/page | wc -c
        for i in 1 2 3; do curl -s -o /dev/null -w '%{{http_code}} %{{time_total}}\\n' http://localhost/page &
            clients="$clients $!"
        done
        wait $clients; kill $server
        """
    first, second = (run(["sh", "-c", script], n=1) for _ in range(2))
    lines = first.stdout.decode().splitlines()
    assert (lines[0], [line.split()[0] for line in lines[1:]]) == ("100000", ["200"] * 3)
    assert (first.stdout, first.trace_hash) == (second.stdout, second.trace_hash)


@needs_stack
def test_all_ranks_speak_with_all(compile_native):
    program = compile_native("sockets/all_to_all.c")
    first, second = (run([program, "3000"], "ape128", n=16) for _ in range(2))
    assert first.stdout.count(b": 15 connections, 0 wrong, ") == 16
    assert (first.stdout, first.trace_hash) == (second.stdout, second.trace_hash)


@needs_stack
def test_names_have_mapped_addresses_where_asked():
    """PyTorch asks so, and tries again for half an hour if there are none. Linux without IPv6 gives them, too."""
    code = """
import socket
flags = socket.AI_V4MAPPED | socket.AI_ALL
print(socket.getaddrinfo("node1", 80, socket.AF_INET6, socket.SOCK_STREAM, 0, flags)[0][4][:2])
try:
    socket.getaddrinfo("node1", 80, socket.AF_INET6, socket.SOCK_STREAM)
except socket.gaierror as error:
    print(error.errno == socket.EAI_ADDRFAMILY)
try:
    open("/proc/net/if_inet6")
except FileNotFoundError:
    print("no addresses of the host")
"""
    expected = b"('::ffff:10.0.0.2', 80)\nTrue\nno addresses of the host\n"
    assert run([PYTHON, "-c", code, ":", "-n", "1", "true"], n=1).stdout == expected


def test_machines_and_builds_without_it_are_refused():
    with pytest.raises(InputError, match=r"\[software.ip\]|cargo"):
        package.run(["true"], n=1, machine="qpace", ip=True)


def test_without_the_option_sockets_are_the_hosts():
    program = "import socket\nprint(socket.create_server(('127.0.0.1', 0)).getsockname()[0])"
    assert package.run([PYTHON, "-c", program], n=1, capture=True).stdout == b"127.0.0.1\n"


def test_several_programs_in_one_run():
    command = ["sh", "-c", "echo one $APENET_RANK '$x'", ":", "-n", "2", "sh", "-c", "echo two $APENET_RANK"]
    assert package.run(command, n=1, capture=True).stdout.splitlines() == [b"one 0 $x", b"two 1", b"two 2"]
    with pytest.raises(InputError, match="-n RANKS PROGRAM"):
        package.run(["true", ":", "-n", "0", "true"], n=1)
    with pytest.raises(InputError, match="no-such-program"):
        package.run(["true", ":", "-n", "1", "no-such-program"], n=1)


def test_a_colon_alone_is_an_argument():
    assert package.run(["sh", "-c", ":"], n=1, capture=True).ok
    assert applications.split(["a", ":", "b"], 3) == [applications.Application(3, ("a", ":", "b"))]


def test_a_program_with_an_allocator_that_makes_system_calls(tmp_path):
    """The shim does not ask it for memory within one: redis-server, linked with jemalloc, never began."""
    source = tmp_path / "allocator.c"
    source.write_text(
        """
        #define _GNU_SOURCE
        #include <stddef.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        static char pool[1 << 26];
        static size_t used;
        static int begins, has_begun;
        void* malloc(size_t bytes) {
          if (begins) abort();
          if (!has_begun) {
            char byte;
            begins = has_begun = 1;
            const int file = (int)syscall(SYS_open, "/proc/self/stat", 0);
            syscall(SYS_read, file, &byte, 1);
            syscall(SYS_close, file);
            begins = 0;
          }
          void* const found = pool + used;
          used += (bytes + 31) / 16 * 16;
          *(size_t*)found = bytes;
          return (char*)found + 16;
        }
        void free(void* memory) { (void)memory; }
        void* calloc(size_t count, size_t bytes) { return malloc(count * bytes); }
        void* realloc(void* memory, size_t bytes) {
          void* const made = malloc(bytes);
          if (memory != NULL) {
            const size_t before = *(size_t*)((char*)memory - 16);
            memcpy(made, memory, before < bytes ? before : bytes);
          }
          return made;
        }
        __attribute__((constructor)) static void begin(void) { free(malloc(1)); }
        int main(void) { return 0; }
        """
    )
    program = tmp_path / "allocator"
    subprocess.run(["gcc", "-O1", "-fno-builtin", source, "-o", program], check=True)
    assert package.run([program], n=1, capture=True).ok


@needs_stack
def test_all_ways_to_ask_for_interfaces_say_the_same(compile_native):
    """Open MPI and Java ask by ioctl; the host's interfaces would have addresses that no node knows."""
    result = run([compile_native("sockets/interfaces.c")], n=1, machine="my-cluster")
    mtu = package.machine("my-cluster").description().base_units()["software.ip.mtu_bytes"]
    assert result.stdout.decode().splitlines() == [
        "2 interfaces",
        "lo 127.0.0.1 mask 255.0.0.0 broadcast 0.0.0.0 mtu 65536 up 1 loopback 1 ether 0 index 1 lo lo 1",
        f"eth0 10.0.0.1 mask 255.0.0.0 broadcast 10.255.255.255 mtu {mtu} up 1 loopback 0 ether 1 index 2 eth0 eth0 2",
        " wlan7: No such device change: Operation not permitted map: Operation not supported",
        "getifaddrs lo 127.0.0.1",
        "getifaddrs eth0 10.0.0.1",
    ]
