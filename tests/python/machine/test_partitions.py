"""Partitions: parts of a machine with node numbers and coordinates of their own, and what they share."""

import json
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apenet.base.errors import InputError, MachineError
from apenet.machine import machine
from apenet.machine.mapping import map_ranks
from apenet.machine.partition_links import check_partitions, chosen_partitions


def refusal(apenet, *arguments):
    run = apenet(*arguments)
    assert run.returncode == 2, run.stderr
    return run.stderr


APE128 = machine("ape128")  # 8x4x4, dimension order
TREE = machine("pax")


def test_a_box_numbers_its_nodes_with_the_first_coordinate_fastest():
    part = APE128.with_partition("2x2x1@3,1,2").partition
    # Node x + 8 y + 32 z of the machine.
    assert part.nodes == (3 + 8 + 64, 4 + 8 + 64, 3 + 16 + 64, 4 + 16 + 64)
    assert (part.shape, part.text, part.spans) == ("2x2x1", "2x2x1@3,1,2", (False, False, False))
    plane = APE128.with_partition("1x4x4@7,0,0").partition
    assert plane.nodes == tuple(range(7, 128, 8))
    assert plane.spans == (False, True, True)
    assert plane.spanned == 0b110


@given(st.data())
def test_a_split_takes_each_node_once(data):
    box = [data.draw(st.sampled_from([e for e in range(1, most + 1) if most % e == 0])) for most in (8, 4, 4)]
    parts = APE128.split("x".join(map(str, box)))
    assert len(parts) == 128 // prod(box)
    assert sorted(node for part in parts for node in part.nodes) == list(range(128))


def test_ranks_are_placed_within_the_partition(tmp_path):
    plane = APE128.with_partition("1x4x4@3,0,0")
    assert map_ranks(plane, 3) == [3, 11, 19]
    assert map_ranks(plane, 3, mapping=[15, 0, 4]) == [3 + 8 * 15, 3, 3 + 8 * 4]
    file = tmp_path / "map"
    file.write_text("0 1 2\n")
    assert map_ranks(plane, 1, mapping=str(file)) == [3 + 8 + 64]
    # A grid of 4x4 ranks lies on the plane as it is: its first dimension along Y, its second along Z.
    assert map_ranks(plane, 16, mapping="cart:4x4") == [3 + 8 * y + 32 * z for y in range(4) for z in range(4)]
    assert set(map_ranks(plane, 16, mapping="random:1")) == set(plane.partition.nodes)
    with pytest.raises(InputError, match="at most 16: partition 1x4x4@3,0,0 of ape128 has 1x4x4 = 16 nodes"):
        map_ranks(plane, 17)


def test_ranks_fold_onto_the_lines_that_a_box_closes():
    """Along X, a box of 4 is a line: a ring of 4 ranks there has its ends 3 links apart, along Y 1."""
    line = APE128.with_partition("4x1x1")
    torus = line.allocation.torus
    assert (torus.extents, torus.is_closed) == ((4, 1, 1), (False, False, False))
    ring = APE128.with_partition("1x4x1").allocation.torus
    assert ring.is_closed == (False, True, False)


def test_leaves_of_a_fat_tree():
    part = TREE.with_partition("nodes:0-2,7").partition
    assert (part.nodes, part.extents, part.text) == ((0, 1, 2, 7), (), "nodes:0-2,7")
    assert map_ranks(TREE.with_partition("nodes:5,2"), 2) == [5, 2]


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("ape128", "1x4", "3 extents, one for each dimension of ape128, 8x4x4"),
        ("ape128", "1x4x4@0,0", "3 coordinates, one for each dimension"),
        ("ape128", "1x4x5", "a box inside ape128, 8x4x4: dimension Z has the nodes 0 to 3"),
        ("ape128", "4x4x4@5,0,0", "dimension X has the nodes 0 to 7"),
        ("ape128", "0x4x4", "dimension X"),
        ("ape128", "nodes:0-3", "a box such as 8x4x4 on ape128"),
        ("ape128", "plane", "ape128.toml names none; a box such as"),
        ("ape128", "", "ape128.toml names none; a box such as"),
        ("pax", "1x4x4", "nodes:0-3,8 on pax, which is no torus and no mesh"),
        ("pax", "nodes:", "numbers or ranges"),
        ("pax", "nodes:0,0", "each node once"),
        ("pax", "nodes:3-1", "in rising ranges"),
        ("pax", "nodes:0-99999", "nodes of pax, 0 to"),
        ("ideal", "nodes:0", "none: ideal has as many nodes as are asked for"),
    ],
)
def test_what_is_no_partition_is_refused(name, given, expected):
    with pytest.raises(InputError, match="expected") as caught:
        machine(name).with_partition(given)
    assert expected in str(caught.value)
    assert caught.value.name == "partition"


def test_a_machine_file_names_partitions(tmp_path):
    file = tmp_path / "m.toml"
    file.write_text(
        '[machine]\nbase = "ape128"\nname = "m"\ntitle = "t"\nsummary = "s"\n'
        '[partition]\nfront = "4x4x4"\nback = "4x4x4@4,0,0"\n'
    )
    chosen = machine(file, partition="back")
    assert chosen.partition.given == "back"
    assert chosen.partition.nodes[0] == 4
    assert [part.text for part in chosen.partitions] == ["4x4x4@0,0,0", "4x4x4@4,0,0"]
    saved = tmp_path / "saved.toml"
    saved.write_text(chosen.to_toml())
    assert machine(saved, partition="back").partition == chosen.partition
    with pytest.raises(InputError, match="one of front, back, or a box"):
        machine(file, partition="middle")
    assert machine(file, ["network.dims=[8,8,8]"]).with_partition("back").partition.spans == (False, False, False)
    with pytest.raises(MachineError, match=r'partition\.back = "4x4x4@4,0,0": expected a box inside'):
        machine(file, ["network.dims=[4,4,4]"]).with_partition("back")
    with pytest.raises(InputError, match="--partition takes any box"):
        machine(file, ["partition.back=1x1x1"])


