"""Processor time of one pair of programs over TCP under Shadow and under APENet, alternately.

    .venv/bin/python bench/sockets/beside_shadow.py --shadow /path/to/shadow [--repeats 5]

Prints requests and bytes per CPU second: user and system time of all processes, less that of a run of one request.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parent
APENET = Path(sys.executable).parent / "apenet"
MACHINES = ("my-cluster", "ape16")
WORK = {"echo": (1, 20_000), "bulk": (1 << 26, 1 << 28)}
"""The amounts of which the difference counts."""
MIB = 1 << 20

SHADOW = """
general: {{stop_time: 600s, log_level: error, parallelism: 1}}
network:
  graph:
    type: gml
    inline: |
      graph [
        directed 0
        node [
          id 0
          host_bandwidth_down "10 Gbit"
          host_bandwidth_up "10 Gbit"
        ]
        edge [
          source 0
          target 0
          latency "10 us"
        ]
      ]
hosts:
  server: {{network_node_id: 0, processes: [{{path: {pair}, args: [server, "80"], start_time: 1s}}]}}
  client:
    network_node_id: 0
    processes: [{{path: {pair}, args: [client, server, "80", {how}, "{amount}"], start_time: 2s}}]
"""


def cpu_seconds(command: list[str | Path], folder: Path) -> float:
    """The processor time of a command and all processes that it has awaited."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, cwd=folder, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run_shadow(shadow: Path, pair: Path, how: str, amount: int, folder: Path) -> float:
    """One run in a folder of its own, which Shadow fills."""
    with tempfile.TemporaryDirectory(dir=folder) as own:
        (Path(own) / "pair.yaml").write_text(SHADOW.format(pair=pair, how=how, amount=amount))
        return cpu_seconds([shadow, "pair.yaml"], Path(own))


def run_apenet(machine: str, pair: Path, how: str, amount: int, folder: Path) -> float:
    """One run on a machine."""
    server = ["-n", "1", "--", pair, "server", "80"]
    client = [":", "-n", "1", pair, "client", "node0", "80", how, str(amount)]
    return cpu_seconds([APENET, "run", "--ip", "--compute", "none", "-m", machine, *server, *client], folder)


def main() -> None:
    """Reads the options, runs all and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shadow", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    seconds: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pair = folder / "pair"
        subprocess.run(["gcc", "-O2", HERE / "pair.c", "-o", pair], check=True)
        for _ in range(options.repeats):
            for how, amounts in WORK.items():
                for amount in amounts:
                    spent = run_shadow(options.shadow.resolve(), pair, how, amount, folder)
                    seconds["Shadow", how, amount].append(spent)
                    for machine in MACHINES:
                        seconds[machine, how, amount].append(run_apenet(machine, pair, how, amount, folder))
    for how, (few, many) in WORK.items():
        for who in ("Shadow", *MACHINES):
            least, most = (statistics.median(seconds[who, how, amount]) for amount in (few, many))
            rate = (many - few) / (most - least)
            shown = f"{rate:.0f} requests" if how == "echo" else f"{rate / MIB:.0f} MiB"
            sys.stdout.write(f"{how} {who}: {shown} per CPU second\n")


if __name__ == "__main__":
    main()
