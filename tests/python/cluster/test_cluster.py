"""Several jobs on one machine: the same times as one trace of all of them, and what they cost each other."""

import json
import random

import numpy as np
import pytest

import apenet as package
from apenet.base.errors import InputError, MachineError
from apenet.cluster import Job, run, run_file

ONE_MESSAGE = "num_ranks 2\nrank 0 {\nl1: send %db to 1 tag 0\n}\nrank 1 {\nl1: recv %db from 0 tag 0\n}\n"
STUCK = "num_ranks 2\nrank 0 {\nl1: recv 8b from 1 tag 7\n}\nrank 1 {\nl1: calc 1000\n}\n"


def message(path, size):
    path.write_text(ONE_MESSAGE % (size, size))
    return path


def halo(path, extent, size, rounds=2, first=0, begins_ns=0, ranks=None):
    """A halo exchange on a closed grid of extent x extent ranks; of a job that is a part of a larger trace."""
    count = extent * extent
    lines = [f"num_ranks {ranks or count}"] if first == 0 else []
    for rank in range(count):
        x, y = rank % extent, rank // extent
        peers = [((x + dx) % extent) + extent * ((y + dy) % extent) for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))]
        lines.append(f"rank {first + rank} {{")
        lines.append(f"start: calc {begins_ns}")
        before = ["start"]
        for step in range(rounds):
            now = []
            for d, peer in enumerate(peers):
                lines.append(f"s{step}{d}: send {size}b to {first + peer} tag {d}")
                lines.append(f"r{step}{d}: recv {size}b from {first + peer} tag {d ^ 1}")
                now += [f"s{step}{d}", f"r{step}{d}"]
            lines += [f"{one} requires {other}" for one in now for other in before]
            before = now
        lines.append("}")
    text = "\n".join(lines) + "\n"
    if path is not None:
        path.write_text(text)
    return text


@pytest.fixture
def halo16(tmp_path):
    path = tmp_path / "halo.goal"
    halo(path, 4, 6000)
    return path


def test_jobs_take_the_time_of_one_trace_of_them_all(tmp_path, halo16):
    """The second begins after 20 us, as with a calc of 20,000 ns in front of each of its ranks."""
    nodes = random.Random(5).sample(range(128), 32)
    jobs = [Job("a", halo16, map=nodes[:16]), Job("b", halo16, map=nodes[16:], start="20us")]
    result = run(jobs, machine="ape128", matrix=False)
    both = tmp_path / "both.goal"
    both.write_text(halo(None, 4, 6000, ranks=32) + halo(None, 4, 6000, first=16, begins_ns=20_000))
    whole = package.replay(both, machine="ape128", map=nodes)
    assert np.array_equal(np.concatenate([job.finish_us for job in result.jobs]), whole.finish_us)
    assert result.trace_hash == whole.trace_hash
    assert (result.messages, result.bytes) == (whole.messages, whole.bytes)
    assert result.virtual_time_us == whole.virtual_time_us
    alone = package.replay(halo16, machine="ape128", map=nodes[16:])
    assert result.jobs[1].alone_us == pytest.approx(alone.virtual_time_us, abs=1e-6)
    assert result.jobs[1].time_us == pytest.approx(result.jobs[1].finish_us.max() - 20, abs=1e-6)
    assert result.jobs[0].slowdown >= 1
    assert result.interference is None


def test_planes_do_not_disturb_each_other(halo16):
    """The split of 8x4x4 nodes in eight planes: to the picosecond the times that each takes alone."""
    result = run([Job(f"p{x}", halo16, f"1x4x4@{x},0,0") for x in range(8)], machine="ape128")
    for x, job in enumerate(result.jobs):
        assert job.nodes == tuple(range(x, 128, 8))
        assert job.time_us == job.alone_us
        assert job.shared == {}
        alone = package.replay(halo16, machine=package.machine("ape128", partition=f"1x4x4@{x},0,0"))
        assert np.array_equal(job.finish_us, alone.finish_us)
    assert result.interference == ((1.0,) * 8,) * 8


def test_jobs_at_random_disturb_each_other_the_same_way_every_time(halo16):
    nodes = random.Random(1).sample(range(128), 128)
    jobs = [Job(f"j{number}", halo16, map=nodes[16 * number : 16 * number + 16]) for number in range(8)]
    result = run(jobs, machine="ape128", matrix=False)
    assert max(job.slowdown for job in result.jobs) > 1.05
    assert all(len(job.shared) == 7 for job in result.jobs)
    again = run(jobs, machine="ape128", matrix=False)
    assert json.dumps(result.to_json()) == json.dumps(again.to_json())


def test_the_links_that_two_jobs_share(tmp_path):
    """Along X, from 0 to 2 and from 1 to 3: both cross the link from 1 to 2, and no other."""
    small = message(tmp_path / "small.goal", 8)
    result = run(
        [Job("a", small, map=[0, 2]), Job("b", small, map=[1, 3]), Job("c", small, map=[8, 9])], machine="ape128"
    )
    a, b, c = result.jobs
    assert a.shared == {"b": ("(1,0,0)+x",)}
    assert b.shared == {"a": ("(1,0,0)+x",)}
    assert c.shared == {}
    assert result.check().shared == {(0, 1): ("(1,0,0)+x",)}
    # A job that nobody meets takes its own time in every row.
    assert [result.interference[2][column] for column in range(3)] == [1.0, 1.0, 1.0]
    assert c.time_us == c.alone_us


