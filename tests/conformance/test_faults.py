"""Real MPI programs on a machine with dying links and nodes: no byte is lost or out of order, and no run hangs."""

import json
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("c") / "ordered_bytes.c"
SOON = "network.reconfiguration_us=20"


@pytest.fixture
def run(apenet, build, tmp_path):
    program = build(PROGRAM)

    def run_with(*options, ranks=16):
        out = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        done = apenet("run", "-n", str(ranks), "--set", SOON, "--out", out, *options, "--", program)
        return done, json.loads((out / "run.json").read_text()), out

    return run_with


@pytest.mark.parametrize("engine", ["packet", "flit"])
def test_a_program_survives_links_and_nodes_that_die_and_revive(run, engine):
    _, whole, _ = run("--engine", engine)
    span = whole["virtual_time_us"]
    faults = [
        f"link (0,0,0)+x down @{span * 0.1:.1f}us up @{span * 0.3:.1f}us",
        f"link (1,0,0)+y down @{span * 0.2:.1f}us",
        f"node (2,1,1) down @{span * 0.5:.1f}us up @{span * 0.6:.1f}us",
    ]
    options = ["--engine", engine, *(option for fault in faults for option in ("--fault", fault))]
    done, faulty, out = run(*options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines().count("passed") == 1
    assert faulty["virtual_time_us"] != span  # longer ways cost time, but may also relieve a busy link
    assert faulty["faults"]["events"] == 5
    assert faulty["faults"]["reconfigurations"] == 5
    assert faulty["faults"]["packets_taken_back"] > 0
    assert "fault events: 5, reconfigurations: 5," in done.stderr
    assert json.loads((out / "command.json").read_text())["faults"] == faults
    assert whole["faults"] == dict.fromkeys(faulty["faults"], 0)
    # Packets that were taken back are no longer in the buffers at the links' ends.
    links = json.loads((out / "network.json").read_text())["links"]
    assert 0 < max(link["peak_queue_bytes"] for link in links) <= 2 * 4096
    _, again, _ = run(*options)
    assert again == faulty


def test_faults_after_the_end_change_nothing(run):
    _, whole, _ = run(ranks=4)
    done, later, _ = run("--fault", "link (0,0,0)+x down @5s up @6s", ranks=4)
    assert done.returncode == 0, done.stderr
    ignored = "2 of 2 fault events are scheduled after the end of the run and were ignored"
    assert sorted(later.pop("warnings")) == sorted([*whole.pop("warnings"), ignored])
    assert later == whole


def test_a_program_survives_bit_errors(run):
    _, whole, _ = run()
    done, faulty, _ = run("--set", "network.link.bit_error_rate=2e-6")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines().count("passed") == 1
    assert faulty["virtual_time_us"] > whole["virtual_time_us"]
    corrupted = faulty["faults"]["corrupted_packets"]
    assert corrupted > 0
    assert corrupted == sum(link["corrupted_packets"] for link in faulty["links"])
    assert f"corrupted packets: {corrupted}," in done.stderr
    _, again, _ = run("--set", "network.link.bit_error_rate=2e-6")
    assert again == faulty


def test_a_partition_is_reported(run):
    done, report, _ = run("--fault", "node (3,1,1) down @50us")
    assert done.returncode == 1
    assert (report["outcome"], report["exit_status"]) == ("failed", 1)
    assert report["message"].startswith("the network is partitioned: at ")
    assert "node 15 at (3,1,1)" in report["message"]
    assert 'there has been no path since 50 us, fault "node (3,1,1) down @50us"' in report["message"]
    assert "cannot reach" in done.stderr
    # Ranks have run ahead of the fault, and wait.
    assert max(rank["virtual_time_us"] for rank in report["ranks"]) == report["ended_at_us"] > 50
    assert "at 70 us" in report["message"]
    assert report["message"].endswith("each rank's clock shows when it began to wait, before that or after")
