"""Machine files that state only how they differ from a base."""

import tomllib

import pytest

from apenet.base.errors import MachineError
from apenet.machine import machine
from apenet.machine.quantity import quantities

GRAPH = """router west 2
router east 2
node west:0
node east:0
cable west:1 east:1
"""

DERIVED = """
[machine]
name = "mine"
base = "ape16"
title = "t"
summary = "s"
"""


def derived(tmp_path, text="", name="mine"):
    path = tmp_path / f"{name}.toml"
    path.write_text(DERIVED.replace('"mine"', f'"{name}"') + text, encoding="utf-8")
    return path


def test_a_machine_is_as_its_base_where_it_says_nothing(tmp_path):
    other = '[bus]\nclock_mhz = { value = 66, class = "assumed", source = "another bus" }\n'
    mine, base = machine(derived(tmp_path, other)), machine("ape16")
    assert mine.name == "mine"
    assert mine.file.bus.clock_mhz.source == "another bus"
    changed = dict(quantities(mine.file)) | {"bus.clock_mhz": base.file.bus.clock_mhz}
    assert changed == dict(quantities(base.file))
    # What is kept of it says everything, and needs no base.
    assert "base" not in tomllib.loads(mine.to_toml())["machine"]
    assert machine(derived(tmp_path, name="again")).file.network == base.file.network
    assert machine("ape16").file.network.dims.value == [4, 2, 2]
    assert machine("ape16").file.router == machine("ape128").file.router


def test_results_are_those_of_the_machine_itself(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(DERIVED.replace("ape16", "ape128"), encoding="utf-8")
    assert machine("ape128").file.results
    assert not machine(path).file.results


def test_another_topology_or_card_replaces_what_described_the_old(tmp_path):
    crossbar = """[network]
topology = { value = "crossbar", class = "assumed", source = "s" }
nodes = { value = 5, class = "assumed", source = "s" }
"""
    mine = machine(derived(tmp_path, crossbar))
    assert mine.node_count == 5
    assert mine.file.network.link is None
    assert mine.file.router == machine("ape16").file.router
    with pytest.raises(MachineError) as refused:
        machine(derived(tmp_path, '[card]\nkind = "extoll"\n'))
    assert refused.value.key.startswith("card.")


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ('"ape17"', "the name of a machine"),
        ("5", "the name of a machine"),
        ('""', "the name of a machine"),
        ('"mine.toml"', "not derived from this one"),
        ('"other.toml"', "not derived from this one"),
        ('"../nothing.toml"', "the path of a machine file"),
    ],
)
def test_bad_bases_are_named(tmp_path, base, expected):
    (tmp_path / "other.toml").write_text(DERIVED.replace('"ape16"', '"mine.toml"'), encoding="utf-8")
    path = tmp_path / "mine.toml"
    path.write_text(DERIVED.replace('"ape16"', base), encoding="utf-8")
    with pytest.raises(MachineError) as refused:
        machine(path)
    assert refused.value.key == "machine.base"
    assert expected in refused.value.expected


def test_a_fault_of_the_base_is_reported_there(tmp_path):
    text = machine("ape16").to_toml()
    (tmp_path / "other.toml").write_text(text.replace("clock_mhz = { value = 100,", "clock_mhz = { value = -1,"))
    path = tmp_path / "mine.toml"
    path.write_text(DERIVED.replace('"ape16"', '"other.toml"'), encoding="utf-8")
    with pytest.raises(MachineError, match=r"other\.toml: bus\.clock_mhz = -1"):
        machine(path)


def test_files_that_a_base_names_are_beside_the_base(tmp_path):
    (tmp_path / "lib").mkdir()
    graph = """[network]
topology = { value = "graph", class = "assumed", source = "s" }
graph_file = { value = "cables.txt", class = "assumed", source = "s" }
routing = { value = "up-down", class = "assumed", source = "s" }

[network.link]
clock_mhz = { value = 100, class = "assumed", source = "s" }
word_bytes = { value = 8, class = "assumed", source = "s" }
word_cycles = { value = 1, class = "assumed", source = "s" }
latency_ns = { value = 10, class = "assumed", source = "s" }
"""
    derived(tmp_path / "lib", graph, name="lower")
    (tmp_path / "lib" / "cables.txt").write_text(GRAPH, encoding="utf-8")
    path = tmp_path / "mine.toml"
    path.write_text(DERIVED.replace('"ape16"', '"lib/lower.toml"'), encoding="utf-8")
    assert machine(path).node_count == 2


def test_a_key_of_the_machine_section_above_it_is_told_its_section(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('base = "ape16"\n')
    with pytest.raises(MachineError, match=r'base = "ape16": expected this key in the section \[machine\]'):
        machine(path)
