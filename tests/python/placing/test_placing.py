"""apenet map, and --map cart: scores by the machine's routing, and placements that are never worse."""

import dataclasses
import itertools
import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import apenet as package
from apenet import _core
from apenet.base.errors import InputError
from apenet.machine import machine
from apenet.machine.cart import Torus, hops
from apenet.machine.mapping import map_ranks
from apenet.placing import RankTraffic, named_placements, optimise_placement, placement_gain, read_traffic
from apenet.placing.score import score


def grid_traffic(grid, sent=4096, order=None):
    """A closed halo exchange; `order` renames the ranks."""
    ranks = math.prod(grid)
    names = list(range(ranks)) if order is None else order
    matrix = np.zeros((ranks, ranks), dtype=np.int64)
    for place in itertools.product(*map(range, grid)):
        for dimension, extent in enumerate(grid):
            if extent > 1:
                other = list(place)
                other[dimension] = (other[dimension] + 1) % extent
                one, two = (names[np.ravel_multi_index(p, grid)] for p in (place, tuple(other)))
                matrix[one, two] = matrix[two, one] = sent
    senders, receivers = np.nonzero(matrix)
    return RankTraffic("grid", ranks, senders, receivers, matrix[senders, receivers])


def largest_dilation(name, grid, ranks_per_node=1, *changes):
    chosen = machine(name, changes)
    nodes = np.array(map_ranks(chosen, math.prod(grid), ranks_per_node, "cart:" + "x".join(map(str, grid))))
    assert max(np.bincount(nodes)) == ranks_per_node
    placed = nodes.reshape(grid)
    torus = chosen.allocation.torus
    return max(int(hops(placed, np.roll(placed, -1, axis=d), torus).max()) for d in range(len(grid)))


@pytest.mark.parametrize(
    ("name", "grid", "ranks_per_node"),
    [
        ("ape128", (8, 4, 4), 1),
        ("ape128", (4, 8, 4, 1), 1),
        ("ape128", (2, 2, 4, 8), 1),  # two dimensions of two are a ring of four
        ("ape128", (2, 2, 2, 2, 8), 1),
        ("ape128", (32, 4), 1),  # a ring of 32 on 8x4 nodes
        ("ape128", (16, 2, 2, 2), 1),  # the second half of the ring in the mirror
        ("ape128", (8, 4, 4, 2), 2),  # the last dimension within the nodes
        ("qpace", (8, 4, 2), 1),  # on half of a dimension
        ("qpace", (2, 2, 2, 8), 1),
        ("qpace", (1, 8, 1, 8), 1),
        ("ape16", (4, 2, 2), 1),
        ("ape16", (2, 2, 2, 2), 1),
        ("extoll-64", (64,), 1),  # a mesh
    ],
)
def test_neighbours_stay_neighbours_where_that_is_possible(name, grid, ranks_per_node):
    assert largest_dilation(name, grid, ranks_per_node) <= 1


@settings(max_examples=15)
@given(st.permutations([8, 4, 4]), st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=4))
def test_every_fold_is_a_bijection(dims, grid):
    chosen = machine("ape128", [f"network.dims={list(dims)}"])
    ranks = math.prod(grid)
    try:
        nodes = map_ranks(chosen, ranks, 1, "cart:" + "x".join(map(str, grid)))
    except InputError:
        assert ranks > 128
        return
    assert len(set(nodes)) == ranks
    assert all(0 <= node < 128 for node in nodes)


@pytest.mark.parametrize(
    ("name", "ranks", "mapping", "expected"),
    [
        ("ape16", 16, "cart:", "cart:PxQxRxS"),
        ("ape16", 16, "cart:4x-4", "cart:PxQxRxS"),
        ("ape16", 16, "cart:4x2", "number of ranks, 16"),
        ("ape16", 16, "cart:0x16", "number of ranks, 16"),
        ("ape16", 4, "cart:1x1x1x1x1x2x2", "at most 6"),
        ("ape16", 9, "cart:3x3", "fills a block"),
        ("pax", 16, "cart:4x4", "torus or a mesh"),
        ("ideal", 16, "cart:4x4", "torus or a mesh"),
    ],
)
def test_bad_grids_are_refused(name, ranks, mapping, expected):
    with pytest.raises(InputError, match=expected) as caught:
        map_ranks(machine(name), ranks, 1, mapping)
    assert caught.value.name == "map"


def test_maps_of_other_machines_and_maps_with_double_nodes_are_refused_by_line(tmp_path):
    path = tmp_path / "map"
    result = optimise_placement(grid_traffic((4, 2, 2)), machine="ape16")
    path.write_text(result.map_file())
    assert map_ranks(machine("ape16"), 16, 1, str(path)) == list(result.nodes)
    for name, ranks in (("ape128", 16), ("apenetplus-v4", 16), ("ape16", 15)):
        with pytest.raises(InputError, match=r"map:1 = .*expected a map of"):
            map_ranks(machine(name), ranks, 1, str(path))
    path.write_text("0\n1\n0\n")
    with pytest.raises(InputError, match=r"map:3 = .*1 rank"):
        map_ranks(machine("ape16"), 3, 1, str(path))
    assert map_ranks(machine("ape16"), 3, 2, str(path)) == [0, 1, 0]


