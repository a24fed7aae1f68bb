"""Placement of ranks on nodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from apenet.base.errors import InputError
from apenet.machine import machine
from apenet.machine.mapping import map_ranks

APE16 = machine("ape16")
IDEAL = machine("ideal")


def test_linear_fills_node_after_node():
    assert map_ranks(APE16, 4) == [0, 1, 2, 3]
    assert map_ranks(APE16, 5, ranks_per_node=2) == [0, 0, 1, 1, 2]
    assert map_ranks(IDEAL, 3) == [0, 1, 2]


def test_random_depends_on_the_seed_alone():
    first = map_ranks(APE16, 16, mapping="random:1")
    assert first == map_ranks(APE16, 16, mapping="random:1")
    assert first != map_ranks(APE16, 16, mapping="random:2")
    # The order is part of what a run means: it must not change between versions.
    assert first[:4] == [7, 11, 4, 8]


@given(st.integers(1, 64), st.integers(1, 4), st.integers(0, 10**6))
def test_every_mapping_places_every_rank(ranks, ranks_per_node, seed):
    for mapping in ("linear", f"random:{seed}"):
        try:
            nodes = map_ranks(APE16, ranks, ranks_per_node, mapping)
        except InputError:
            assert ranks > 16 * ranks_per_node
            continue
        assert len(nodes) == ranks
        assert all(0 <= node < 16 for node in nodes)
        assert max(nodes.count(node) for node in nodes) <= ranks_per_node


def test_files_name_nodes_or_coordinates(tmp_path):
    path = tmp_path / "map"
    path.write_text("# two nodes\n3\n\n(1, 1, 0)  # one up in Y\n0 0 1\n")
    assert map_ranks(APE16, 3, mapping=str(path)) == [3, 5, 8]


@pytest.mark.parametrize(
    ("content", "place"),
    [("16\n", ":1"), ("0\nx\n", ":2"), ("4 0 0\n0\n", ":1"), ("0 0\n0\n", ":1"), ("-1\n0\n", ":1"), ("0\n", "map")],
)
def test_bad_files_are_named_by_line(tmp_path, content, place):
    path = tmp_path / "map"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        map_ranks(APE16, 2, mapping=str(path))
    assert caught.value.name.startswith(str(path))
    assert caught.value.name.endswith(place)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"ranks": 0}, "ranks"),
        ({"ranks": -3}, "ranks"),
        ({"ranks": 17}, "ranks"),
        ({"ranks": 2, "ranks_per_node": 0}, "ranks-per-node"),
        ({"ranks": 2, "ranks_per_node": 5}, "ranks-per-node"),
        ({"ranks": 2, "mapping": "random:x"}, "map"),
        ({"ranks": 2, "mapping": "random:"}, "map"),
        ({"ranks": 2, "mapping": "no/such/file"}, "map"),
        ({"ranks": 2, "mapping": [0]}, "map"),
        ({"ranks": 2, "mapping": [0, 99]}, "map"),
        ({"ranks": 5, "mapping": [0, 0, 0, 0, 0]}, "map"),
    ],
)
def test_invalid_arguments_are_named(arguments, name):
    with pytest.raises(InputError) as caught:
        map_ranks(APE16, **arguments)
    assert caught.value.name == name


def test_nodes_may_be_numpy_integers_and_nothing_else():
    assert map_ranks(machine("ape16"), np.int64(2), 1, np.arange(2)) == [0, 1]
    with pytest.raises(InputError, match=r"map = \(0, 0, 0\)"):
        map_ranks(machine("ape16"), 2, 1, [(0, 0, 0), (1, 0, 0)])


def test_tens_of_thousands_of_ranks_are_placed():
    assert len(map_ranks(machine("ape16", ["network.dims=[32,32,32]"]), 65536, 2)) == 65536


@pytest.mark.parametrize(
    ("text", "ranks", "per_node", "nodes"),
    [
        # PBS_NODEFILE: a line for each processor.
        ("ape16-1-0-0\nape16-1-0-0\nape16-0-1-1\nape16-0-1-1\n", 4, 2, [1, 1, 12, 12]),
        ("ape16-1-0-0.cluster.example\nape16-3-1-1\n", 2, 1, [1, 15]),
        # Host lists of Open MPI and MPICH, with slots for more ranks than there are.
        ("# two nodes\nape16-1-0-0 slots=2\nape16-0-0-0 slots=4 max_slots=8\n", 4, 2, [1, 1, 0, 0]),
        ("ape16-1-0-0:2\nape16-0-0-0:4\nape16-2-0-0:4\n", 3, 2, [1, 1, 0]),
        ("ape16-2-0-0\n5\n0 1 1\n", 3, 1, [2, 5, 12]),
    ],
)
def test_a_host_list_is_a_map(tmp_path, text, ranks, per_node, nodes):
    (tmp_path / "hosts").write_text(text)
    assert map_ranks(machine("ape16"), ranks, per_node, tmp_path / "hosts") == nodes


def test_host_names_in_a_partition_are_those_of_the_machine(tmp_path):
    (tmp_path / "hosts").write_text("ape16-0-1-0\nape16-1-1-0\n")
    part = machine("ape16").with_partition("4x1x1@0,1,0")
    assert map_ranks(part, 2, 1, tmp_path / "hosts") == [4, 5]
    (tmp_path / "hosts").write_text("ape16-0-1-0\nape16-0-0-0\n")
    with pytest.raises(InputError, match='hosts:2 = "ape16-0-0-0": expected the host name of a node of partition'):
        map_ranks(part, 2, 1, tmp_path / "hosts")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ape16-0-0-0\nape16-9-0-0\n", "hosts:2"),
        ("ape16-0-0-0\nape128-0-0-0\n", "such as ape16-0-0-0"),
        ("ape16-0-0-0\nape16-0-0-0\n", "see --ranks-per-node"),
        ("ape16-0-0-0\n", "one line for each of the 2 ranks"),
        ("ape16-0-0-0 slots=0\nape16-1-0-0\n", "a node's number, its host name, or its 3 coordinates"),
    ],
)
def test_a_host_list_of_other_nodes_is_refused(tmp_path, text, said):
    (tmp_path / "hosts").write_text(text)
    with pytest.raises(InputError, match=said):
        map_ranks(machine("ape16"), 2, 1, tmp_path / "hosts")
