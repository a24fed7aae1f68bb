"""Servers and clients that the host has (iperf3, redis, memcached, nginx, curl, nc), unmodified on simulated nodes.

Each runs twice and gives the same bytes; what the host lacks is skipped. Only with --whole.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hosts import needs_stack

PYTHON = shutil.which("python3", path="/usr/bin") or sys.executable
STOP = "nc -l 9999 > /dev/null"
"""A script with a server waits for this connection, which says that the clients have ended."""
SAY_STOP = "nc -N node0 9999 < /dev/null"
NGINX = """
worker_processes 2; daemon off; pid nginx.pid; error_log error.log;
events { worker_connections 256; }
http {
  access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; uwsgi_temp_path t4;
  scgi_temp_path t5;
  server { listen 8080; root www; }
}
"""
MEMCACHED_CLIENT = """
import socket, time
time.sleep(0.5)
connection = socket.create_connection(("node0", 11211))
answers = connection.makefile("rb")
for number in range(200):
    value = str(number) * 20
    connection.sendall(f"set k{number} 0 0 {len(value)}\\r\\n{value}\\r\\nget k{number}\\r\\n".encode())
    assert [answers.readline() for _ in range(4)][2].decode() == value + "\\r\\n"
print(f"{time.perf_counter():.6f} s")
connection.sendall(b"shutdown\\r\\n")
"""


def served(command, signal="TERM"):
    return ["sh", "-c", f"{command} & server=$!; {STOP}; kill -{signal} $server; wait $server; echo ended"]


def asked(command, pause_s=0.2):
    return ["sh", "-c", f"sleep {pause_s}; {command}; {SAY_STOP}"]


def iperf3(*options):
    return ["iperf3", "-s", "-1"], ["iperf3", "-c", "node0", *options], ("iperf3",)


CASES = {
    "iperf3": iperf3("-n", "16M"),
    "iperf3-streams": iperf3("-P", "8", "-n", "16M"),
    "iperf3-both-ways": iperf3("--bidir", "-n", "16M"),
    "iperf3-datagrams": iperf3("-u", "-b", "1G", "-n", "8M"),
    "redis": (
        ["redis-server", "--save", "", "--protected-mode", "no", "--dir", ".", "--logfile", "redis.log"],
        [
            "sh",
            "-c",
            "sleep 0.2; redis-benchmark -h node0 -c 16 -n 3000 -t set,get --csv; redis-cli -h node0 shutdown nosave",
        ],
        ("redis-server", "redis-benchmark"),
    ),
    "memcached": (
        ["memcached", "-u", "root", "-A", "-p", "11211", "-U", "0"],
        [PYTHON, "-c", MEMCACHED_CLIENT],
        ("memcached",),
    ),
    "nginx": (
        served("nginx -p . -c nginx.conf", "QUIT"),
        asked("ab -q -n 100 -c 4 http://node0:8080/small.txt; curl -s http://node0:8080/big.bin | md5sum"),
        ("nginx", "ab", "curl", "nc"),
    ),
    "http.server": (
        served(f"{PYTHON} -m http.server 8000 --bind 0.0.0.0"),
        asked("for i in 1 2 3; do curl -s -w '%{time_total}\\n' -o got$i http://node0:8000/www/big.bin; done", 3),
        ("curl", "nc"),
    ),
    "nc": (
        ["sh", "-c", "nc -l 7000 | md5sum"],
        ["sh", "-c", "sleep 0.1; nc -N node0 7000 < www/big.bin"],
        ("nc",),
    ),
}


@needs_stack
@pytest.mark.parametrize("machine", ["ape16", "my-cluster"])
@pytest.mark.parametrize("case", CASES)
def test_a_server_and_its_clients_repeat(tmp_path, case, machine):
    server, client, needed = CASES[case]
    if missing := [name for name in needed if shutil.which(name) is None]:
        pytest.skip(f"the host has no {missing[0]}")
    results = []
    for number in range(2):
        folder = tmp_path / f"run{number}" / "same"
        (folder / "www").mkdir(parents=True)
        (folder / "www" / "small.txt").write_text("15 bytes of it\n")
        (folder / "www" / "big.bin").write_bytes(bytes(range(256)) * 1000)
        (folder / "nginx.conf").write_text(NGINX)
        command = ["run", "--ip", "-m", machine, "--compute", "none", "--out", "out", "-n", "1", "--", *server]
        done = subprocess.run(
            [Path(sys.executable).with_name("apenet"), *command, ":", "-n", "1", *client],
            cwd=folder,
            check=False,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        run = json.loads((folder / "out" / "run.json").read_text())
        results.append((done.stdout, run["virtual_time_us"], run["messages"]))
    assert results[0] == results[1]
