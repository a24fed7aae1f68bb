"""Machine.plot: the cables, nodes and numbers that it shows."""

import re
from collections import Counter
from pathlib import Path

import pytest
from matplotlib.collections import LineCollection

from apenet.base.errors import InputError
from apenet.machine import machine

FOUR_SWITCHES = Path(__file__).resolve().parents[3] / "docs" / "reference" / "networks" / "four-switches.txt"
TWISTED = ["network.topology=twisted-torus", "network.dims=[4,8]", "network.routing=dimension-order"]


def lines_of(figure):
    """The ends of each drawn cable, and whether it is bowed."""
    found = []
    for drawn in figure.axes[0].collections:
        if isinstance(drawn, LineCollection) and drawn.get_zorder() > 0:
            for line in drawn.get_segments():
                ends = [tuple(round(float(value), 6) for value in line[at]) for at in (0, -1)]
                found.append((*ends, len(line) > 2))
    return found


def legend_of(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def marks_of(figure, label):
    return next(line for line in figure.axes[0].get_lines() if line.get_label() == label).get_xdata()


def test_a_mesh_has_no_cable_around():
    lines = lines_of(machine("extoll-64-2d", ["network.dims=[3,2]"]).plot())
    assert len(lines) == 2 * 2 + 3
    assert not any(is_bowed for *_, is_bowed in lines)


def test_a_torus_closes_its_lines_by_bowed_cables():
    lines = lines_of(machine("ape16").plot())
    assert len(lines) == 16 * 3
    # A line of four nodes has one cable around, a line of two as well: of its two cables one is straight.
    assert sum(is_bowed for *_, is_bowed in lines) == 4 + 8 + 8


def test_the_cables_around_a_twisted_torus_lead_to_the_other_half():
    lines = lines_of(machine("iq-router-v1", TWISTED).plot())
    around = {(start, end) for start, end, is_bowed in lines if is_bowed}
    assert len(lines) == 32 * 2
    assert {((3, y), (0, (y + 4) % 8)) for y in range(8)} <= around
    assert {((x, 7), (x, 0)) for x in range(4)} <= around
    assert len(around) == 8 + 4


def test_a_fat_tree_has_its_switches_in_levels():
    figure = machine("pax").plot()
    lines = lines_of(figure)
    assert len(set(lines)) == 9 * 8
    assert {(start[1], end[1]) for start, end, _ in lines} == {(0, 1)}
    assert len(marks_of(figure, "node")) == 144
    assert len(marks_of(figure, "router")) == 9 + 8


def test_cables_of_a_graph_have_their_own_numbers():
    settings = ["network.topology=graph", f"network.graph_file={FOUR_SWITCHES}", "network.routing=up-down"]
    figure = machine("ape16", [*settings, "network.links.trunk.clock_mhz=230"]).plot()
    # 230 MHz, 16 bytes in 3 clocks: twice the rate of the others.
    assert legend_of(figure)[:2] == [
        "link: 0.6133 GB/s (derived), 70 ns (assumed)",
        "links.trunk: 1.227 GB/s (set), 70 ns (assumed)",
    ]
    assert len(lines_of(figure)) == 5


def test_the_caption_counts_the_classes_of_all_numbers():
    chosen = machine("ape16", ["network.link.latency_ns=99"])
    figure = chosen.plot()
    # 10 cycles of 115 MHz; 16 bytes at 133 MHz.
    caption = figure.get_supxlabel()
    assert caption.startswith("card apelink, 2.128 GB/s to its router; router 86.957 ns; numbers: ")
    counted = {name: int(count) for count, name in re.findall(r"(\d+) (\w+)", caption.partition("numbers: ")[2])}
    classes = Counter(re.findall(r'class = "(\w+)"', chosen.to_toml().partition("[results")[0]))
    assert counted["set"] == 1
    assert sum(counted.values()) == sum(classes.values())


def test_rails_and_faults_are_named():
    assert "first of the rails first, ib" in machine("quong").plot().get_supxlabel()
    assert "rails" not in machine("quong", rail="ib").plot().get_supxlabel()
    assert "faults are not drawn" in machine("ape16", faults=["link (0,0,0)+x down @10us"]).plot().get_supxlabel()


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [("ideal", [], "a machine with a network"), ("ape128", ["network.dims=[17,16,16]"], "at most 4096 nodes")],
)
def test_machines_that_are_not_drawn(name, settings, expected):
    with pytest.raises(InputError, match=expected):
        machine(name, settings).plot()


@pytest.mark.parametrize("name", ["ape128", "extoll-64", "l5530-pair", "my-cluster", "qpace-8x16x16"])
def test_the_same_machine_gives_the_same_picture(name, tmp_path):
    pictures = []
    for file in ("one.png", "other.png"):
        machine(name).plot().savefig(tmp_path / file, dpi=40)
        pictures.append((tmp_path / file).read_bytes())
    assert pictures[0] == pictures[1]