def test_streams_over_one_link_share_its_bandwidth(tmp_path):
    """Two streams of one link each get half of it, if it carries less than two cards send."""
    big = message(tmp_path / "big.goal", 4_000_000)
    slow = package.machine("ape128", ["network.link.rate=100MB/s"])
    result = run([Job("a", big, map=[0, 2]), Job("b", big, map=[1, 3])], machine=slow)
    for job in result.jobs:
        assert job.slowdown == pytest.approx(2, abs=0.02)
    assert result.interference[0] == (1.0, result.jobs[0].slowdown)
    # One that starts when the other has ended meets nobody.
    later = run([Job("a", big, map=[0, 2]), Job("b", big, map=[1, 3], start="1s")], machine=slow)
    assert [job.slowdown for job in later.jobs] == [1.0, 1.0]
    assert later.jobs[1].start_us == 1e6
    assert later.jobs[1].finish_us.max() == pytest.approx(1e6 + later.jobs[1].alone_us, abs=1e-6)


def test_a_job_that_deadlocks_ends_alone(apenet, tmp_path, halo16):
    stuck = tmp_path / "stuck.goal"
    stuck.write_text(STUCK)
    file = tmp_path / "jobs.toml"
    file.write_text(
        f'machine = "ape128"\n[job.good]\ntrace = "{halo16}"\npartition = "1x4x4"\n'
        f'[job.stuck]\ntrace = "{stuck}"\nmap = [1, 2]\n'
    )
    good, bad = run_file(file).jobs
    assert good.time_us == good.alone_us > 0
    assert bad.time_us is None
    assert bad.slowdown is None
    assert "1 of 2 ranks do not come to their end:\n  rank 0 waits for ever in line 3" in bad.deadlock
    done = apenet("cluster", "run", file)
    assert done.returncode == 1
    assert "job stuck: deadlock: " in done.stdout
    assert done.stderr == ""


def test_the_command_prints_the_result_of_the_file(apenet, tmp_path, halo16):
    file = tmp_path / "jobs.toml"
    file.write_text(
        f'machine = "ape128"\nseed = 3\nsettings = ["network.link.rate=100MB/s"]\n'
        f'[job.left]\ntrace = "{halo16}"\npartition = "4x4x4"\nmap = "cart:4x4"\n'
        f'[job.right]\ntrace = "{halo16}"\npartition = "4x4x4@4,0,0"\nstart = "5us"\nranks_per_node = 1\n'
    )
    result = run_file(file)
    assert result.seed == 3
    done = apenet("cluster", "run", file, "--json")
    assert json.loads(done.stdout) == json.loads(json.dumps(result.to_json()))
    picture = tmp_path / "jobs.svg"
    shown = apenet("cluster", "run", file, "--no-matrix", "--figure", picture)
    assert shown.returncode == 0, shown.stderr
    assert "left      16  0.00 us" in shown.stdout
    assert "slowdown of a row's job" not in shown.stdout
    assert picture.stat().st_size > 0


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "machine"),
        ('machine = "ape128"\n', "job is missing"),
        ('machine = "nothing"\n[job.a]\ntrace = "t"\n', "machine"),
        ('machine = "ape128"\n[job.a]\ntrace = "none.goal"\n', "job a: trace"),
        ('machine = "ape128"\n[job.a]\npartition = "1x4x4"\n', "job.a.trace"),
        ('machine = "ape128"\n[job.a]\ntrace = "T"\npartitoin = "1x4x4"\n', 'the known key "partition"'),
        ('machine = "ape128"\n[jobs.a]\ntrace = "T"\n', 'the known key "job"'),
        ('machine = "ape128"\n[job.a]\ntrace = "T"\nstart = 5\n', "a time such as 10us"),
        ('machine = "ape128"\n[job.a]\ntrace = "T"\nstart = "5"\n', "job a: start"),
        ('machine = "ape128"\n[job.a]\ntrace = "T"\nranks_per_node = "2"\n', "a whole number"),
        ('machine = "ape128"\n[job.a]\ntrace = "T"\nmap = [0, "1"]\n', "a text, or a list of nodes"),
        ('machine = "ape128"\n[job.a]\ntrace = "T"\npartition = "1x1x4"\n', "job a: ranks = 16: expected at most 4"),
        ('machine = "ape128"\n[job.a]\ntrace = "T"\npartition = "9x1x1"\n', "job a: partition"),
        ('machine = "ape128"\n[job.a]\ntrace = "T"\n[job.b]\ntrace = "T"\n', "a and b"),
        ('machine = "ape128"\n[job."1x4x4"]\ntrace = "T"\n', "[job.NAME]"),
        ('machine = "ape128"\nengine = "both"\n[job.a]\ntrace = "T"\n', "packet or flit"),
        ('machine = "ape128"\nseed = -1\n[job.a]\ntrace = "T"\n', "seed"),
        ("machine = ape128\n", "jobs in TOML"),
    ],
)
def test_bad_jobs_are_refused(tmp_path, halo16, content, expected):
    file = tmp_path / "jobs.toml"
    file.write_text(content.replace('"T"', f'"{halo16}"'))
    with pytest.raises((InputError, MachineError)) as caught:
        run_file(file)
    assert expected in str(caught.value)


def test_bad_jobs_from_python_are_refused(halo16):
    for jobs, machine, expected in (
        ([], "ape128", "1 to 128 jobs"),
        ([Job("a", halo16, "1x4x4"), Job("a", halo16, "1x4x4@1,0,0")], "ape128", "a name for each job"),
        ([Job("a", halo16)], package.machine("ape128", partition="1x4x4"), "the whole machine"),
    ):
        with pytest.raises(InputError, match=expected):
            run(jobs, machine=machine)
