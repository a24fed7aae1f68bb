"""Scheduling studies: workloads, placement policies, the queue and shared links."""

import gzip
import itertools
import json
import random

import numpy as np
import pytest
from typer.testing import CliRunner

from apenet import queueing
from apenet.base.errors import InputError
from apenet.cli import app
from apenet.machine import machine
from apenet.queueing.placement import POLICIES, Place, policy, shapes
from apenet.queueing.sharing import LinkSharing
from apenet.queueing.workload import read_workload

APE128 = machine("ape128")


def line(number, submitted, run, processes, limit=-1):
    return f"{number} {submitted} -1 {run} {processes} -1 -1 {processes} {limit} -1 1 1 1 1 1 1 -1 -1\n"


def written(path, *jobs):
    path.write_text("; Version: 2.2\n\n" + "".join(line(number, *job) for number, job in enumerate(jobs, 1)))
    return path


def drawn(path, count):
    numbers = random.Random(1)
    submitted = itertools.accumulate(numbers.randrange(600) for _ in range(count))
    jobs = [(at, numbers.randrange(60, 5000), numbers.choice([1, 3, 8, 16, 27, 60]), 5000) for at in submitted]
    return written(path, *jobs)


def times(result):
    """Start and end of each job under each policy, in its order."""
    return [[(run.started_s, run.ended_s) for run in one.runs] for one in result.policies]


def test_a_workload_is_read_as_the_format_says(tmp_path):
    content = (
        "; MaxNodes: 8\n"
        + line(1, 5, 10, 4, 20)
        + line(2, 3, 10, 4)
        + line(3, 6, 0, 4)
        + line(4, -1, 3, 4)
        + "5 9 -1 7 -1 -1 -1 6 -1 -1 0 1 1 1 1 1 -1 -1 ; failed after 7 s\n"
        + line(6, 9, 7, -1)
    )
    packed = tmp_path / "log.swf.gz"
    packed.write_bytes(gzip.compress(content.encode()))
    found = read_workload(packed)
    assert [(job.number, job.limit_s, job.processes) for job in found.jobs] == [(2, 10, 4), (1, 20, 4), (5, 7, 6)]
    assert found.skipped == {
        "that never ran": 1,
        "without a time of submission": 1,
        "without a number of processes": 1,
    }
    assert len(read_workload(packed, most_jobs=1).jobs) == 1


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("1 2 3\n", "line 1.*18 numbers"),
        ("; x\n" + line(1, 0, "many", 1), "line 2.*numbers"),
        (line(1, 0, "nan", 1), "line 1.*numbers of at most"),
        ("; nothing\n", "at least one job"),
        (line(1, 0, 10, 129), "job 1 of 129 nodes.*at most the 128 nodes of ape128"),
    ],
)
def test_workloads_that_cannot_be(tmp_path, content, expected):
    file = tmp_path / "bad.swf"
    file.write_text(content)
    with pytest.raises(InputError, match=expected):
        queueing.simulate(file)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"policies": ["nearest"]}, "first-fit"),
        ({"policies": []}, "at least one policy"),
        ({"policies": ["random", "random"]}, "each policy once"),
        ({"policies": ["split:3x4x4"]}, "extents that divide"),
        ({"queue": "lottery"}, "easy or fcfs"),
        ({"pattern": "ring"}, "halo or alltoall"),
        ({"communication": 1.5}, "a share from 0 to 1"),
        ({"size": "0"}, "at least 1 byte"),
        ({"processes_per_node": 0}, "one or more"),
        ({"machine": "ideal"}, "a network"),
        ({"machine": "my-cluster", "policies": ["best-fit"]}, "contiguous or random on my-cluster"),
        ({"machine": APE128.with_partition("1x4x4")}, "whole"),
    ],
)
def test_options_that_cannot_be(tmp_path, options, expected):
    with pytest.raises(InputError, match=expected):
        queueing.simulate(written(tmp_path / "one.swf", (0, 10, 4)), **options)


def test_shapes_are_the_smallest_boxes():
    assert shapes(16, (8, 4, 4))[0] == (1, 4, 4)  # as 2x4x2, 16 links leave it, but it spans two dimensions
    assert set(shapes(7, (8, 4, 4))) == {(7, 1, 1)}
    assert shapes(11, (8, 4, 4)) == shapes(12, (8, 4, 4))
    assert shapes(129, (8, 4, 4)) == ()


