"""Axes, draws and points of a sweep: what is varied, what decides a point's key, and what is refused."""

import itertools
import math

import pytest

from apenet.base.errors import ApenetError, InputError, MachineError
from apenet.machine import machine
from apenet.machine.assumptions import assumptions
from apenet.study.axes import Axis, axis_of, interval_of, parse_axis, parse_interval
from apenet.study.plan import ENDS, Draws, Plan
from apenet.study.study import SweptStudy
from apenet.study.sweep_file import read_sweep_file

HALO = ("bench", "halo", "--sizes", "1K")


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ("a.b=100:133:4", ("100", "111", "122", "133")),
        ("a.b=0.5:1:3", ("0.5", "0.75", "1.0")),
        ("a.b=50:133:4", ("50.0", "77.6667", "105.333", "133.0")),
        ("a.b=4:1:4", ("4", "3", "2", "1")),
        ("a.b=7:7:1", ("7",)),
        ("a.b=1, 2,4", ("1", "2", "4")),
        ("a.b=[[4,4,4], [8,4,4]]", ("[4,4,4]", "[8,4,4]")),
        ('a.b=["x:y", true, 1.5]', ("x:y", "true", "1.5")),
        ("-n=2,4", ("2", "4")),
    ],
)
def test_an_axis_lists_its_values(given, values):
    assert parse_axis("--grid", given).values == values


@pytest.mark.parametrize(
    "given",
    ["a", "a=1", "=1,2", "a.b=", "a.b=1,,2", "a.b=1:2", "a.b=1:2:0", "a.b=1:2:1", "a.b=x:2:3", "a.b=nan:2:3",
     "a.b=1,1", "a.b=[1,1]", "a.b=[]", "a.b=[1", "a.b=1:2:9999999", "a b.c=1,2"],
)  # fmt: skip
def test_what_is_no_axis_is_refused(given):
    if given == "a.b=1:2":  # one value, as a text
        assert parse_axis("--grid", given).values == ("1:2",)
        return
    with pytest.raises(InputError, match="--grid = "):
        parse_axis("--grid", given)


def test_an_axis_of_a_file_is_a_text_or_a_list():
    assert axis_of("grid.a.b", "a.b", "1:3:3") == axis_of("grid.a.b", "a.b", [1, 2, 3]) == Axis("a.b", ("1", "2", "3"))
    for wrong in (3, {}, [], [1, 1]):
        with pytest.raises(InputError, match=r"grid\.a\.b"):
            axis_of("grid.a.b", "a.b", wrong)


def test_an_interval_has_two_numbers():
    assert parse_interval("--vary", "bus.clock_mhz=66:133") == interval_of("vary", "bus.clock_mhz", [66, 133])
    for wrong in ("bus.clock_mhz=66", "bus.clock_mhz=133:66", "bus.clock_mhz=a:b", "-n=1:2", "bus.clock_mhz=1:inf"):
        with pytest.raises(InputError, match="--vary"):
            parse_interval("--vary", wrong)


def test_points_are_all_combinations_in_order():
    plan = Plan(
        HALO, ("ape16", "pax"), (Axis("network.link.clock_mhz", ("100", "133")), Axis("--channels", ("1", "2")))
    )
    points = list(plan.points())
    expected = itertools.product(("ape16", "pax"), ("100", "133"), ("1", "2"))
    assert [tuple(value for _, value in point.values) for point in points] == list(expected)
    assert len({point.key for point in points}) == plan.count == 8
    assert points[1].arguments == (
        "bench", "halo", "--json", "--no-check-settings", "--machine", "ape16",
        "--set", "network.link.clock_mhz=100", "--channels=2", "--sizes", "1K",
    )  # fmt: skip


def test_options_stand_before_the_program():
    plan = Plan(("run", "-n", "2", "--", "true", "-n"), ("ape16",), (Axis("--seed", ("1", "2")),))
    assert next(plan.points()).arguments[-6:] == ("--seed=1", "-n", "2", "--", "true", "-n")