ROUTINGS = [
    ("ape128", ()),
    ("extoll-64", ()),
    ("pax", ()),
    ("iq-router-v1", ("network.routing=minimal-adaptive", "router.virtual_channels=6")),
    ("iq-router-v1", ("network.routing=dimension-order-entry-class",)),
    ("iq-router-v1", ("network.routing=up-down",)),
]


@pytest.mark.parametrize(("name", "changes"), ROUTINGS, ids=[f"{n}-{','.join(c)}" for n, c in ROUTINGS])
def test_links_carry_what_is_sent_times_the_way(name, changes):
    network = machine(name, changes).description().network
    nodes = _core.count_network_nodes(network)
    draws = random.Random(1)
    flows = [(draws.randrange(nodes), draws.randrange(nodes), draws.randrange(1, 10**6)) for _ in range(200)]
    loads = _core.link_loads(network, *map(list, zip(*flows, strict=True)))
    shortest = _core.hop_counts(network).reshape(nodes, nodes)
    assert sum(loads.bytes) == pytest.approx(sum(b * h for (_, _, b), h in zip(flows, loads.hops, strict=True)))
    for (one, two, _), way in zip(flows, loads.hops, strict=True):
        assert way >= shortest[one, two] - 1e-9
        if "up-down" not in "".join(changes):
            assert way == pytest.approx(shortest[one, two])


def test_the_score_sees_the_links_that_a_simulation_uses(tmp_path):
    trace = tmp_path / "two.goal"
    trace.write_text("num_ranks 2\nrank 0 {\nl: send 65536b to 1 tag 0\n}\nrank 1 {\nl: recv 65536b from 0 tag 0\n}\n")
    chosen = machine("ape128")
    for nodes in ([0, 127], [5, 77], [3, 3 + 4]):
        used = package.replay(trace, machine=chosen, map=nodes).links
        loads = _core.link_loads(chosen.description().network, nodes[:1], nodes[1:], [65536])
        assert [link.wire_bytes > 65536 for link in used] == [part > 0 for part in loads.bytes]


@pytest.mark.parametrize(("name", "routing"), [("iq-router-v1", "valiant"), ("pax", "random-up")])
def test_waypoints_are_refused(name, routing):
    with pytest.raises(package.MachineError, match=f"network.routing.*{routing}"):
        optimise_placement(grid_traffic((4, 4, 4)), machine=machine(name, [f"network.routing={routing}"]))


def test_the_search_unscrambles_a_halo_and_repeats():
    order = list(range(64))
    random.Random(7).shuffle(order)
    chosen = machine("ape128", ["network.dims=[4,4,4]"])
    scrambled = grid_traffic((4, 4, 4), order=order)
    result = optimise_placement(scrambled, machine=chosen)
    ideal = int(scrambled.sent_bytes.sum())  # each byte over one link
    assert result.before.hop_bytes > 2 * ideal
    assert result.after.hop_bytes <= 1.05 * ideal
    assert sorted(result.nodes) == list(range(64))
    assert optimise_placement(scrambled, machine=chosen).nodes == result.nodes


@settings(max_examples=12)
@given(
    st.sampled_from(["ape16", "extoll-64-2d", "pax", "quong"]),
    st.integers(2, 16),
    st.integers(1, 2),
    st.integers(0, 3),
    st.integers(0, 2**32),
)
def test_the_search_is_never_worse_than_its_start(name, ranks, ranks_per_node, density, seed):
    draws = np.random.default_rng(seed)
    matrix = draws.integers(0, 1000, (ranks, ranks)) * (draws.random((ranks, ranks)) < density / 3)
    senders, receivers = np.nonzero(matrix * (1 - np.eye(ranks, dtype=int)))
    traffic = RankTraffic("drawn", ranks, senders, receivers, matrix[senders, receivers])
    start = f"random:{seed % 100}"
    result = optimise_placement(traffic, machine=name, ranks_per_node=ranks_per_node, start=start, seed=seed % 7)
    nodes = np.array(result.nodes)
    assert max(np.bincount(nodes)) <= ranks_per_node
    again = score(machine(name), traffic, nodes)
    assert again.hop_bytes == result.after.hop_bytes <= result.before.hop_bytes
    assert result.after.largest_link_bytes <= result.before.largest_link_bytes


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("1 2\n3\n", r":2 = .*2, as in the first row"),
        ("1 2\n3 4\n5 6\n", "a square matrix"),
        ("1 -2\n3 4\n", r":1 = .*number of bytes"),
        ("1.5 2\n3 4\n", r":1 = .*number of bytes"),
        (f"0 {2**63}\n0 0\n", r":1 = .*number of bytes"),
        ("num_ranks 2\nrank 0 {\n", "two.txt"),
        ("", "two.txt"),
    ],
)
def test_bad_traffic_is_refused(tmp_path, content, expected):
    path = tmp_path / "two.txt"
    path.write_text(content)
    with pytest.raises(InputError, match=expected):
        read_traffic(path)


