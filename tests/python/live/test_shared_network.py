"""Steps that share a network while they run: what they did is exactly what their jobs file does."""

import itertools
import os
import shutil
import signal
import time
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

import apenet
from apenet.base.errors import HostError, InputError
from apenet.cluster import run_file
from apenet.live import messages, records, starting
from apenet.live.simulator import Simulator
from apenet.slurm import history

ENDLESS = 10**8
LEFT, RIGHT = [0, 2, 5, 7], [1, 3, 4, 6]


def replayed(network, out):
    """The jobs of the jobs file, by the numbers of Slurm's jobs."""
    history.write_jobs(network.cluster, (), out)
    result = run_file(out / "jobs.toml", matrix=False)
    return {job.name.partition("-")[0][1:]: job for job in result.jobs}


def require_same(record, job):
    """The end of each rank, to the picosecond, is that of the step."""
    assert [round(end_us * 1e6) for end_us in job.finish_us] == [record.start_ps + end for end in record.ended_ps]


def processes_in(folder: Path) -> list[str]:
    """Processes of steps: their current folder is this one, or deleted."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str((process / "cwd").readlink()).startswith(str(folder)):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


@pytest.mark.parametrize("network", ["ape16", "apenetplus-v5", "extoll-64"], indirect=True)
def test_a_step_joins_another_one_and_the_jobs_file_repeats_both(network, chatter, tmp_path):
    """The first is there before the second, and is cancelled when the second has ended: whatever the host does."""
    first = network.start("7", LEFT, chatter, ENDLESS, 2048)
    assert first.stdout.readline().startswith("round 0: ")
    second = network.start("8", RIGHT, chatter, 100, 3000)
    said, words = second.communicate(timeout=100)
    assert second.returncode == 0, words
    assert "of the shared network" in words
    first.send_signal(signal.SIGTERM)
    _, words = first.communicate(timeout=100)
    assert first.returncode == 128 + signal.SIGTERM
    assert "interrupted: cancelled" in words
    left, right = network.record("7"), network.record("8")
    assert (left.start_ps, left.outcome, right.outcome) == (0, "limit", "completed")
    assert 0 < right.start_ps < left.limit_ps
    jobs = replayed(network, tmp_path / "steps")
    require_same(left, jobs["7"])
    require_same(right, jobs["8"])
    assert jobs["8"].stdout.decode() == said
    assert jobs["8"].shared["j7-0"] != ()
    assert jobs["8"].outcome == "completed"


def test_steps_on_the_same_nodes_run_one_after_the_other(network, chatter, tmp_path):
    steps = {str(job): network.start(str(job), [*LEFT, 9 + job], chatter, 40 * job, 64) for job in (1, 2, 3)}
    for job, step in steps.items():
        assert step.communicate(timeout=100)[0].count("round") == 2 * int(job)
    done = sorted((network.record(job) for job in steps), key=lambda record: record.start_ps)
    for before, after in itertools.pairwise(done):
        assert after.start_ps >= before.start_ps + max(before.ended_ps)
    jobs = replayed(network, tmp_path / "steps")
    assert list(jobs) == [record.job for record in done]
    for record in done:
        require_same(record, jobs[record.job])


def test_a_step_that_is_killed_is_cancelled(network, chatter, tmp_path):
    """As by a batch system when the script has ended: its ranks end in virtual time, and none is left."""
    step = network.start("1", LEFT, chatter, ENDLESS, 64)
    assert step.stdout.readline().startswith("round 0: ")
    step.kill()
    step.communicate(timeout=100)
    record = network.record("1")
    assert (record.outcome, record.is_cut) == ("limit", False)
    require_same(record, replayed(network, tmp_path / "steps")["1"])
    while processes_in(network.folder.parent):
        time.sleep(0.1)


def test_the_end_of_the_simulator_ends_all_steps(network, chatter):
    step = network.start("1", LEFT, chatter, ENDLESS, 64)
    assert step.stdout.readline().startswith("round 0: ")
    network.end()
    _, words = step.communicate(timeout=100)
    assert step.returncode == 1
    assert "the simulator of the shared network in" in words
    while processes_in(network.folder.parent):
        time.sleep(0.1)
    step = network.start("1", LEFT, chatter, 1, 64)
    assert "has ended: end the cluster, and start another" in step.communicate(timeout=100)[1]


def test_the_simulator_ends_with_its_folder(network):
    (network.folder / messages.SOCKET).unlink()
    shutil.rmtree(network.folder)
    assert os.waitpid(network.simulator, 0)[1] == 0
    network.simulator = 0


def test_a_program_without_network_is_no_job_of_the_jobs_file(network, tmp_path):
    step = network.start("1", [3, 4], "sh", "-c", "echo here; exit 3")
    assert step.communicate(timeout=100)[0] == "here\nhere\n"
    assert step.returncode == 3
    assert network.record("1").start_ps is None
    with pytest.raises(InputError, match="steps that have used the network"):
        history.write_jobs(network.cluster, (), tmp_path / "steps")
    with pytest.raises(InputError, match=r'step = "2": expected one of 1.0'):
        history.write_jobs(network.cluster, ("2",), tmp_path / "steps")


@pytest.mark.parametrize(
    ("nodes", "program", "said"),
    [
        ([3, 3], "true", "at most 1 on a node"),
        ([3, 16], "true", "ape16"),
        ([3], "no-such-program", "a program in PATH"),
    ],
)
def test_a_step_that_cannot_be_is_refused(network, nodes, program, said):
    step = network.start("1", nodes, program)
    assert said in step.communicate(timeout=100)[1]
    assert step.returncode == 1
    assert records.read(network.folder) == []


def test_who_is_no_step_is_refused(network):
    caller = messages.connect(network.folder)
    caller.tell({"step": {}})
    assert "no step of this version" in caller.hear()[0]["refused"]
    with pytest.raises(messages.ClosedError):
        caller.hear()


def test_a_second_simulator_is_refused(network):
    with pytest.raises(HostError, match="it has a simulator"):
        Simulator(network.folder, apenet.machine("ape16"), 1)


def test_a_machine_that_cannot_be_shared_is_refused(tmp_path):
    with pytest.raises(InputError, match="with a number of nodes"):
        starting.require_shared(apenet.machine("ideal"), 1)
    with pytest.raises(InputError, match=r"card\.ports"):
        starting.require_shared(apenet.machine("ape128"), 5)
    with pytest.raises(HostError, match="does not start"):
        starting.start_simulator(tmp_path)  # which has no cluster


def test_the_jobs_file_has_what_it_takes_to_repeat_a_step(network, tmp_path):
    record = records.StepRecord(
        job="4",
        step=0,
        nodes_of_ranks=[0, 1],
        partition="2x1x1@0,0,0",
        ranks=2,
        ranks_per_node=1,
        command=["ring", "a b"],
        folder="/data",
        environment={"SIZE": "3"},
        start_ps=1_000_000_000_001,
        ended_ps=[5, 6_000_000],
        outcome="completed",
        exit_status=0,
        messages=1,
        trace_hash="0",
    )
    cut = replace(record, step=1, partition="", start_ps=7, is_cut=True)
    limited = replace(record, job="5", start_ps=8, limit_ps=2, environment={})
    for one in (record, cut, limited):
        records.keep(network.folder, one)
    assert history.write_jobs(network.cluster, ("4",), tmp_path / "some") == ["4.1", "4.0"]
    text = (tmp_path / "some" / "jobs.toml").read_text()
    assert "# Not all steps" in text
    assert "to whose end they run here: 4.1." in text
    jobs = tomllib.loads(text)
    assert jobs["joins"] is True
    assert jobs["job"]["j4-0"] == {
        "command": ["ring", "a b"],
        "directory": "/data",
        "ranks": 2,
        "ranks_per_node": 1,
        "partition": "2x1x1@0,0,0",
        "start": "1000000.000001us",
        "environment": {"SIZE": "3"},
    }
    assert jobs["job"]["j4-1"]["map"] == [0, 1]
    assert jobs["job"]["j4-1"]["limit_virtual"] == "6.000000us"
    history.write_jobs(network.cluster, (), tmp_path / "all")
    assert tomllib.loads((tmp_path / "all" / "jobs.toml").read_text())["job"]["j5-0"]["limit_virtual"] == "0.000002us"


def test_a_step_has_the_variables_of_its_script_and_not_those_of_the_batch_system(network, monkeypatch):
    monkeypatch.setenv("SIZE", "3")
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    own = records.own_environment(network.folder)
    assert own["SIZE"] == "3"
    assert "SLURM_JOB_ID" not in own
