"""Machine files of every topology and routing: their meaning, their errors, and that they run."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apenet import bench
from apenet.base.errors import InputError, MachineError
from apenet.machine import machine
from apenet.machine.mapping import map_ranks
from apenet.run.traffic import traffic

FAT_TREE = [
    "network.topology=fat-tree",
    "network.children=[4,3]",
    "network.parents=[2]",
    "network.routing=destination-mod",
]
CROSSBAR = ["network.topology=crossbar", "network.nodes=9"]
ROW = """
router a 3
router b 3
node a:0-1
cable a:2 b:0 slow
node b:1-2
"""
ROW_TABLE = """
a 2-3 2
b 0-1 0
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, to which files named with --set are relative."""
    (tmp_path / "row.txt").write_text(ROW)
    (tmp_path / "routes.txt").write_text(ROW_TABLE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


GRAPH = [
    "network.topology=graph",
    "network.graph_file='row.txt'",
    "network.routing=up-down",
    "network.links.slow.clock_mhz=50",
]
TABLE = [*GRAPH[:2], "network.routing=table", "network.table_file='routes.txt'", GRAPH[3]]


@pytest.mark.parametrize(("chosen", "nodes"), [(FAT_TREE, 12), (CROSSBAR, 9), (GRAPH, 4), (TABLE, 4)])
def test_another_topology_is_a_few_settings(folder, chosen, nodes):
    changed = machine("ape16", chosen)
    changed.wire()
    assert changed.node_count == nodes
    assert changed.dims == ()
    assert changed.shape == f"{nodes} nodes"
    result = bench.pingpong(changed, sizes="16:64", nodes=(0, nodes - 1), layer="card")
    assert all(time > 0 for time in result.times_us)


@pytest.mark.parametrize("chosen", [FAT_TREE, CROSSBAR, TABLE])
def test_order_of_settings_does_not_matter(folder, chosen):
    files = [machine("ape16", order).file.network for order in itertools.permutations(chosen, len(chosen))]
    assert all(file == files[0] for file in files)


def test_a_twist_shares_the_load_of_an_all_to_all():
    times = [
        bench.alltoall(
            machine(
                "torus-slice",
                [f"network.topology={topology}", "network.routing=dimension-order", "network.dims=[2,2,4]"],
            ),
            sizes="65536:65536",
            algorithm="direct",
        ).times_us[0]
        for topology in ("torus", "twisted-torus")
    ]
    assert times[0] > 1.2 * times[1]
    with pytest.raises(MachineError) as caught:
        machine("ape16", ["network.topology=twisted-torus", "network.dims=[4,6]"]).wire()
    assert (caught.value.key, str(caught.value.value)) == ("network.dims", "[4, 6]")


def test_an_adaptive_torus_runs_and_keeps_order():
    adaptive = machine("ape16", ["network.routing=minimal-adaptive", "router.virtual_channels=3"])
    adaptive.wire()
    assert all(time > 0 for time in bench.alltoall(adaptive, sizes="4096:4096").times_us)
    with pytest.raises(MachineError) as caught:
        machine("ape16", ["network.routing=minimal-adaptive"]).wire()
    assert caught.value.key == "router.virtual_channels"
    assert "at least one for each of the 3 classes" in caught.value.expected


def test_a_fat_tree_with_random_ways_up_runs_and_keeps_order():
    tree = machine("ape16", [*FAT_TREE[:-1], "network.routing=random-up"])
    tree.wire()
    assert all(time > 0 for time in bench.alltoall(tree, sizes="4096:4096").times_us)


def test_levels_have_links_of_their_own():
    three = [
        "network.topology=fat-tree",
        "network.children=[2,2,2]",
        "network.parents=[1,2]",
        "network.cables=[2,1]",
        "network.routing=up-down",
        "network.link.middle.latency_ns=500",
    ]
    base = machine("ape16", three).description().base_units()
    assert [base[f"network.links[{level}].latency_ns"] for level in range(2)] == [70_000, 500_000]
    assert base["network.cables"] == [2, 1]


def test_cables_of_a_graph_have_links_of_their_own(folder):
    base = machine("ape16", GRAPH).description().base_units()
    assert [base[f"network.links[{kind}].clock_mhz"] for kind in range(2)] == [115_000_000, 50_000_000]


def test_the_cable_to_the_switch_takes_its_time():
    near = bench.pingpong(machine("ape16", CROSSBAR), sizes="16:16", nodes=(0, 5), layer="card")
    far = bench.pingpong(
        machine("ape16", [*CROSSBAR, "router.port_latency_ns=100"]), sizes="16:16", nodes=(0, 5), layer="card"
    )
    assert far.times_us[0] - near.times_us[0] == pytest.approx(0.2)


def test_cube_keys_can_name_any_routing(folder):
    (folder / "ring.txt").write_text("(0-1,*,*) (2-3,*,*) +x\n(2-3,*,*) (0-1,*,*) +x\n" + _rest_of_a_table())
    with pytest.raises(MachineError) as caught:
        machine("ape16", ["network.routing=table", "network.table_file=ring.txt", "network.dims=[4,2,2]"]).wire()
    assert caught.value.key == "network.table_file"
    assert "class 0 -> (1,0,0)+x class 0 -> " in caught.value.expected
    machine("ape16", ["network.routing=up-down"]).wire()


def _rest_of_a_table():
    lines = [
        f"({x},*,*) ({x + step},*,*) {'+x' if step > 0 else '-x'}" for x, step in ((0, 1), (1, -1), (2, 1), (3, -1))
    ]
    lines += ["(*,0,*) (*,1,*) +y", "(*,1,*) (*,0,*) -y", "(*,*,0) (*,*,1) +z", "(*,*,1) (*,*,0) -z"]
    return "\n".join(lines) + "\n"


BAD = [
    (["network.topology=fat-tree", "network.routing=up-down"], "network.children", "what network.topology"),
    (
        [*FAT_TREE, "network.routing=dimension-order"],
        "network.routing",
        "'destination-mod', 'random-up', 'up-down', 'table'",
    ),
    ([*FAT_TREE, "network.nodes=3"], "network.nodes", "children, parents, routing, link"),
    ([*FAT_TREE, "network.children=[4]"], "network.children", "list of 2 or 3"),
    ([*FAT_TREE, "network.children=[4,0]"], "network.children[1]", "at least 1"),
    ([*FAT_TREE, "network.parents=2"], "network.parents", "list of 1 or 2"),
    ([*FAT_TREE, "network.cables=[1,1,1]"], "network.cables", "list of 1 or 2"),
    ([*FAT_TREE, "network.link.middle.clock_mhz=3"], "network.link.middle", "2 levels has leaf"),
    ([*FAT_TREE, "network.link.x.clock_mhz=3"], "network.link.x", "2 levels has leaf"),
    (["network.link.leaf.clock_mhz=3"], "network.link.leaf", "dims has 3 dimensions"),
    (["network.topology=crossbar"], "network.nodes", "what network.topology"),
    (FAT_TREE[:3], "network.routing", "needs: one of 'destination-mod', 'random-up', 'up-down'"),
    (["network.topology=crossbar", "network.nodes=0"], "network.nodes", "at least 1"),
    (["network.topology=graph", "network.routing=up-down"], "network.graph_file", "what network.topology"),
    ([*GRAPH[:3], "network.links.slow.clok_mhz=3"], "network.links.slow.clok_mhz", '"clock_mhz"'),
    (["network.topology=fat_tree"], "network.topology", "'fat-tree'"),
    (["network.chlidren=[4,4]"], "network.chlidren", '"children"'),
    (["network.routing=table"], "network.table_file", 'with network.routing = "table"'),
    (["network.table_file='routes.txt'"], "network.table_file", 'with network.routing = "table"'),
    (["network.routing=tabel"], "network.routing", "'table'"),
]


@pytest.mark.parametrize(("chosen", "key", "expected"), BAD)
def test_invalid_settings_are_named(folder, chosen, key, expected):
    with pytest.raises(MachineError) as caught:
        machine("ape16", chosen)
    assert caught.value.key == key
    assert expected in caught.value.expected


WIRED_BAD = [
    ([*FAT_TREE, "network.cables=[1,1]"], "network.cables", "1 number(s)"),
    ([*FAT_TREE, "network.parents=[4000]", "network.cables=[1000]"], "network.parents", "at most 4096 ports"),
    (["network.topology=crossbar", "network.nodes=100000"], "network.nodes", "1 to 16384"),
    (
        ["network.routing=dimension-order-bubble", "router.buffer_bytes=300"],
        "router.buffer_bytes",
        "room for two of the largest packets",
    ),
    (
        ["network.routing=minimal-adaptive-bubble", "router.switching=wormhole"],
        "router.switching",
        "virtual-cut-through",
    ),
    (GRAPH[:3], "network.graph_file line 5", "[network.links.NAME]: it has none"),
]


@pytest.mark.parametrize(("chosen", "key", "expected"), WIRED_BAD)
def test_wiring_errors_are_named(folder, chosen, key, expected):
    with pytest.raises(MachineError) as caught:
        machine("ape16", chosen).wire()
    assert caught.value.key == key
    assert expected in caught.value.expected


def test_files_are_looked_for_beside_the_machine_file(folder):
    place = folder / "machines"
    place.mkdir()
    saved = machine("ape16", TABLE)
    for name, content in saved.saved().items():
        (place / name).write_bytes(content)
    assert {path.name for path in place.iterdir()} == {"machine.toml", "graph.txt", "table.txt"}
    read = machine(place / "machine.toml")
    read.wire()
    assert read.node_count == 4
    assert read.description().base_units()["network.graph_file"] == ROW
    (place / "table.txt").unlink()
    with pytest.raises(MachineError) as caught:
        machine(place / "machine.toml")
    assert caught.value.key == "network.table_file"
    assert "a file that can be read" in caught.value.expected


def test_nodes_of_a_tree_are_numbers(tmp_path):
    tree = machine("ape16", FAT_TREE)
    assert map_ranks(tree, 12) == list(range(12))
    with pytest.raises(InputError) as caught:
        map_ranks(tree, 13)
    assert "ape16 has 12 nodes" in caught.value.expected
    lines = tmp_path / "map"
    lines.write_text("3\n11\n")
    assert map_ranks(tree, 2, 1, lines) == [3, 11]
    lines.write_text("3\n1 1\n")
    with pytest.raises(InputError) as caught:
        map_ranks(tree, 2, 1, lines)
    assert caught.value.expected == "a node's number or its host name"


counts = st.lists(st.integers(0, 5), max_size=4)


@settings(max_examples=60)
@given(counts, counts, counts)
def test_any_tree_is_built_or_refused(children, parents, cables):
    shape = [f"network.children={children}", f"network.parents={parents}", f"network.cables={cables}"]
    try:
        tree = machine("ape16", [*FAT_TREE[:1], FAT_TREE[3], *shape])
        assert tree.node_count == math.prod(children)
        tree.wire()
    except MachineError as error:
        assert error.key.startswith(("network.children", "network.parents", "network.cables"))


def test_a_wrong_line_is_named_with_its_file_by_every_command(folder):
    (folder / "broken.txt").write_text("router a 2\nnode a:0\ncable a:1\n")
    wrong = machine("iq-router-v1", [*GRAPH[:1], f"network.graph_file='{folder}/broken.txt'", GRAPH[2]])
    for command in (wrong.wire, lambda: traffic(wrong), lambda: bench.halo(wrong)):
        with pytest.raises(MachineError, match=r"iq-router-v1\.toml: .*broken\.txt: network\.graph_file line 3"):
            command()
