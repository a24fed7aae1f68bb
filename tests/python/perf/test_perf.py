"""apenet perf: its output, and that it does the requested work. Times depend on the host and are not tested."""

import itertools
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from apenet import perf
from apenet.base.errors import InputError
from apenet.perf import processes
from apenet.perf.request import PerfRequest

SMALL = "network.dims=[3,2,1]"
NODES = 6
NEIGHBOURS = 4  # two dimensions of more than one node, two cables each
COMMON = {
    "name",
    "figure",
    "unit",
    "budget",
    "memory_mib",
    "budget_memory_mib",
    "cpu_seconds",
    "machine",
    "settings",
    "version",
    "nodes",
    "messages",
}


def measured(apenet, name, *arguments):
    done = apenet("perf", name, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    result = json.loads(line)
    assert set(result) >= COMMON
    assert result["name"] == name
    assert 1 < result["memory_mib"] < 2000
    return result


def test_packets_are_counted(apenet):
    result = measured(apenet, "packet", "--set", SMALL, "--repeat", "200000")
    assert result["nodes"] == NODES
    assert result["accepted"] == pytest.approx(result["load"], rel=0.1)
    assert result["load"] == 0.3
    assert result["figure"] == pytest.approx(result["hops"] / result["cpu_seconds"])
    # 2/3 links in the ring of three on average, 1/2 in that of two.
    assert result["hops"] == pytest.approx(7 / 6 * result["packets"], rel=0.1)
    assert result["settings"][-1] == SMALL


def test_flits_are_counted(apenet):
    result = measured(apenet, "flit", "--set", "network.dims=[4,2,1]", "--repeat", "500")
    assert result["nodes"] == 8
    assert result["packets"] == pytest.approx(0.3 * 8 * 500, rel=0.1)
    assert 1.2 * result["packets"] < result["hops"] < 2 * result["packets"]  # 1.5 links on average
    assert result["figure"] == pytest.approx(result["hops"] / result["cpu_seconds"])


def test_flits_load_a_long_ring_below_saturation(apenet):
    """At 30 % of the links' rate a ring of 32 nodes would be saturated: it carries a quarter of it."""
    result = measured(apenet, "flit", "--set", "network.dims=[32,2,1]", "--repeat", "2000")
    assert result["load"] == pytest.approx(0.075)
    assert result["accepted"] == pytest.approx(0.075, rel=0.1)
    assert result["packet_latency_cycles"] < 2 * 5 * 9.5  # 5 cycles a router; 8.5 links on average


def test_the_median_run_counts(apenet):
    result = measured(apenet, "packet", "--set", SMALL, "--repeat", "9000")
    assert result["runs"] == 5
    assert result["least_figure"] <= result["figure"] <= result["most_figure"]


def test_the_report_says_what_it_counts(apenet):
    said = apenet("perf", "packet", "--set", SMALL, "--repeat", "9000").stdout
    assert "packets that cross a link" in said
    assert "median of 5 runs" in said


def test_halo_messages_are_counted(apenet):
    result = measured(apenet, "halo", "--set", SMALL, "--repeat", "3")
    assert result["messages"] == 3 * NODES * NEIGHBOURS
    assert result["figure"] == pytest.approx(result["messages"] / result["cpu_seconds"])
    assert result["packets"] == result["hops"] == result["messages"]  # one packet each, to a neighbour


def test_packets_of_a_message_are_counted(apenet):
    result = measured(apenet, "halo", "--set", SMALL, "--set", "card.max_payload_bytes=1024", "--repeat", "1")
    assert result["packets"] == 4 * result["messages"]


def test_scale_compares_with_a_small_machine(apenet):
    result = measured(apenet, "scale", "--set", SMALL)
    assert result["messages"] == NODES * NEIGHBOURS
    assert result["us_per_node"] / result["us_per_node_8x8x8"] == pytest.approx(result["cost_ratio"])


def test_real_processes_are_counted(apenet):
    result = measured(apenet, "mpi", "--set", SMALL, "--repeat", "400")
    assert result["nodes"] == NODES
    assert result["messages"] == 400 * 6 * NODES
    assert result["pingpong_messages"] == 2 * 400 * 250
    assert result["figure"] > 0
    assert result["pingpong_messages_per_cpu_second"] > 0


def test_compiling_the_program_is_not_start_up(monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(processes, "compiled", lambda _: [next(clock) for _ in range(1000)])
    monkeypatch.setattr(processes, "_cpu_seconds", lambda _: next(clock))
    monkeypatch.setattr(processes, "run", lambda *_, **_options: SimpleNamespace(wall_time_s=3))
    assert processes._run(PerfRequest("ideal", (), 1).read_machine(), "halo", 2, 1) == processes.Cost(3, 2, 2)


def test_a_rate_that_start_up_hides_is_not_printed(monkeypatch):
    costs = iter([processes.Cost(1, 1, 1), processes.Cost(1, 0.9, 1), processes.Cost(1, 1, 1), processes.Cost(2, 9, 9)])
    monkeypatch.setattr(processes, "_run", lambda *_: next(costs))
    with pytest.raises(InputError, match="repeat = 1: expected more"):
        processes.measure_mpi(PerfRequest("ape128", (SMALL,), 1))


@pytest.mark.parametrize("repeat", [0, -1, 10**7 + 1, 2**32, 10**30])
def test_absurd_numbers_of_repetitions_are_bad_input(apenet, repeat):
    done = apenet("perf", "flit", "--repeat", str(repeat))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"apenet: repeat = {repeat}: expected a whole number from 1 to 10000000\n"


def test_the_simulated_work_repeats_exactly():
    counted = ("nodes", "messages", "packets", "hops", "cycles", "packet_latency_cycles")
    first, second = (perf.measure("packet", settings=[SMALL], repeat=9000).details for _ in range(2))
    assert [first[key] for key in counted] == [second[key] for key in counted]


def test_help_names_every_benchmark(apenet):
    text = apenet("perf", "--help").stdout
    for name in perf.BENCHMARKS:
        assert name in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("speed",), 'name = "speed": expected one of flit, packet, halo, scale, mpi'),
        (("halo", "--repeat", "0"), "repeat = 0: expected"),
        (("halo", "--set", "network.dims=[0]"), "network.dims"),
        (("packet", "--set", "router.buffer_bytes=64"), "router.buffer_bytes"),
    ],
)
def test_bad_input_is_named(apenet, arguments, said):
    done = apenet("perf", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_memory_of_ranks_counts():
    """They are not children of this process, but of the supervisor that starts them."""
    inner = "import subprocess, sys; subprocess.run(['sleep', '1'], check=True)"
    with processes.MemorySampler() as memory:
        alone = processes.MemorySampler._share_bytes(os.getpid())
        with subprocess.Popen([sys.executable, "-c", inner]) as started:
            seen = set()
            while started.poll() is None:
                for child in processes.MemorySampler._children(started.pid):
                    seen.add(child)
    assert len(seen) == 1
    assert memory.peak_bytes > alone