def test_traffic_of_a_trace_is_that_of_its_matrix(tmp_path):
    trace, matrix = tmp_path / "t.goal", tmp_path / "m.csv"
    trace.write_text(
        "num_ranks 3\nrank 0 {\na: send 10b to 1 tag 0\nb: send 5b to 1 tag 1\nc: send 7b to 0 tag 0\n}\n"
        "rank 1 {\na: recv 10b from 0 tag 0\n}\nrank 2 {\na: send 3b to 0 tag 0\n}\n"
    )
    matrix.write_text("# bytes\n7, 15, 0\n0, 0, 0\n3, 0, 0  # the last rank\n")
    one, two = read_traffic(trace), read_traffic(matrix)
    for field in ("senders", "receivers", "sent_bytes"):
        assert getattr(one, field).tolist() == getattr(two, field).tolist()
    assert one.ranks == two.ranks == 3


def test_the_command_writes_a_map_that_a_run_takes(tmp_path, apenet):
    matrix = tmp_path / "m.txt"
    order = list(range(16))
    random.Random(3).shuffle(order)
    traffic = grid_traffic((4, 2, 2), order=order)
    dense = np.zeros((16, 16), dtype=int)
    dense[traffic.senders, traffic.receivers] = traffic.sent_bytes
    np.savetxt(matrix, dense, fmt="%d")
    arguments = ["map", "--from", matrix, "--machine", "ape16", "--json", "--out"]
    done = apenet(*arguments, tmp_path / "map", "--figure", tmp_path / "map.png")
    result = json.loads(done.stdout)
    assert done.returncode == 0
    assert result["after"]["hop_bytes"] < result["before"]["hop_bytes"]
    assert map_ranks(machine("ape16"), 16, 1, tmp_path / "map") == result["nodes"]
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    foreign = tmp_path / "notes"
    foreign.write_text("mine\n")
    assert apenet(*arguments, foreign).returncode == 2
    assert foreign.read_text() == "mine\n"


def test_a_block_of_a_mesh_is_no_ring():
    assert hops(np.array([0]), np.array([3]), Torus((4,), (True,))).tolist() == [1]
    assert hops(np.array([0]), np.array([3]), Torus((4,), (False,))).tolist() == [3]


class TestGain:
    """What another placement would do, for the summary of a run."""

    @pytest.fixture
    def halo(self, build):
        return build(Path(__file__).with_name("halo.c"))

    def test_the_grid_of_the_program_relieves_a_scrambled_run(self, halo):
        ape16 = machine("ape16")
        run = package.run([halo], n=16, machine=ape16, map="random:7", capture=True)
        assert run.grid == (4, 2, 2)
        traffic = RankTraffic("run", 16, *np.array(run.traffic).T)
        maps = {"random:7": run.nodes, **dict(named_placements(ape16, 16, 1, run.grid))}
        scores = {name: score(ape16, traffic, np.array(nodes)) for name, nodes in maps.items()}
        best = min(scores, key=lambda name: scores[name].largest_link_bytes)
        said = placement_gain(run, ape16, 1)
        assert said.startswith(f"--map {best} would put ")
        assert (
            f"({scores[best].mean_dilation:.2f} instead of {scores['random:7'].mean_dilation:.2f} links a byte)" in said
        )
        placed = package.run([halo], n=16, machine=ape16, map=best, capture=True)
        assert placed.busiest_link.wire_bytes < run.busiest_link.wire_bytes
        assert placement_gain(placed, ape16, 1) == ""

    def test_the_traffic_is_that_of_the_messages(self, halo):
        run = package.run([halo], n=16, machine="ape16", capture=True)
        assert sum(row[2] for row in run.traffic) == run.bytes
        assert run.traffic == tuple(sorted(run.traffic))

    def test_the_summary_says_it_where_links_are_busy(self, halo, apenet):
        command = ("run", "-n", "16", "--map", "random:7")
        assert "would put" in apenet(*command, "--", halo).stderr
        assert "would put" not in apenet(*command, "--", halo, "64").stderr  # bytes a message

    def test_nothing_is_said_of_a_network_whose_routes_change(self, halo):
        ape16 = machine("ape16", faults=["link (0,0,0)+x down @10us"])
        run = package.run([halo], n=16, machine=ape16, map="random:7", capture=True)
        assert run.faults.events == 1
        assert placement_gain(run, ape16, 1) == ""

    def test_nothing_is_said_of_links_that_other_traffic_fills(self, halo):
        ape16 = machine("ape16")
        run = package.run([halo], n=16, machine=ape16, map="random:7", capture=True)
        assert placement_gain(dataclasses.replace(run, traffic=()), ape16, 1) == ""  # as of packets of TCP

    def test_nothing_is_said_of_a_network_without_places(self, halo):
        ideal = machine("ideal")
        assert placement_gain(package.run([halo], n=16, machine=ideal, capture=True), ideal, 1) == ""
