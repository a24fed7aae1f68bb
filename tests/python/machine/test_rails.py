"""Machines whose nodes have several cards: `[rail.NAME]`, `--rail`, and one card's results beside another."""

import json
import tomllib

import pytest

import apenet
from apenet.base.errors import InputError, MachineError
from apenet.machine import machine, machine_names
from apenet.machine.quantity import quantities

SECOND = """
[machine]
name = "mine"
base = "ape16"
title = "t"
summary = "s"

[rail.ib]
base = "pax"
slot = { value = "SLOT", class = "assumed", source = "s" }
[rail.ib.network]
topology = { value = "crossbar", class = "assumed", source = "s" }
nodes = { value = 16, class = "assumed", source = "s" }
"""


def written(tmp_path, text=SECOND, slot="own"):
    path = tmp_path / "mine.toml"
    path.write_text(text.replace("SLOT", slot), encoding="utf-8")
    return path


def test_a_rail_is_as_its_base_where_it_says_nothing(tmp_path):
    mine = machine(written(tmp_path))
    pax = machine("pax").file
    rail = mine.file.rail["ib"]
    assert mine.rails == ("first", "ib")
    assert (rail.card, rail.router, rail.bus, rail.software) == (pax.card, pax.router, pax.bus, pax.software)
    assert rail.network.nodes.value == 16
    assert rail.network.children is None
    assert mine.file.network == machine("ape16").file.network
    mine.wire()


def test_a_rail_in_a_shared_slot_has_no_bus_of_its_own(tmp_path):
    mine = machine(written(tmp_path, slot="shared"))
    assert mine.file.rail["ib"].bus is None
    assert mine.with_rail("ib").file.bus == mine.file.bus
    mine.wire()
    text = SECOND + '[rail.ib.bus]\nclock_mhz = { value = 1, class = "assumed", source = "s" }\n'
    with pytest.raises(MachineError) as caught:
        machine(written(tmp_path, text, "shared"))
    assert caught.value.key.startswith("rail.ib.bus")


def test_one_rail_alone_is_a_machine(tmp_path):
    mine = machine(written(tmp_path))
    alone = mine.with_rail("ib")
    assert alone.rails == ("first",)
    assert alone.file.card.kind == "hca"
    assert alone.file.host == mine.file.host
    assert alone.name == "mine"
    assert not machine("quong").with_rail("ib").file.results
    assert machine("quong", rail="first").file.card == machine("quong").file.card
    with pytest.raises(InputError, match="first, ib"):
        mine.with_rail("eth")


def test_keys_of_a_rail_can_be_set(tmp_path):
    path = written(tmp_path)
    changed = machine(
        path,
        [
            "rail.ib.card.mtu_bytes=4096",
            "rail.ib.network.topology=fat-tree",
            "rail.ib.network.children=[4,4]",
            "rail.ib.network.parents=[2]",
            "rail.ib.network.routing=destination-mod",
            "rail.ib.network.link.clock_mhz=250",
            "rail.ib.network.link.word_bytes=16",
            "rail.ib.network.link.word_cycles=1",
            "rail.ib.network.link.latency_ns=25",
        ],
    )
    assert changed.file.rail["ib"].card.mtu_bytes.value == 4096
    assert changed.with_rail("ib").node_count == 16
    changed.wire()
    for setting, key in (
        ("rail.ib.card.mtu_bites=1", "rail.ib.card.mtu_bites"),
        ("rail.ib.card.mtu_bytes=0", "rail.ib.card.mtu_bytes"),
        ("rail.ib.network.nodes=8", "rail.ib.network"),
    ):
        with pytest.raises(MachineError) as caught:
            machine(path, [setting]).wire()
        assert caught.value.key == key


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('base = "pax"', "base = 3", "rail.ib.base"),
        ('base = "pax"', 'base = "paxx"', "rail.ib.base"),
        ('base = "pax"', 'base = "mine.toml"', "rail.ib.base"),
        ('slot = { value = "SLOT"', 'slot = { value = "none"', "rail.ib.slot"),
    ],
)
def test_mistakes_are_named(tmp_path, old, new, key):
    with pytest.raises(MachineError) as caught:
        machine(written(tmp_path, SECOND.replace(old, new, 1)))
    assert caught.value.key == key


def test_the_first_rail_has_no_section(tmp_path):
    with pytest.raises(MachineError) as caught:
        machine(written(tmp_path, SECOND.replace("rail.ib", "rail.first")))
    assert caught.value.key == "rail.first"


