"""Runs that a limit, a signal or a failing rank stops keep a recording, and are explained up to the stop."""

import json
import signal
from pathlib import Path

import pytest

import apenet as package

PROGRAM = Path(__file__).with_name("stopped_programs.c")
ROUNDS = 100


@pytest.fixture(scope="module")
def program(build):
    return build(PROGRAM)


def begun(content):
    return {row["call"]: row["operations"] for row in content["calls"] if row["operations"]}


@pytest.mark.parametrize(
    ("way", "outcome", "verdict"),
    [
        ("killed", "failed", "The run did not complete: the program failed. Up to there: "),
        ("exits", "failed", "The run did not complete: the program failed. Up to there: "),
        ("aborts", "aborted", "The run did not complete: the program called MPI_Abort. Up to there: "),
        ("deadlock", "deadlock", "Deadlock: ranks 0 \u2192 1 \u2192 0 wait for each other. Up to there: "),
    ],
)
def test_a_rank_that_stops_leaves_all_that_it_had_begun(program, tmp_path, way, outcome, verdict):
    """Rank 1 ends behind its hundredth round; rank 0 has begun one more, and two in the deadlock."""
    out = tmp_path / "run"
    options = {"record": out / "recording.goal", "capture": True, "check": False}
    result = package.run([program, way], n=2, out=out, stall_timeout=1.0, **options)
    content = package.explain(out)
    assert content["outcome"] == outcome == result.outcome
    assert content["verdict"]["text"].startswith(verdict)
    counts = begun(content)
    assert 2 * ROUNDS <= counts["MPI_Send"] <= 2 * ROUNDS + 2
    # A receive that matched no message is not in the recording.
    assert 2 * ROUNDS <= counts["MPI_Recv"] <= 2 * ROUNDS + 2
    assert content["replay"]["time_us"] == pytest.approx(content["time_us"], rel=0.05)
    assert any("the run did not complete" in one for one in content["warnings"])
    assert package.report(out).exists()


def test_messages_on_their_way_at_an_early_stop_are_carried_to_their_end(program, tmp_path):
    out = tmp_path / "run"
    options = {"capture": True, "check": False, "limit_virtual": "1ns"}
    package.run([program], n=2, out=out, record=out / "recording.goal", **options)
    content = package.explain(out)
    assert content["replay"]["time_us"] > 1.05 * content["time_us"]
    assert content["verdict"]["text"].startswith(
        "The run did not complete: it reached its limit of time. What had begun, carried to its end: "
    )


def test_a_limit_of_virtual_time(program, tmp_path):
    out = tmp_path / "run"
    result = package.run(
        [program], n=2, out=out, record=out / "recording.goal", capture=True, check=False, limit_virtual="1ms"
    )
    assert result.outcome == "limit"
    content = package.explain(out)
    assert content["verdict"]["text"].startswith(
        "The run did not complete: it reached its limit of time. Up to there: "
    )
    assert content["replay"]["time_us"] == pytest.approx(1000, rel=0.05)


def test_an_interrupted_run(program, tmp_path, start_apenet):
    running = start_apenet(
        "run", "-n", "2", "--out", "run", "--record", "run/recording.goal", "--", program, cwd=tmp_path
    )
    out = tmp_path / "run"
    assert running.read_lines(1) == ["100 rounds\n"]
    running.process.send_signal(signal.SIGINT)
    assert running.finish().returncode == 130
    content = package.explain(out)
    assert content["outcome"] == "interrupted"
    assert json.loads((out / "run.json").read_text())["outcome"] == "interrupted"
    assert (out / "recording.goal").read_text().splitlines()[0].endswith("stopped (interrupted)")


def test_a_report_of_a_run_that_was_stopped(apenet, program, tmp_path):
    done = apenet("run", "-n", "2", "--limit-virtual", "1ms", "--report", "page.html", "--", program, cwd=tmp_path)
    assert "it reached its limit of time. Up to there: " in done.stderr
    assert (tmp_path / "page.html").exists()
