"""Network statistics over time of real processes: network.json and the trace."""

import json
from collections import Counter
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[3] / "bench" / "mpi" / "message_rate.c"
RANKS = 8


@pytest.fixture(scope="module")
def observed(apenet, build, tmp_path_factory):
    folder = tmp_path_factory.mktemp("observed")
    options = ("--out", folder / "run", "--trace", folder / "trace.json")
    done = apenet("run", "-n", str(RANKS), "--machine", "ape16", *options, "--", build(SOURCE), "halo", "5")
    assert done.returncode == 0, done.stderr
    names = {"run": "run/run.json", "network": "run/network.json", "trace": "trace.json"}
    return {name: json.loads((folder / path).read_text(encoding="utf-8")) for name, path in names.items()}


def test_links_over_time_add_up_to_their_totals(observed):
    network = observed["network"]
    totals = {link["name"]: link for link in observed["run"]["links"]}
    assert totals.keys() == {link["name"] for link in network["links"]}
    end_us = observed["run"]["virtual_time_us"]
    for link in network["links"]:
        starts = [network["bin_us"] * index for index in range(len(link["utilisation"]))]
        busy_us = sum(
            share * min(network["bin_us"], end_us - start)
            for share, start in zip(link["utilisation"], starts, strict=True)
        )
        assert busy_us == pytest.approx(totals[link["name"]]["busy_us"], rel=1e-3, abs=1e-3)
        assert 0 < link["mean_queue_bytes"] <= link["peak_queue_bytes"]


def test_latencies_by_hops(observed):
    by_hops = observed["network"]["latency_by_hops"]
    crossings = sum(entry["hops"] * entry["packets"] for entry in by_hops)
    assert crossings == sum(link["packets"] for link in observed["run"]["links"])
    for entry in by_hops:
        assert sum(entry["counts"]) == entry["packets"]
        assert entry["least_us"] <= entry["mean_us"] <= entry["most_us"]
        assert len(entry["counts"]) == len(entry["lower_bounds_us"])
    least = [entry["least_us"] for entry in by_hops]
    assert least == sorted(least)


def test_the_trace_holds_messages_packets_and_waits(observed):
    events = observed["trace"]["traceEvents"]
    kinds = Counter((event["ph"], event.get("name", "").split(" ")[0]) for event in events)
    assert kinds["X", "packet"] == sum(link["packets"] for link in observed["run"]["links"])
    assert sum(count for (phase, _), count in kinds.items() if phase == "b") == observed["run"]["messages"]
    waits = [event for event in events if event.get("name") == "wait"]
    waited_us = Counter()
    for event in waits:
        waited_us[event["tid"]] += event["dur"]
    for rank, result in enumerate(observed["run"]["ranks"]):
        assert waited_us[rank] == pytest.approx(result["waiting_us"], abs=0.01)
    end_us = observed["run"]["virtual_time_us"]
    assert all(0 <= event["ts"] <= end_us for event in events if "ts" in event)


def test_a_trace_that_cannot_be_written(apenet):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--trace", "/nowhere/t.json", "--", "python", "x.py")
    assert done.returncode == 2
    assert "/nowhere/t.json" in done.stderr