def keys(*given):
    return [point.key for point in Plan(*given).points()]


def test_a_key_depends_on_machine_file_program_and_inputs_and_on_nothing_else(tmp_path):
    (tmp_path / "a.toml").write_text(machine("ape16").to_toml())
    (tmp_path / "b.toml").write_text(machine("ape16").to_toml())
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    data = tmp_path / "data"
    data.write_text("1")
    command = ("run", "-n", "2", "--", str(program), f"--input={data}")
    first = keys(command, (str(tmp_path / "a.toml"),))
    assert keys(command, (str(tmp_path / "b.toml"),)) == first
    data.write_text("2")
    assert keys(command, (str(tmp_path / "a.toml"),)) != first
    data.write_text("1")
    program.write_text("#!/bin/sh\n\n")
    assert keys(command, (str(tmp_path / "a.toml"),)) != first
    program.write_text("#!/bin/sh\n")
    assert keys(command, (str(tmp_path / "a.toml"),)) == first
    (tmp_path / "a.toml").write_text(machine("ape16", ["bus.clock_mhz=66"]).to_toml())
    assert keys(command, (str(tmp_path / "a.toml"),)) != first


@pytest.mark.parametrize(
    ("command", "axes", "expected"),
    [
        (("bench",), (), "command"),
        (("map",), (), "command"),
        ((), (), "command"),
        (("run", "-n", "2", "--", "./nothing-here"), (), "program"),
        ((*HALO, "--json"), (), "--json"),
        (("run", "--out", "x", "-n", "1", "--", "true"), (), "--out"),
        ((*HALO, "--set", "bus.clock_mhz=66"), (("bus.clock_mhz", "33", "66"),), "--grid"),
        (HALO, (("--sizes", "1K", "2K"),), "--grid"),
        (HALO, (("bus.clock_mhz", "33"), ("bus.clock_mhz", "66")), "--grid"),
        (HALO, (("bus.clock", "33", "66"),), "bus.clock"),
        (HALO, (("bus.clock_mhz", "33", "x y"),), "bus.clock_mhz"),
    ],
)  # fmt: skip
def test_what_cannot_be_swept_is_refused_before_the_first_run(command, axes, expected):
    with pytest.raises(ApenetError, match=expected):
        list(Plan(command, ("ape16",), tuple(Axis(name, values) for name, *values in axes)).points())


def test_draws_stay_in_the_plausible_ranges_and_repeat():
    pax = machine("pax")
    bounds = {
        one.key: sorted((float(one.at(0).split("=")[1]), float(one.at(1).split("=")[1]))) for one in assumptions(pax)
    }
    for method in ("random", "latin", "sobol"):
        drawn = Draws(method, 8, seed=3).of(pax)
        assert drawn == Draws(method, 8, seed=3).of(pax) != Draws(method, 8, seed=4).of(pax)
        assert len(set(drawn)) == 8
        for setting in itertools.chain(*drawn):
            key, _, value = setting.partition("=")
            assert bounds[key][0] <= float(value) <= bounds[key][1], setting


def test_a_latin_hypercube_takes_each_part_of_a_range_once():
    draws = Draws("latin", 10, 1, (parse_interval("--vary", "bus.read_latency_ns=1:1024"),))
    drawn = [float(setting.partition("=")[2]) for (setting,) in draws.of(machine("pax"))]
    assert sorted(int(math.log2(one)) for one in drawn) == list(range(10))  # a part of the logarithm each


def test_whole_numbers_stay_whole():
    draws = Draws("latin", 50, 1, (parse_interval("--vary", "card.wqe_bytes=100:300"),))
    drawn = [setting.partition("=")[2] for (setting,) in draws.of(machine("pax"))]
    assert all(text.isdigit() for text in drawn)
    assert len(set(drawn)) > 40