@pytest.mark.parametrize("name", [*POLICIES, "split:1x4x4", "split:2x2x2"])
def test_places_are_free_and_boxes_are_boxes(name):
    numbers = random.Random(2)
    one = policy(name, APE128, 1)
    occupied = np.zeros(128, dtype=bool)
    placed = []
    for _ in range(400):
        if placed and numbers.random() < 0.45:
            occupied[list(placed.pop(numbers.randrange(len(placed))).nodes)] = False
        wanted = numbers.choice([1, 2, 5, 8, 16, 24])
        place = one.place(occupied, wanted)
        assert one.fits(occupied, wanted) == (place is not None)
        if place is None:
            assert name != "random" or np.count_nonzero(~occupied) < wanted
            continue
        nodes = list(place.nodes)
        assert len(set(nodes)) == len(nodes) >= wanted
        assert not occupied[nodes].any()
        if place.extents:
            box = "x".join(map(str, place.extents))
            origin = [nodes[0] % 8, nodes[0] // 8 % 4, nodes[0] // 32]
            on = APE128.with_partition(f"{box}@{','.join(map(str, origin))}")
            assert on.partition.nodes == place.nodes
        occupied[nodes] = True
        placed.append(place)
    assert placed


def test_best_fit_prefers_occupied_neighbours():
    occupied = np.zeros(128, dtype=bool)
    occupied[[0, 2]] = True  # node 1 lies between them
    assert policy("first-fit", APE128, 1).place(occupied, 1).nodes == (1,)
    assert policy("best-fit", APE128, 1).place(occupied, 1).nodes == (1,)
    occupied[[0, 2]] = False
    occupied[[50, 52]] = True
    assert policy("first-fit", APE128, 1).place(occupied, 1).nodes == (0,)
    assert policy("best-fit", APE128, 1).place(occupied, 1).nodes == (51,)


def test_jobs_start_in_order_and_overtake_without_delay(tmp_path):
    """Half of the machine until 100; the whole from then to 200. A half of 100 s fits before, one of 101 s does not."""
    jobs = [(0, 100, 64), (1, 100, 128), (2, 98, 64), (3, 98, 64)]
    file = written(tmp_path / "four.swf", *jobs)
    (easy,) = times(queueing.simulate(file, policies=["shape-search"], communication=0))
    assert easy == [(0, 100), (100, 200), (2, 100), (200, 298)]
    (fcfs,) = times(queueing.simulate(file, policies=["shape-search"], communication=0, queue="fcfs"))
    assert fcfs == [(0, 100), (100, 200), (200, 298), (200, 298)]
    late = written(tmp_path / "late.swf", jobs[0], jobs[1], (2, 99, 64))
    (kept,) = times(queueing.simulate(late, policies=["shape-search"], communication=0))
    assert kept[2] == (200, 299)


def test_a_job_overtakes_on_nodes_that_the_reservation_leaves(tmp_path):
    """At 100, the first of those that wait gets 64 nodes; 32 of the others are nobody's."""
    file = written(tmp_path / "five.swf", (0, 100, 96), (1, 50, 64), (2, 1000, 32))
    (found,) = times(queueing.simulate(file, policies=["random"], communication=0))
    assert found == [(0, 100), (100, 150), (2, 1002)]


def test_node_time_is_counted(tmp_path):
    file = written(tmp_path / "two.swf", (0, 100, 3), (0, 50, 128))
    (split,) = queueing.simulate(file, policies=["split:1x4x4"], communication=0).policies
    whole = 150 * 128
    assert split.at_work == pytest.approx((3 * 100 + 128 * 50) / whole)
    assert split.padded == pytest.approx(13 * 100 / whole)
    assert split.lost == split.slowed == 0
    holes = written(tmp_path / "holes.swf", *[(0, 100, 33), (0, 100, 33), (1, 10, 40)])
    (boxes,) = queueing.simulate(holes, policies=["first-fit"], communication=0).policies
    assert boxes.lost > 0
    assert boxes.runs[2].started_s == 100


def test_jobs_in_boxes_of_their_own_take_their_time_alone():
    sharing = LinkSharing(APE128, "halo", 8192, 1.0)
    boxes = APE128.split("1x4x4")
    exchanges = [sharing.exchange(Place(one.nodes, one.extents), 16) for one in boxes]
    assert sharing.slowdowns(exchanges) == [1.0] * 8


def test_scattered_jobs_slow_each_other_as_simulated_together():
    """Half as much communication, half the loss; and as the jobs take together, in `apenet cluster run`."""
    nodes = [(number * 37) % 128 for number in range(32)]
    places = [Place(tuple(nodes[:16])), Place(tuple(nodes[16:]))]
    found = {}
    for share in (1.0, 0.5):
        sharing = LinkSharing(machine("torus-slice").with_settings("network.dims=[8,4,4]"), "halo", 65536, share)
        found[share] = sharing.slowdowns([sharing.exchange(place, 16) for place in places])
    assert all(factor > 1.1 for factor in found[1.0])
    for half, whole in zip(found[0.5], found[1.0], strict=True):
        assert half == pytest.approx(1 + (whole - 1) / 2)


def test_a_study_repeats_and_random_depends_on_the_seed(tmp_path):
    file = drawn(tmp_path / "drawn.swf", 20)
    first, second = (queueing.simulate(file, seed=1).to_json() for _ in range(2))
    assert json.dumps(first) == json.dumps(second)
    other = queueing.simulate(file, seed=2, policies=["random", "contiguous"])
    before = {one["policy"]: one["jobs"] for one in first["policies"]}
    after = {one["policy"]: one["jobs"] for one in other.to_json()["policies"]}
    assert after["random"] != before["random"]
    assert after["contiguous"] == before["contiguous"]
    for one in queueing.simulate(file).policies:
        assert one.at_work + one.slowed + one.padded + one.lost <= 1 + 1e-9
        assert len(one.runs) == 20
        # No node has two jobs at a time.
        events = sorted(
            (at, begins, node)
            for run in one.runs
            for node in run.place.nodes
            for at, begins in ((run.started_s, 1), (run.ended_s, 0))
        )
        busy = set()
        for _, begins, node in events:
            assert (node in busy) != bool(begins)
            busy ^= {node}


def test_the_command_prints_a_table_and_draws_a_figure(tmp_path):
    file = written(tmp_path / "three.swf", (0, 100, 8), (1, 100, 8), (2, 0, 8))
    picture = tmp_path / "queue.svg"
    options = ["--policy", "random", "--policy", "split:2x4x4", "--figure", str(picture)]
    done = CliRunner().invoke(app, ["cluster", "simulate", str(file), *options])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[1].startswith("random")
    assert "2 jobs of three.swf, queue easy; halo of 16384 bytes, 20% of the run time; skipped: 1 that never ran" in (
        " ".join(done.stdout.split())
    )
    assert picture.read_text().count("split:2x4x4") >= 1
