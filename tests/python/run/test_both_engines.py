"""--engine both: the packet engine's run, and the flit engine's time beside it."""

import sys
from pathlib import Path

import pytest

import apenet as package
from apenet.base.errors import InputError

PROGRAM = [sys.executable, Path(__file__).parents[3] / "examples" / "02_jacobi" / "jacobi.py"]


@pytest.fixture(scope="module")
def results():
    return {
        engine: package.run(PROGRAM, n=16, machine="ape16", engine=engine, capture=True)
        for engine in ("packet", "flit", "both")
    }


def test_both_are_the_packet_engines_run_and_the_flit_engines_time(results):
    both, packet, flit = (results[engine] for engine in ("both", "packet", "flit"))
    assert both.trace_hash == packet.trace_hash
    assert both.virtual_time_us == packet.virtual_time_us
    assert both.flit_virtual_time_us == flit.virtual_time_us
    assert both.to_json()["flit_virtual_time_us"] == flit.virtual_time_us
    assert "flit_virtual_time_us" not in packet.to_json()
    assert both.stdout == packet.stdout


def test_a_warning_that_was_checked_is_gone(results):
    assert any("--engine flit" in warning for warning in results["packet"].warnings)
    assert not any("--engine flit" in warning for warning in results["both"].warnings)


def test_the_report_says_the_difference(apenet, results, tmp_path):
    done = apenet("run", "-n", "16", "--engine", "both", "--out", tmp_path / "run", "--", *PROGRAM)
    percent = 100 * (results["flit"].virtual_time_us / results["packet"].virtual_time_us - 1)
    (line,) = (line for line in done.stderr.splitlines() if "flit engine" in line)
    assert line.endswith(f" of virtual time, {percent:+.1f} %")
    assert done.stdout.count("points on") == 1
    again = apenet("run", "-n", "16", "--engine", "both", "--out", tmp_path / "again", "--", *PROGRAM)
    assert again.returncode == 0
    assert (tmp_path / "run" / "run.json").read_bytes() == (tmp_path / "again" / "run.json").read_bytes()


def test_a_replay_with_both(tmp_path):
    trace = tmp_path / "t.goal"
    package.run(PROGRAM, n=16, machine="ape16", record=trace, capture=True)
    both, flit = (package.replay(trace, machine="ape16", engine=engine) for engine in ("both", "flit"))
    assert both.flit_virtual_time_us == flit.virtual_time_us
    assert both.to_json()["flit_virtual_time_us"] == flit.virtual_time_us


def test_what_cannot_be_compared_is_refused_before_anything_runs(tmp_path):
    begun = tmp_path / "begun"
    program = ["touch", begun]
    for options in ({"machine": "ideal"}, {"compute": f"record:{tmp_path / 'p.json'}"}, {"engine": "all"}):
        with pytest.raises((InputError, package.MachineError), match="engine = "):
            package.run(program, n=1, **{"engine": "both", "capture": True, **options})
    assert not begun.exists()


def test_a_failed_program_does_not_run_again(tmp_path):
    count = tmp_path / "count"
    program = ["sh", "-c", f"echo once >> {count}; exit 3"]
    with pytest.raises(package.RunError):
        package.run(program, n=1, machine="ape16", engine="both", capture=True)
    assert count.read_text() == "once\n"