def test_draws_that_are_alike_are_points_of_their_own(tmp_path):
    """A burst is a power of two: of 16 draws between 128 and 512 most have a value that another one has."""
    draws = Draws("latin", 16, 1, (parse_interval("--vary", "bus.max_burst_bytes=128:512"),))
    assert len(set(draws.of(machine("pax")))) == 3
    plan = Plan(HALO, ("pax",), (), draws)
    assert len({point.key for point in plan.points()}) == 17
    with SweptStudy(tmp_path / "study.sqlite", plan, "1") as study:
        assert len(study.add(plan.points())) == 17


def test_ends_set_one_number_at_a_time():
    pax = machine("pax")
    drawn = Draws(ENDS).of(pax)
    assert [setting for (setting,) in drawn] == [one.at(share) for one in assumptions(pax) for share in (0, 1)]
    assert Plan(HALO, ("pax",), (), Draws(ENDS)).count == len(drawn) + 1


def test_what_cannot_be_drawn_is_refused(tmp_path):
    with pytest.raises(InputError, match="draws"):
        Draws("latin", 0)
    with pytest.raises(InputError, match="method"):
        Draws("monte", 3)
    with pytest.raises(InputError, match="--vary"):
        Plan(HALO, ("pax",), (), Draws("latin", 3, 1, (parse_interval("--vary", "bus.clock=1:2"),)))
    with pytest.raises(InputError, match="--vary"):
        Plan(HALO, ("pax",), (), Draws("latin", 3, 1, (parse_interval("--vary", "network.link.clock_mhz=-5:2"),)))


def test_a_file_says_what_the_command_line_says(tmp_path):
    file = tmp_path / "sweep.toml"
    file.write_text(
        'command = "bench halo --sizes 1K"\nmachine = ["ape16", "pax"]\nstudy = "x.sqlite"\n'
        '[grid]\n"network.link.clock_mhz" = "100:133:4"\n"--channels" = [1, 2]\n'
        '[sample]\nmethod = "sobol"\npoints = 4\nseed = 7\nvary = { "bus.clock_mhz" = [66, 133] }\n'
    )
    written = read_sweep_file(file)
    assert (written.command, written.machines, str(written.study)) == (HALO, ("ape16", "pax"), "x.sqlite")
    assert written.axes == (parse_axis("", "network.link.clock_mhz=100:133:4"), Axis("--channels", ("1", "2")))
    assert written.draws == Draws("sobol", 4, 7, (parse_interval("", "bus.clock_mhz=66:133"),))


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", "command"),
        ("command = 3", "command"),
        ('command = "a \\"b"', "command"),
        ('command = "x"\nspeed = 3', "speed"),
        ('command = "x"\nstudy = 3', "study"),
        ('command = "x"\n[grid]\n"a.b" = 3', "a.b"),
        ('command = "x"\ngrid = 3', "grid"),
        ('command = "x"\n[sample]\nmethod = "monte"\npoints = 3', "method"),
        ('command = "x"\n[sample]\npoints = "many"', "points"),
        ('command = "x"\n[sample]\npoints = 3\nvary = { "a.b" = [2, 1] }', "a.b"),
        ('command = "x"\n[sample]\npoints = 3\nhow = 1', "how"),
        ("command = ", "TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_key(tmp_path, text, key):
    file = tmp_path / "sweep.toml"
    file.write_text(text)
    with pytest.raises(MachineError, match=key) as refused:
        read_sweep_file(file)
    assert "sweep.toml" in str(refused.value)


def test_numbers_of_sockets_are_drawn_only_for_programs_with_sockets():
    def drawn(*command):
        plan = Plan((*command,), ("pax",), draws=Draws("latin", 4))
        settings = [part for point in plan.points() for part in point.arguments if part.startswith("software.ip.")]
        return len(settings)

    assert drawn("run", "-n", "2", "true") == 0
    assert drawn("run", "--ip", "-n", "2", "true") == 4 * 6
