"""A setting without effect on any time of a test at the card is named, and no other."""

import json

import pytest


@pytest.mark.parametrize(
    ("arguments", "setting", "is_ineffective"),
    [
        (["pingpong", "-m", "ape16"], "bus.clock_mhz=66", False),
        (["pingpong", "-m", "ape16"], "software.mpi.send_us=9", True),  # the test is at the card
        (["pingpong", "-m", "ape16"], "router.buffer_bytes=65536", True),  # used, but nothing waits for room
        (["pingpong", "-m", "pax"], "network.link.clock_mhz=125", True),  # both nodes are on one switch
        (["pingpong", "-m", "pax", "--nodes", "0,143"], "network.link.clock_mhz=125", False),
        (["halo", "-m", "ape16", "-n", "8"], "bus.clock_mhz=66", False),
        (["halo", "-m", "ape16", "-n", "8"], "network.link.latency_ns=500", True),  # the bus has more to do meanwhile
        (["pingpong", "-m", "ape16", "--layer", "mpi"], "router.buffer_bytes=65536", False),  # nothing is claimed
    ],
)
def test_a_setting_is_named_if_the_times_without_it_are_the_same(apenet, arguments, setting, is_ineffective):
    command = ["bench", *arguments, "--sizes", "4096", "--json"]
    changed = json.loads(apenet(*command, "--set", setting).stdout)
    said = f"--set {setting} had no effect on any time of this test"
    assert (said in changed.get("warnings", [])) == is_ineffective
    if "--layer" not in arguments:
        assert (json.loads(apenet(*command).stdout)["points"] == changed["points"]) == is_ineffective


def test_the_trace_of_a_workload_is_that_of_the_machine_with_its_settings(apenet, tmp_path):
    trace = tmp_path / "t.goal"
    settings = ["--set", "network.dims=[2,2,2]", "--set", "router.buffer_bytes=65536"]
    done = apenet("bench", "halo", "-m", "ape16", "--sizes", "64", "--goal", trace, *settings)
    assert done.returncode == 0, done.stderr
    assert "num_ranks 8" in trace.read_text()
    assert "--set router.buffer_bytes=65536 had no effect on any time" in done.stdout
    assert "network.dims" not in done.stdout.partition("warning")[2]
