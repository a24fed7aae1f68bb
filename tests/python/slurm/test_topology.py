"""A machine's topology for Slurm, and a machine from one."""

import re

import pytest
import yaml
from typer.testing import CliRunner

from apenet.base.errors import InputError
from apenet.cli import app
from apenet.machine import machine, machines
from apenet.slurm.topology import read_topology, topology_conf, topology_yaml, tree_of


def invoke(*arguments):
    return CliRunner().invoke(app, ["machine", *map(str, arguments)])


@pytest.mark.parametrize("name", [one.name for one in machines() if one.topology.has_routers])
def test_each_node_of_a_machine_is_named_once(name):
    one = machine(name)
    description = one.description()
    expected = [description.node_name(node) for node in range(one.node_count)]
    (topology,) = yaml.safe_load(topology_yaml(one))
    assert list(topology)[:2] == ["topology", "cluster_default"]
    (kind,) = set(topology) - {"topology", "cluster_default"}
    parts = topology[kind]
    found = {"torus3d": "toruses", "tree": "switches", "block": "blocks"}[kind]
    assert ",".join(part["nodes"] for part in parts[found] if "nodes" in part).split(",") == expected


def test_a_torus_has_a_placement_for_each_box_that_divides_it():
    (topology,) = yaml.safe_load(topology_yaml(machine("ape128")))
    (torus,) = topology["torus3d"]["toruses"]
    assert torus["dims"] == {"x": 8, "y": 4, "z": 4}
    assert torus["nodes"].split(",")[:9][1::7] == ["ape128-1-0-0", "ape128-0-1-0"]
    shapes = [tuple(one["dims"].values()) for one in torus["placements"]]
    assert len(set(shapes)) == len(shapes) == 4 * 3 * 3
    assert (1, 4, 4) in shapes
    assert all(most % extent == 0 for shape in shapes for most, extent in zip((8, 4, 4), shape, strict=True))
    flat = machine("ape16").with_settings("network.dims=[4,4]")
    (topology,) = yaml.safe_load(topology_yaml(flat))
    assert topology["torus3d"]["toruses"][0]["dims"] == {"x": 4, "y": 4, "z": 1}


def test_a_mesh_is_blocks():
    (topology,) = yaml.safe_load(topology_yaml(machine("extoll-64")))
    assert topology["block"]["block_sizes"] == [16]
    assert len(topology["block"]["blocks"]) == 4


def test_a_fat_tree_is_a_tree():
    switches = tree_of(machine("my-cluster"))
    assert [len(one.nodes) for one in switches] == [8, 8, 8, 8, 0]
    assert switches[-1].children == tuple(one.name for one in switches[:-1])
    lines = topology_conf(machine("my-cluster")).splitlines()
    assert lines[0].startswith("SwitchName=level0-0 Nodes=my-cluster-0,my-cluster-1,")
    assert lines[-1] == "SwitchName=level1-0 Switches=level0-0,level0-1,level0-2,level0-3"
    three = machine("my-cluster").with_settings(
        "network.children=[2,2,2]", "network.parents=[2,2]", "network.cables=[1,1]"
    )
    assert [len(one.children) for one in tree_of(three)] == [0, 0, 0, 0, 2, 2, 2]


def test_what_has_no_such_topology_is_refused():
    for name, form, said in (
        ("ape16", "conf", "a tree of switches, which ape16 is not"),
        ("ideal", "yaml", "a machine with a network"),
        ("ape16", "json", "yaml or conf"),
    ):
        done = invoke("export", name, "--slurm", form)
        assert isinstance(done.exception, InputError)
        assert said in str(done.exception)


@pytest.mark.parametrize(("name", "nodes"), [("ape128", "8x4x4"), ("my-cluster", "32 nodes")])
def test_a_machine_from_its_own_topology(name, nodes, tmp_path):
    file = tmp_path / "topology.yaml"
    file.write_text(invoke("export", name, "--slurm", "yaml").stdout)
    done = invoke("new", tmp_path / "new.toml", "--slurm", file, "--link", "100Gbit")
    assert done.exit_code == 0, done.output
    made, before = machine(tmp_path / "new.toml"), machine(name)
    assert (made.dims, made.node_count) == (before.dims, before.node_count)
    assert nodes in done.stdout
    assert len(tree_of(made)) == len(tree_of(before))


def test_the_default_topology_is_read_with_its_expressions_of_hosts(tmp_path):
    file = tmp_path / "topology.yaml"
    flat = "- {topology: other, flat: true}\n- topology: main\n  cluster_default: true\n  tree:\n    switches:\n"
    leaves = "    - {switch: top, children: 's[1-2]'}\n    - {switch: s1, nodes: 'node[01-04,9],x[1-2]a[1-2]'}\n"
    file.write_text(flat + leaves + "    - {switch: s2, nodes: 'node[5-8,10-13],last'}\n")
    assert read_topology(file) == type(read_topology(file))("18", "fat-tree", 9)
    for text in ("", "- a", "a: 1", "- {topology: x, flat: true}", flat + leaves, "- [", "\0"):
        file.write_text(text + ("    - {switch: s2, nodes: 'node[5-8]'}\n" if "switches" in text else ""))
        with pytest.raises(InputError, match=re.escape(f'slurm = "{file}"')):
            read_topology(file)


@pytest.mark.parametrize(
    "options", [[], ["--nodes", "8"], ["--nodes", "8", "--topology", "torus", "--slurm", "x"], ["--topology", "torus"]]
)
def test_nodes_and_topology_or_a_file(options, tmp_path):
    done = invoke("new", tmp_path / "new.toml", "--link", "100Gbit", *options)
    assert isinstance(done.exception, InputError)
    assert "--nodes and --topology, or --slurm FILE" in str(done.exception)