def test_a_check_of_the_file_checks_its_partitions(apenet, tmp_path):
    file = tmp_path / "m.toml"
    about = '[machine]\nbase = "ape128"\nname = "m"\ntitle = "t"\nsummary = "s"\n[partition]\n'
    file.write_text(about + 'front = "4x4x4"\n')
    done = apenet("machine", "check", file)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "partitions: front 4x4x4@0,0,0"
    file.write_text(about + 'front = "4x4x5"\n')
    assert "partition.front" in refusal(apenet, "machine", "check", file)
    file.write_text(about + "front = 4\n")
    assert "partition.front" in refusal(apenet, "machine", "check", file)


def test_leaves_that_share_a_switch_share_its_cables(apenet, tmp_path):
    """Two with nodes below the first and the second switch both use the cables from these to the level above."""
    file = tmp_path / "parts.toml"
    file.write_text('[partition]\na = "nodes:0-7,16-23"\nb = "nodes:8-15,24-31"\nc = "nodes:32-47"\n')
    checked = check_partitions(TREE, chosen_partitions(TREE, file, None))
    assert list(checked.shared) == [(0, 1)]
    assert checked.partitions[2].links == ()  # one switch, and no link between switches
    assert all(one.leaving == () for one in checked.partitions)


def test_planes_share_no_link():
    checked = check_partitions(APE128, APE128.split("1x4x4"))
    assert checked.shared == {}
    for one in checked.partitions:
        # Each of 16 nodes sends on four links, along Y and Z.
        assert len(one.links) == 64
        assert one.leaving == one.faults == ()


def test_a_box_longer_than_half_a_ring_is_left_by_its_routes():
    """In a ring of 8, 5 nodes: half-way around, routers with an odd sum of coordinates go the other way."""
    at_five = check_partitions(APE128, [APE128.with_partition("5x1x1").partition]).partitions[0]
    # From 4 to 0, the router of 4 has an even sum and uses +, around the ring.
    assert at_five.leaving == ("(4,0,0)+x", "(5,0,0)+x", "(6,0,0)+x", "(7,0,0)+x")
    at_six = check_partitions(APE128, [APE128.with_partition("6x1x1").partition]).partitions[0]
    # From 5 to 0 and back, 3 links lead through the other two nodes.
    assert set(at_six.leaving) >= {"(5,0,0)+x", "(6,0,0)+x", "(7,0,0)+x", "(0,0,0)-x", "(7,0,0)-x", "(6,0,0)-x"}


def test_halves_that_share_links_are_named(apenet, tmp_path):
    file = tmp_path / "parts.toml"
    file.write_text('[partition]\nsix = "6x1x1"\ntwo = "2x1x1@6,0,0"\n')
    checked = check_partitions(APE128, chosen_partitions(APE128, file, None))
    # Two nodes next to each other use the links between them; from 5 to 0 it is shorter through them.
    assert checked.shared == {(0, 1): ("(6,0,0)+x", "(7,0,0)-x")}
    run = apenet("partition", "check", file, "-m", "ape128")
    assert "six and two share 2 links: (6,0,0)+x, (7,0,0)-x" in run.stdout
    both = json.loads(apenet("partition", "check", file, "-m", "ape128", "--json").stdout)
    assert both["shared"] == [{"partitions": ["six", "two"], "links": ["(6,0,0)+x", "(7,0,0)-x"]}]


def test_common_nodes_are_refused(apenet, tmp_path):
    file = tmp_path / "parts.toml"
    file.write_text('[partition]\none = "4x4x4"\nother = "1x1x1@3,0,0"\n')
    stderr = refusal(apenet, "partition", "check", file, "-m", "ape128")
    assert 'partition = "one and other"' in stderr
    assert "partitions without a common node; both have node 3" in stderr
    for content, expected in (
        ("[partition]\nx = 3\n", "partition.x"),
        ("[partitions]\nx = '1x4x4'\n", "[partition] alone"),
        ("nonsense", "a file in TOML with [partition]"),
        ('[partition]\n"1x4x4" = "1x4x4"\n', "with a letter first"),
    ):
        file.write_text(content)
        assert expected in refusal(apenet, "partition", "list", file, "-m", "ape128")
    assert "a machine that names partitions" in refusal(apenet, "partition", "list", "-m", "ape128")
    assert "extents that divide those" in refusal(apenet, "partition", "list", "-m", "ape128", "--split", "3x4x4")


def test_faults_of_a_partition_are_named():
    faulty = machine(
        "ape128", faults=["node (3,1,0) down @1us", "link (5,0,0)+y down @1us", "link (0,0,0)+x down @1us"]
    )
    parts = {one.partition.origin[0]: one for one in check_partitions(faulty, faulty.split("1x4x4")).partitions}
    assert parts[3].faults == (f"node (3,1,0) down @1us: it has node {3 + 8}",)
    assert parts[5].faults == ("link (5,0,0)+y down @1us: its routes take (5,0,0)+y",)
    assert parts[0].faults == parts[1].faults == ()


def test_the_picture_is_the_same_every_time(apenet, tmp_path):
    pictures = [tmp_path / f"{number}.svg" for number in range(2)]
    for picture in pictures:
        apenet("partition", "draw", "-m", "ape128", "--split", "1x4x4", "--out", picture)
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
    assert "no picture" not in pictures[0].read_text()
    assert "a file that ends in" in refusal(apenet, "partition", "draw", "--split", "1x2x2", "--out", "x.txt")
