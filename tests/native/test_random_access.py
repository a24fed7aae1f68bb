"""RandomAccess as programs of VELO, GASNet and MPI, each of which verifies its table, and as scripted ranks."""

import re
from typing import get_args

import pytest

import apenet as package
from apenet.base.errors import InputError
from apenet.bench import BenchError
from apenet.bench.layers import build
from apenet.bench.random_access import SOURCES
from apenet.reproduce.random_access import (
    LAYERS,
    MACHINES,
    PROCESSES,
    Access,
    AccessCurve,
    Placement,
    parameters_digest,
    rate_of,
    shipped_rates,
)


def test_the_shipped_rates_are_those_of_the_shipped_machines():
    """`apenet reproduce --random-access --json` after a change of a machine file gives the new ones."""
    shipped = shipped_rates()
    found = {entry["name"]: entry["digest"] for entry in shipped["machines"]}
    assert found == {name: parameters_digest(name) for name in MACHINES}
    for placement in get_args(Placement):
        assert set(AccessCurve(MACHINES[1], "velo", placement).measure().rates) == set(PROCESSES)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_shipped_rate_is_measured_again(layer):
    run = Access(MACHINES[0], layer, "spread", 16)
    assert run.measure() == pytest.approx(rate_of(run), rel=0.01)


def rates(layer, **options):
    chosen = {"sizes": [1024], "n": 16, "look_ahead": 1} | options
    return package.bench.randomaccess("extoll-64", layer=layer, **chosen).rates_per_s


def test_the_conduit_is_close_to_velo_and_mpi_below_both():
    """Without updates held back, as the published figures say (Kujat et al., Figs. 12 to 14)."""
    velo, gasnet, mpi = (rates(layer)[0] for layer in LAYERS)
    assert 0.9 * velo < gasnet < velo
    assert mpi < 0.7 * gasnet


@pytest.mark.parametrize("layer", LAYERS)
def test_held_back_updates_travel_together_and_runs_repeat(layer):
    alone = rates(layer, n=4)[0]
    together = rates(layer, n=4, look_ahead=64)
    assert together[0] > 1.5 * alone
    assert together.tolist() == rates(layer, n=4, look_ahead=64).tolist()


@pytest.mark.parametrize(
    ("machine", "conduit"), [("pax", "ibv"), ("pax", "udp"), ("ape16", "apelink"), ("ideal", "mpi")]
)
def test_it_runs_over_every_conduit(machine, conduit):
    options = {"layer": "gasnet", "conduit": conduit, "sizes": [1024], "n": 4}
    alone, together = (
        package.bench.randomaccess(machine, look_ahead=held, **options).rates_per_s[0] for held in (1, 64)
    )
    assert together > 1.5 * alone


def test_the_improved_active_messages_gain_in_a_program_of_upc():
    """Up to 53 % are published (Kujat et al., Fig. 3); how the first implementation works is a reading."""
    options = {"sizes": [8192], "n": 4, "iterations": 32}
    first, improved = (rates("upc", active_messages=name, **options)[0] for name in ("first", "improved"))
    assert improved > 1.3 * first


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"n": 12}, "n = 12: expected a power of two"),
        ({"look_ahead": 0}, "look_ahead = 0: expected 1 to 1024"),
        ({"look_ahead": 1025}, "look_ahead = 1025"),
        ({"sizes": [24]}, "sizes = 24: expected powers of two"),
        ({"active_messages": "first"}, "none at layer velo: it belongs to gasnet and upc"),
        ({"window": 3}, "window = 3"),
    ],
)
def test_what_the_rules_do_not_allow_is_refused(options, said):
    with pytest.raises(InputError, match=said):
        rates("velo", **options)


def sends(trace):
    """The sends of each rank: target and bytes, in order."""
    ranks = re.split(r"^rank [0-9]+ \{$", trace.read_text(), flags=re.MULTILINE)[1:]
    return [re.findall(r": send ([0-9]+)b to ([0-9]+)", rank) for rank in ranks]


@pytest.mark.parametrize("look_ahead", [1, 40, 1024])
def test_scripted_ranks_send_the_messages_of_the_program(tmp_path, look_ahead):
    scripted, recorded = tmp_path / "scripted.goal", tmp_path / "recorded.goal"
    options = {"layer": "card", "n": 4, "sizes": [512], "look_ahead": look_ahead}
    result = package.bench.randomaccess("ape16", goal=scripted, **options)
    sources = [SOURCES / "random_access.c", SOURCES / "mpi_transport.c"]
    program = build("randomaccess-mpi", None, sources, [SOURCES / "transport.h", SOURCES / "gasnet_process.h"])
    command = [program, "64", "256", str(look_ahead), tmp_path / "times"]
    package.run(command, n=4, machine="ape16", record=recorded, capture=True)
    assert sends(scripted) == sends(recorded)
    assert len(sends(scripted)) == 4
    replayed = package.replay(scripted, machine="ape16")
    assert 0 < 4 * 256 * result.times_us[0] < replayed.virtual_time_us


def test_scripted_ranks_are_counted_placed_and_refused(tmp_path):
    card = {"layer": "card"}
    alone, together = rates(**card)[0], rates(**card, look_ahead=64)[0]
    assert together > 1.5 * alone
    assert rates(**card, ranks_per_node=4)[0] > 0
    for options, said in (
        ({"goal": tmp_path / "t", "layer": "mpi"}, "goal = .*: expected none at layer mpi"),
        ({"goal": tmp_path / "t", "sizes": [64, 128], **card}, "one size with goal"),
        ({"sizes": [2**30], **card}, "iterations = .*drawn before the run"),
        ({"sizes": [24], **card}, "sizes = 24: expected powers of two"),
    ):
        with pytest.raises(InputError, match=said):
            rates(**{"layer": "mpi", **options})
    assert not (tmp_path / "t").exists()


def test_other_layers_machines_and_tests_are_refused():
    with pytest.raises(InputError, match="card, velo, gasnet, upc, mpi"):
        rates("rma")
    with pytest.raises(InputError, match="apelink"):
        package.bench.randomaccess("ape16", layer="velo")
    with pytest.raises(InputError, match="look_ahead"):
        package.bench.halo("ape16", sizes=[64], look_ahead=4)


def test_lost_updates_are_counted_over_the_whole_table_as_by_the_rules():
    """A process's own words would be too few for one in a hundred."""
    table = 64 * 2048 // 8
    result = package.bench.randomaccess("extoll-64", layer="upc", sizes=[2048], n=64)
    (warning,) = [text for text in result.warnings if "words are wrong" in text]
    found = re.match(rf"(\d+) of the table's {table} words", warning)
    assert found
    assert 0 < int(found[1]) <= table / 100


def test_a_table_with_more_lost_updates_than_the_rules_allow_is_no_result():
    with pytest.raises(BenchError, match=r"sizes = 64: \d+ of the table's 512 words .* allow one in a hundred"):
        package.bench.randomaccess("extoll-64", layer="upc", sizes=[64], n=64)


def test_a_table_that_fills_the_memory_is_refused():
    with pytest.raises(InputError, match=r"sizes = 1073741824: expected a table of at most 1073741824 bytes"):
        package.bench.randomaccess("extoll-64", layer="mpi", sizes="1G", n=2)
