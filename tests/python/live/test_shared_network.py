"""Steps that share a network while they run: what they did is exactly what their jobs file does."""

import itertools
import os
import resource
import shutil
import signal
import tomllib
from dataclasses import asdict, replace
from pathlib import Path

import live_steps
import pytest

import apenet
from apenet.base.errors import HostError, InputError
from apenet.cluster import run_file
from apenet.cluster.jobs_file import too_large
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


@pytest.mark.parametrize("network", ["ape16", "apenetplus-v5", "extoll-64"], indirect=True)
def test_a_step_joins_another_one_and_the_jobs_file_repeats_both(network, chatter, tmp_path):
    """The first is there before the second, and is cancelled when the second has ended: whatever the host does."""
    first = network.start("7", LEFT, chatter, ENDLESS, 2048)
    assert live_steps.first_line(first).startswith("round 0: ")
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
    assert live_steps.first_line(step).startswith("round 0: ")
    step.kill()
    step.communicate(timeout=100)
    record = network.record("1")
    if not record.is_cut:  # unless the host has had no processor for a rank for two seconds
        assert record.outcome == "limit"
        require_same(record, replayed(network, tmp_path / "steps")["1"])
    network.require_no_processes()


def test_the_end_of_the_simulator_ends_all_steps(network, chatter):
    step = network.start("1", LEFT, chatter, ENDLESS, 64)
    assert live_steps.first_line(step).startswith("round 0: ")
    network.end()
    _, words = step.communicate(timeout=100)
    assert step.returncode == 1
    assert "the simulator of the shared network in" in words
    network.require_no_processes()
    step = network.start("1", LEFT, chatter, 1, 64)
    assert "has ended: end the cluster, and start another" in step.communicate(timeout=100)[1]


def test_the_simulator_ends_with_its_folder(network):
    (network.folder / messages.SOCKET).unlink()
    shutil.rmtree(network.folder)
    assert live_steps.until(lambda: os.waitpid(network.simulator, os.WNOHANG)[0], "the end of the simulator")
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
    assert "no step of this version" in live_steps.answer(caller)["refused"]
    with pytest.raises(messages.ClosedError):
        live_steps.answer(caller)


def ask(network, nodes, streams=2):
    """A step that the test itself plays."""
    asked = records.StepRequest(
        job="1",
        nodes_of_ranks=nodes,
        partition="",
        ranks=len(nodes),
        ranks_per_node=1,
        command=["true"],
        folder="/",
        environment={},
    )
    caller = messages.connect(network.folder)
    caller.tell({"step": asdict(asked), "program": "/bin/true", "mpi": "none", "is_labelled": False}, [2] * streams)
    return caller


def test_a_step_that_does_not_run_yet_is_cancelled(network):
    """It starts up, or waits for its nodes."""
    first = ask(network, [3, 4])
    assert "mapping" in live_steps.answer(first)
    second, third = ask(network, [4, 5]), ask(network, [5])
    second.tell({"cancel": "SIGTERM"})
    assert live_steps.answer(second) == {"refused": "cancelled"}
    assert "mapping" in live_steps.answer(third)
    first.tell({"cancel": "SIGTERM"})
    assert live_steps.answer(first) == {"refused": "cancelled"}
    assert "mapping" in live_steps.answer(ask(network, [3, 4]))


def test_a_step_with_a_signal_starts_no_ranks(network):
    """The test plays the simulator."""
    network.end()
    (network.folder / messages.SOCKET).unlink()
    with messages.listen(network.folder) as listening:
        step = network.start("1", [3], "sleep", "1000")
        listening.settimeout(120)
        channel = messages.Channel(listening.accept()[0])
        assert "step" in live_steps.answer(channel)
        step.send_signal(signal.SIGTERM)
        assert live_steps.answer(channel) == {"cancel": "SIGTERM"}
        channel.tell({"mapping": "/proc/self/fd/0"})
        channel.tell({"refused": "cancelled"})
        assert "apenet: cancelled" in step.communicate(timeout=100)[1]
        with pytest.raises(messages.ClosedError):
            live_steps.answer(channel)
    assert step.returncode == 128 + signal.SIGTERM
    channel.close()


def test_a_fault_of_a_step_ends_no_other_one(network):
    for one in range(3):
        assert "no step of this version" in live_steps.answer(ask(network, [3], streams=one % 2))["refused"]
        faulty = ask(network, [3])
        assert "mapping" in live_steps.answer(faulty)
        faulty.tell({"processes": [1], "supervisor": 1})  # without the supervisor's channel
        assert "no step of this version" in live_steps.answer(faulty)["refused"]
    step = network.start("2", [3], "true")
    step.communicate(timeout=100)
    assert step.returncode == 0


def test_a_simulator_with_too_many_open_files_refuses_steps(network):
    def of_simulator():
        return {int(one.name) for one in Path(f"/proc/{network.simulator}/fd").iterdir()}

    live_steps.answer(ask(network, [1], streams=0))
    limits = resource.prlimit(network.simulator, resource.RLIMIT_NOFILE)
    before = of_simulator()
    least = next(number for number in range(limits[1]) if number not in before)
    resource.prlimit(network.simulator, resource.RLIMIT_NOFILE, (least, limits[1]))
    assert "too many open files" in live_steps.answer(messages.connect(network.folder))["refused"]
    # One more is the connection, and leaves none for the streams.
    resource.prlimit(network.simulator, resource.RLIMIT_NOFILE, (least + 1, limits[1]))
    assert "as many open files" in live_steps.answer(ask(network, [3]))["refused"]
    resource.prlimit(network.simulator, resource.RLIMIT_NOFILE, limits)
    assert "mapping" in live_steps.answer(ask(network, [3]))


def test_a_record_that_the_disk_does_not_take_is_an_error(tmp_path):
    (tmp_path / "network.jsonl").symlink_to("/dev/full")
    with pytest.raises(HostError, match=r"network\.jsonl: the step is not in it: No space left"):
        records.keep(
            tmp_path,
            records.StepRecord(
                job="4",
                step=0,
                nodes_of_ranks=[0],
                partition="",
                ranks=1,
                ranks_per_node=1,
                command=["ring"],
                folder="/",
                environment={},
                start_ps=None,
                ended_ps=[5],
                outcome="completed",
                exit_status=0,
                messages=1,
                trace_hash="0",
            ),
        )


def test_jobs_that_meet_on_a_node_have_a_warning(chatter):
    def job(name, start, *nodes):
        command = [chatter, "50", "64"]
        return apenet.cluster.Job(name, command=command, ranks=len(nodes), map=list(nodes), start=start)

    jobs = [job("later", "9ms", 1, 2), job("meets", "1us", 1, 2), job("first", 0, 0, 1), job("beside", "1us", 3, 4)]
    result = apenet.cluster.run(jobs, machine="ape16", matrix=False, joins=True)
    assert [job.warnings for job in result.jobs if job.name != "meets"] == [(), (), ()]
    assert "began on node 1, where first ended only at" in result.jobs[1].warnings[0]


def test_more_jobs_than_a_file_may_have_are_said(tmp_path):
    file = tmp_path / "jobs.toml"
    file.write_bytes(bytes(2**20))
    assert too_large(file, 128) == ""
    assert "at most 128 of 129 jobs" in too_large(file, 129)
    file.write_bytes(bytes(2**20 + 1))
    assert "at most 1048576 bytes" in too_large(file, 1)


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
