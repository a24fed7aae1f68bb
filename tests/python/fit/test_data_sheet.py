"""Machine files from a few numbers of a data sheet: these numbers hold, all others say that they are assumed."""

import math

import pytest
from typer.testing import CliRunner

from apenet import bench
from apenet.base.errors import InputError, MachineError
from apenet.cli import app
from apenet.fit.data_sheet import Sheet, new_machine, stream_gb_s
from apenet.machine import machine
from apenet.machine.assumptions import assumptions
from apenet.machine.quantity import quantities

SHEETS = {
    "torus": (Sheet("64", "torus", "200Gbit", latency="1.2us"), 64, 25e9, 1.2),
    "mesh": (Sheet("8x4x4", "mesh", "25GB/s", bus="pcie5x16"), 128, 25e9, None),
    "tree": (Sheet("128", "fat-tree", "400 Gb/s", latency="1500ns", leaf=16, uplinks=8), 128, 50e9, 1.5),
    "switch": (Sheet("16", "fat-tree", "10Gbps"), 16, 1.25e9, None),
    "ring": (Sheet("97", "torus", "1Gbit"), 97, 0.125e9, None),
}


@pytest.mark.parametrize("name", SHEETS)
def test_the_numbers_of_the_sheet_hold(tmp_path, name):
    sheet, nodes, rate, latency_us = SHEETS[name]
    made = new_machine(tmp_path / "new.toml", sheet)
    link = made.file.network.link
    assert made.node_count == nodes
    assert link.clock_mhz.value * 1e6 * link.word_bytes.value / link.word_cycles.value == rate
    if latency_us is not None:
        assert math.isclose(bench.pingpong(made, sizes=8).times_us[0], latency_us, abs_tol=1e-5)
    stream = bench.unidirectional(made, sizes="1M").times_us[0]
    payload_share = 4096 / (4096 + made.file.card.header_bytes.value + made.file.card.trailer_bytes.value)
    assert 0.9 * payload_share <= 2**20 / (stream * 1e-6) / rate <= payload_share


def test_the_bus_may_be_slower_than_the_link(tmp_path):
    """PCI Express gen6 x16 is 121 GB/s, gen3 x8 is 7.9 GB/s, less a clock of 32 bytes for each 256."""
    made = new_machine(tmp_path / "fast.toml", Sheet("32", "fat-tree", "1.6Tbit"))
    assert "the fastest PCI Express" in made.file.bus.clock_mhz.source
    assert 95 < stream_gb_s(made) < 121 * 8 / 9
    slow = new_machine(tmp_path / "slow.toml", Sheet("64", "torus", "200Gbit", bus="pcie3x8"))
    assert 6 < stream_gb_s(slow) < 7.88 * 8 / 9


def test_a_tree_shares_its_uplinks(tmp_path):
    network = new_machine(tmp_path / "new.toml", SHEETS["tree"][0]).file.network
    assert (network.children.value, network.parents.value) == ([16, 8], [8])


@pytest.mark.parametrize(("nodes", "dims"), [("64", [4, 4, 4]), ("128", [8, 4, 4]), ("30", [5, 3, 2]), ("8x2", [8, 2])])
def test_a_torus_is_as_cubic_as_it_can_be(tmp_path, nodes, dims):
    assert list(new_machine(tmp_path / "new.toml", Sheet(nodes, "torus", "10Gbit")).dims) == dims


@pytest.mark.parametrize("name", ["torus", "tree"])
def test_each_number_says_what_it_is(tmp_path, name):
    """None is published; assumed times have a range, and each end of it is a machine."""
    made = new_machine(tmp_path / "new.toml", SHEETS[name][0])
    found = dict(quantities(made.file))
    assert {one.origin for one in found.values()} == {"derived", "fitted", "assumed"}
    assert [key for key, one in found.items() if one.origin == "fitted"] == [
        "software.card.send_us", "software.card.receive_us"
    ]  # fmt: skip
    ranges = assumptions(made)
    assert len(ranges) > 20
    for one in ranges:
        assert one.low == pytest.approx(one.value / 2)
        for share in (0, 1):
            made.with_settings(one.at(share)).wire()


def test_the_same_sheet_gives_the_same_file_and_other_files_are_kept(tmp_path):
    first = new_machine(tmp_path / "a.toml", SHEETS["torus"][0])
    text = first.path.read_text()
    assert text.startswith("# Written by apenet ")
    assert "--nodes 64 --topology torus --link 200Gbit --latency 1.2us" in text.splitlines()[0]
    new_machine(tmp_path / "a.toml", SHEETS["torus"][0])
    assert first.path.read_text() == text
    own = tmp_path / "own.toml"
    own.write_text(machine("ape16").to_toml())
    with pytest.raises(InputError, match="kept"):
        new_machine(own, SHEETS["torus"][0])


@pytest.mark.parametrize(
    ("sheet", "said"),
    [
        (Sheet("1", "torus", "1Gbit"), "--nodes"),
        (Sheet("0x4", "torus", "1Gbit"), "--nodes"),
        (Sheet("99999999", "torus", "1Gbit"), "--nodes"),
        (Sheet("many", "torus", "1Gbit"), "--nodes"),
        (Sheet("4x4", "fat-tree", "1Gbit"), "--nodes"),
        (Sheet("64", "ring", "1Gbit"), "--topology"),
        (Sheet("64", "torus", "fast"), "--link"),
        (Sheet("64", "torus", "0Gbit"), "--link"),
        (Sheet("64", "torus", "10Gbit", bus="isa"), "--bus"),
        (Sheet("64", "torus", "10Gbit", latency="soon"), "--latency"),
        (Sheet("64", "torus", "10Gbit", latency="1ns"), "--latency"),
        (Sheet("64", "torus", "10Gbit", leaf=8), "--leaf"),
        (Sheet("64", "torus", "10Gbit", uplinks=8), "--uplinks"),
        (Sheet("64", "fat-tree", "10Gbit", leaf=7), "--leaf"),
        (Sheet("64", "fat-tree", "10Gbit", uplinks=0), "--uplinks"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(tmp_path, sheet, said):
    with pytest.raises((InputError, MachineError), match=said):
        new_machine(tmp_path / "new.toml", sheet)
    assert list(tmp_path.iterdir()) == []


def test_the_command_counts_the_classes(tmp_path):
    file = tmp_path / "new.toml"
    done = CliRunner().invoke(
        app, ["machine", "new", str(file), "--nodes", "8", "--topology", "torus", "--link", "10Gbit"]
    )
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"{file}: 2x2x2, torus; 8 derived, 77 assumed")