@pytest.mark.parametrize("name", [name for name in machine_names() if len(machine(name).rails) > 1])
def test_every_value_of_a_rail_has_class_and_source(name):
    found = [quantity for key, quantity in quantities(machine(name).file) if key.startswith("rail.")]
    assert len(found) > 15
    assert all(quantity.origin in ("published", "derived", "assumed") and quantity.source for quantity in found)


def test_what_is_kept_of_a_machine_has_its_rails(tmp_path):
    kept = machine("quong").saved()["machine.toml"].decode()
    assert "base" not in tomllib.loads(kept)["rail"]["ib"]
    path = tmp_path / "kept.toml"
    path.write_text(kept, encoding="utf-8")
    assert machine(path).file == machine("quong").file


def test_programs_without_a_choice_use_the_first_rail():
    both, first, second = (
        apenet.bench.pingpong(machine("quong", rail=rail), sizes=[8, 2**20]).times_us.tolist()
        for rail in (None, "first", "ib")
    )
    assert both == first
    assert second[0] < first[0]


def test_the_rail_is_a_condition_of_the_result(tmp_path):
    trace = tmp_path / "one.goal"
    trace.write_text("num_ranks 2\nrank 0 {\nsend 8b to 1 tag 0\n}\nrank 1 {\nrecv 8b from 0 tag 0\n}\n")
    apenet.replay(trace, machine=machine("quong", rail="ib"), out=tmp_path / "run")
    assert json.loads((tmp_path / "run" / "command.json").read_text())["rail"] == "ib"


def test_before_its_rework_the_firmware_differs_in_what_the_measurements_do_not_use():
    """One queue and one port: two processes on two nodes need no more."""
    for measure in (apenet.bench.pingpong, apenet.bench.bidirectional):
        stable, reworked = (measure(machine(name), sizes=[16, 2**20]) for name in ("ape128-stable", "ape128"))
        assert stable.times_us.tolist() == reworked.times_us.tolist()
    assert machine("ape128-stable").ports == 1
    changed = {
        key
        for key, one in quantities(machine("ape128-stable").file)
        if one != dict(quantities(machine("ape128").file)).get(key)
    }
    assert changed == {"card.queues", "card.ports"}


def test_a_rail_that_is_no_table_is_refused(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[machine]\nname = "mine"\nbase = "quong"\ntitle = "t"\nsummary = "s"\n[rail]\nib = 3\n')
    with pytest.raises(MachineError, match=r"mine.toml: rail.ib = 3: expected"):
        machine(path)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        (
            "[rail.ib.host]",
            r"rail\.ib\.host = a table: expected one of slot, .* software in a rail: \[host\] is of the whole",
        ),
        ('[rail."in band"]', r'rail\."in band" = a table: expected a rail\'s name of 1 to 24 letters'),
        ('[rail."x\\ny"]', r'rail\."x\\ny" = a table: expected a rail\'s name'),
    ],
)
def test_what_a_rail_cannot_have_is_named(tmp_path, section, said):
    path = tmp_path / "mine.toml"
    heading = '[machine]\nname = "mine"\nbase = "quong"\ntitle = "t"\nsummary = "s"\n'
    body = "" if section.endswith("host]") else 'base = "pax"\n'
    path.write_text(f"{heading}{section}\n{body}")
    with pytest.raises(MachineError, match="mine.toml: " + said):
        machine(path)


def test_a_setting_of_a_rail_that_is_not_there_names_those_that_are():
    with pytest.raises(InputError, match=r"--set = .rail.nosuch.card.x=1.: expected a key of rail.ib"):
        machine("quong", ["rail.nosuch.card.x=1"])
    with pytest.raises(InputError, match=r"rail = .ib.: expected .first.: a node has one card on ape16"):
        machine("ape16", rail="ib")


def test_more_rails_than_a_node_may_have_are_an_error_of_the_file(tmp_path):
    rails = SECOND[SECOND.index("[rail.ib]") :].replace("SLOT", "own")
    text = SECOND.replace("SLOT", "own") + "".join(rails.replace("rail.ib", f"rail.r{i}") for i in range(3))
    with pytest.raises(MachineError, match=r"mine.toml: rail = 5 rails: expected at most 4"):
        machine(written(tmp_path, text)).wire()


def test_a_result_names_its_rail():
    result = apenet.bench.pingpong(machine("quong", rail="ib"), sizes=[8])
    assert "rail ib" in result.heading
    assert result.to_json()["rail"] == "ib"


def test_a_card_too_small_for_mpi_is_named_with_its_rail():
    quong = machine("quong", ["rail.ib.card.max_message_bytes=64"])
    with pytest.raises(MachineError, match=r"rail.ib.card.max_message_bytes = 64: expected at least"):
        apenet.run(["true"], n=2, machine=quong)
