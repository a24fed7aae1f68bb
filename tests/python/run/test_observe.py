"""Network statistics over time of real processes: network.json and the trace."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

import apenet as package

SOURCE = Path(__file__).resolve().parents[3] / "bench" / "mpi" / "message_rate.c"
RANKS = 8
MESSAGES = 2  # the group of tracks


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


def waits_of(events):
    return [event for event in events if event.get("cat") == "wait"]


def test_the_trace_holds_messages_packets_and_waits(observed):
    events = observed["trace"]["traceEvents"]
    packets = [event["args"]["packets"] for event in events if event.get("name") == "packets"]
    assert sum(packets) == sum(link["packets"] for link in observed["run"]["links"])
    busy_us = sum(event["args"]["busy us"] for event in events if event.get("name") == "packets")
    assert busy_us == pytest.approx(sum(link["busy_us"] for link in observed["run"]["links"]), abs=1e-3)
    messages = [event for event in events if event["ph"] == "X" and event["pid"] == MESSAGES]
    assert len(messages) == observed["run"]["messages"]
    assert sum(event["args"]["bytes"] for event in messages) == observed["run"]["bytes"]
    waited_us = Counter()
    for event in waits_of(events):
        waited_us[event["tid"]] += event["dur"]
    for rank, result in enumerate(observed["run"]["ranks"]):
        assert waited_us[rank] == pytest.approx(result["waiting_us"], abs=0.01)
    end_us = observed["run"]["virtual_time_us"]
    assert all(0 <= event["ts"] <= end_us for event in events if "ts" in event)


def test_messages_on_one_track_do_not_overlap(observed):
    ends = Counter()
    messages = [event for event in observed["trace"]["traceEvents"] if event["ph"] == "X" and event["pid"] == MESSAGES]
    for event in sorted(messages, key=lambda event: event["ts"]):
        assert event["ts"] >= ends[event["tid"]] - 1e-6
        ends[event["tid"]] = event["ts"] + event["dur"]


def test_waits_have_the_names_of_calls_and_arrows_from_the_messages_that_ended_them(apenet, build, tmp_path):
    """Rank 1 receives late what rank 0 sends, then both are in a barrier."""
    source = tmp_path / "late.c"
    source.write_text(
        "#include <mpi.h>\n"
        "int main(int c, char **v) { int r; char b[2000]; MPI_Init(&c, &v); MPI_Comm_rank(MPI_COMM_WORLD, &r);\n"
        "if (r == 0) MPI_Send(b, 2000, MPI_CHAR, 1, 0, MPI_COMM_WORLD);\n"
        "else MPI_Recv(b, 2000, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n"
        "MPI_Barrier(MPI_COMM_WORLD); return MPI_Finalize(); }\n"
    )
    program = build(source)
    assert apenet("run", "-n", "2", "--trace", tmp_path / "t.json", "--", program).returncode == 0
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    received = next(event for event in waits_of(events) if event["tid"] == 1)
    assert received["name"] == "MPI_Recv"
    assert received["args"]["ended by rank"] == 0
    assert received["args"]["bytes"] >= 2000
    assert {event["name"] for event in waits_of(events)} <= {"MPI_Recv", "MPI_Barrier", "MPI_Finalize"}
    arrow = next(event for event in events if event["ph"] == "f" and event["tid"] == 1)
    assert received["ts"] <= arrow["ts"] < received["ts"] + received["dur"]
    begin = next(event for event in events if event["ph"] == "s" and event["id"] == arrow["id"])
    message = next(event for event in events if event["ph"] == "X" and event["pid"] == MESSAGES)
    assert (begin["pid"], begin["tid"], begin["ts"]) == (MESSAGES, message["tid"], message["ts"])
    assert message["name"] == "send to 1"


def test_a_name_with_gz_makes_a_compressed_trace_of_the_same_events(apenet, build, observed, tmp_path):
    packed = []
    for _ in range(2):
        options = ("-n", str(RANKS), "--machine", "ape16", "--trace", tmp_path / "t.json.gz")
        assert apenet("run", *options, "--", build(SOURCE), "halo", "5").returncode == 0
        packed.append((tmp_path / "t.json.gz").read_bytes())
    assert packed[0] == packed[1]
    assert json.loads(gzip.decompress(packed[0])) == observed["trace"]
    (tmp_path / "own.gz").write_bytes(gzip.compress(b"mine"))
    refused = apenet("run", "-n", "2", "--trace", tmp_path / "own.gz", "--", build(SOURCE), "halo", "5")
    assert refused.returncode == 2
    assert "is not apenet's, and is kept" in refused.stderr
    assert gzip.decompress((tmp_path / "own.gz").read_bytes()) == b"mine"


def test_filters_choose_events(apenet, build, observed, tmp_path):
    filters = ("--trace-ranks", "1,3-4", "--trace-from", "20us", "--trace-to", "60us", "--trace-least", "100")
    options = ("-n", str(RANKS), "--machine", "ape16", "--trace", tmp_path / "t.json", *filters)
    assert apenet("run", *options, "--", build(SOURCE), "halo", "5").returncode == 0
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]

    def is_within(event):
        return event["ts"] + event["dur"] >= 20 and event["ts"] <= 60

    def shown(event):
        return event["pid"], event["ts"], event["dur"], event["name"]

    def is_wanted(event):
        if event["pid"] == MESSAGES:
            source, target = event["tid"] % RANKS, int(event["name"].split()[-1])
            return {source, target} & {1, 3, 4} and event["args"]["bytes"] >= 100
        return event["tid"] in (1, 3, 4)

    slices = [event for event in observed["trace"]["traceEvents"] if event["ph"] == "X" and event["pid"] <= MESSAGES]
    expected = {shown(event) for event in slices if is_within(event) and is_wanted(event)}
    found = {shown(event) for event in events if event["ph"] == "X" and event["pid"] <= MESSAGES}
    assert found == expected
    assert {pid for pid, *_ in found} == {1, MESSAGES}
    assert 0 < len(found) < len(slices) / 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--trace-ranks", "0"], 'trace_ranks = "0": expected a trace'),
        (["--trace", "t.json", "--trace-ranks", "2"], "trace_ranks = 2: expected ranks of the run, from 0 to 1"),
        (["--trace", "t.json", "--trace-ranks", "3-1"], "expected ranks such as 0-3,8"),
        (["--trace", "t.json", "--trace-ranks", ""], "expected ranks such as 0-3,8"),
        (["--trace", "t.json", "--trace-from", "soon"], "trace_from"),
        (["--trace", "t.json", "--trace-from", "2us", "--trace-to", "2us"], "a virtual time after trace_from"),
        (["--trace", "t.json", "--trace-least", "-1"], "trace_least"),
        (["--trace", "t.json.zst"], "ends in .gz"),
    ],
)
def test_filters_that_are_none_are_refused(apenet, build, tmp_path, options, said):
    done = apenet("run", "-n", "2", *options, "--", build(SOURCE), "halo", "5", cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_replays_have_the_filters_too(tmp_path):
    trace = tmp_path / "r.goal"
    trace.write_text("num_ranks 2\nrank 0 {\nl1: send 64b to 1 tag 0\n}\nrank 1 {\nl1: recv 64b from 0 tag 0\n}\n")
    package.replay(trace, trace_out=tmp_path / "all.json")
    package.replay(trace, trace_out=tmp_path / "some.json", trace_ranks=[0], trace_least=4096, trace_to=1.0)
    count = {name: (tmp_path / name).read_text().count('"ph":"X"') for name in ("all.json", "some.json")}
    assert count["all.json"] > count["some.json"]


def test_a_trace_that_cannot_be_written(apenet):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--trace", "/nowhere/t.json", "--", "python", "x.py")
    assert done.returncode == 2
    assert "/nowhere/t.json" in done.stderr
