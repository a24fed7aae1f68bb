"""The best setting within a budget: equal to the exhaustive sweep, the same on any workers, and open where it is."""

import json
import sqlite3
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise, product
from pathlib import Path

import pytest
from forked import run_forked

from apenet.base.errors import InputError
from apenet.machine import machine
from apenet.study.answer import Found, Setting, as_good_share, ranked
from apenet.study.axes import Axis, parse_interval
from apenet.study.executors import Workers
from apenet.study.optimise import Goal, optimise
from apenet.study.parts import Budget
from apenet.study.plan import Draws, Plan
from apenet.study.study import Outcome, State
from apenet.study.sweep import SweepError

BIN = Path(sys.executable).parent
GUARD_S = 300
HALO = ("bench", "halo", "--sizes", "1K")
FREE = Budget({}, {})
CLOCKS = Axis("network.link.clock_mhz", tuple(map(str, range(58, 74))))
BUSES = Axis("bus.clock_mhz", tuple(map(str, range(50, 66))))


class Threads(Workers):
    """Workers in this process."""

    def __init__(self, count=1):
        self.count = count
        self.stopped = False

    def start(self):
        return ThreadPoolExecutor(self.count)

    def stop(self):
        self.stopped = True


def numbers(arguments):
    settings = (setting.partition("=") for flag, setting in pairwise(arguments) if flag == "--set")
    return {key: float(value) for key, _, value in settings}


def bowl(arguments):
    """A simulation with its least time, 7 us, where the link has 71 MHz and the bus 58."""
    found = numbers(arguments)
    time_us = 7 + (found["network.link.clock_mhz"] - 71) ** 2 + 2 * (found["bus.clock_mhz"] - 58) ** 2
    return Outcome(State.DONE, "", json.dumps({"points": [{"time_us": time_us}]}))


def points_of(path):
    with sqlite3.connect(path) as database:
        return database.execute("SELECT axes, state, result FROM point ORDER BY number").fetchall()


def test_a_search_finds_the_least_of_a_grid_that_it_does_not_exhaust(tmp_path):
    plan = Plan(HALO, ("ape16",), (CLOCKS, BUSES))
    assert plan.count == 256
    found = optimise(plan, Goal(FREE, evaluations=150), tmp_path / "a", Threads(), bowl)
    assert (found.best.value, dict(found.best.values)) == (7, {CLOCKS.name: "71", BUSES.name: "58"})
    assert found.evaluated == len(points_of(tmp_path / "a")) <= 150
    assert (found.is_complete, found.is_local, found.settings) == (False, True, 256)
    # A search that has used up its evaluations says that it does not know the surroundings of its best one.
    short = optimise(plan, Goal(FREE, evaluations=30), tmp_path / "b", Threads(), bowl)
    assert (short.evaluated, short.is_local) == (30, False)


def test_workers_and_kills_change_nothing(tmp_path):
    plan = Plan(HALO, ("ape16",), (CLOCKS, BUSES))
    goal = Goal(FREE, evaluations=100, seed=5)
    answer = optimise(plan, goal, tmp_path / "a", Threads(1), bowl).to_json()
    assert optimise(plan, goal, tmp_path / "b", Threads(3), bowl).to_json() == answer
    assert points_of(tmp_path / "a") == points_of(tmp_path / "b")
    left = 40

    def killed(arguments):
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return bowl(arguments)

    with pytest.raises(KeyboardInterrupt):
        optimise(plan, goal, tmp_path / "c", Immediate(), killed)
    with sqlite3.connect(tmp_path / "c") as database:
        known = {row[0] for row in database.execute("SELECT arguments FROM point WHERE state = 'done'")}
    assert 0 < len(known) <= 40
    again = []

    def noted(arguments):
        again.append(json.dumps(arguments))
        return bowl(arguments)

    assert optimise(plan, goal, tmp_path / "c", Threads(), noted).to_json() == answer
    assert not known & set(again)  # nothing is computed twice
    assert len(known) + len(again) == len(points_of(tmp_path / "a"))


class Immediate(Workers):
    """Runs a task where it is submitted."""

    count = 1

    def start(self):
        return self

    def submit(self, function, *arguments):
        done = Future()
        done.set_result(function(*arguments))
        return done


def test_a_search_keeps_to_its_limits(tmp_path):
    plan = Plan(HALO, ("ape16",), (CLOCKS, BUSES))
    link = machine("ape16").file.network.link
    cables = machine("ape16").arrangement().cables
    of_60_mhz = cables * 60 * link.word_bytes.value * 8 / link.word_cycles.value / 1000
    budget = Budget({}, {"cable_gbit_s": of_60_mhz * 1.000001})
    found = optimise(plan, Goal(budget, evaluations=150), tmp_path / "a", Threads(), bowl)
    assert dict(found.best.values) == {CLOCKS.name: "60", BUSES.name: "58"}  # the greatest clock that is allowed
    assert found.best.value == 7 + 11**2
    clocks = [json.loads(axes)[CLOCKS.name] for axes, _, _ in points_of(tmp_path / "a")]
    assert max(map(int, clocks)) == 60  # nothing beyond the limit is simulated
    small = Plan(HALO, ("ape16",), (Axis(CLOCKS.name, ("55", "60", "65")), Axis(BUSES.name, ("58",))))
    found = optimise(small, Goal(budget), tmp_path / "b", Threads(), bowl)
    assert (found.evaluated, found.beyond, found.is_complete) == (2, 1, True)
    with pytest.raises(SweepError, match="of 3, 3 beyond the limits"):
        optimise(small, Goal(Budget({}, {"node": 15})), tmp_path / "c", Threads(), bowl)


def test_a_price_is_the_sum_of_the_parts():
    torus = machine("ape128")  # 8x4x4: a router and three cables a node
    assert Budget({("", "node"): 2, ("", "router"): 3, ("", "cable"): 5}, {}).amounts("ape128", torus) == {
        "node": 128, "router": 128, "cable": 384, "price": 128 * 2 + 128 * 3 + 384 * 5,
    }  # fmt: skip
    tree = machine("pax")  # 9 leaves and 8 spines, 72 cables of 32 Gbit/s
    own = Budget({("", "cable_gbit_s"): 1, ("pax", "router"): 100, ("", "router"): 7}, {"node": 200})
    assert own.amounts("pax", tree) == {
        "node": 144, "router": 17, "cable_gbit_s": 72 * 32, "price": 1700 + 72 * 32,
    }  # fmt: skip


def test_the_cheaper_one_of_equal_settings_is_the_best(tmp_path):
    plan = Plan(HALO, ("ape16",), (Axis(CLOCKS.name, ("66", "133", "100")),))
    same = Outcome(State.DONE, "", json.dumps({"time_us": 3}))
    found = optimise(plan, Goal(Budget({("", "cable_gbit_s"): 1}, {})), tmp_path / "a", Threads(), lambda _: same)
    assert [one.values[CLOCKS.name] for one in found.ranked] == ["66", "100", "133"]
    assert len(found.open) == 2


def test_the_largest_is_found_where_it_is_asked_for(tmp_path):
    plan = Plan(HALO, ("ape16",), (Axis(CLOCKS.name, ("60", "71", "80")), Axis(BUSES.name, ("58", "88"))))
    found = optimise(plan, Goal(FREE, "time_us", maximise=True), tmp_path / "a", Threads(), bowl)
    assert dict(found.best.values) == {CLOCKS.name: "60", BUSES.name: "88"}


def test_draws_say_what_cannot_be_told_apart(tmp_path):
    """One clock's time is the drawn latency, the other's 200 us: as good or better from 200 ns on."""
    draws = Draws("latin", 40, 1, (parse_interval("", "bus.read_latency_ns=100:1600"),))
    plan = Plan(HALO, ("pax",), (Axis("network.link.clock_mhz", ("250", "200", "100")),), draws)

    def time_us(arguments):
        found = numbers(arguments)
        latency = found.get("bus.read_latency_ns", 150)
        times = {250: latency, 200: 200, 100: 10_000}
        result = {"points": [{"time_us": times[found["network.link.clock_mhz"]]}]}
        return Outcome(State.DONE, "", json.dumps(result))

    found = optimise(plan, Goal(FREE), tmp_path / "a", Threads(), time_us)
    best, second, third = found.ranked
    assert [one.values["network.link.clock_mhz"] for one in found.ranked] == ["250", "200", "100"]
    # a Latin hypercube in the logarithm: of 4 octaves, 3 are above 200 ns
    assert (second.as_good_percent, second.is_open) == (75, True)
    assert (third.as_good_percent, third.is_open) == (0, False)
    assert (best.draws, best.as_good_percent, best.is_open) == (40, None, False)
    assert 100 * 16 ** (19 / 40) <= best.median <= 100 * 16 ** (21 / 40)  # between the two parts in the middle
    assert best.low < 120
    assert best.high > 1300
    assert found.open == (second,)


def test_draws_of_two_machines_are_all_compared():
    one = Found(Setting("a", ()), 1.0, {}, {1: 1.0, 2: 4.0})
    same = Found(Setting("a", ("x",)), 2.0, {}, {1: 2.0, 2: 3.0, 3: 0.0})
    other = Found(Setting("b", ()), 2.0, {}, {1: 2.0, 2: 3.0})
    assert as_good_share(same, one, maximise=False) == 1 / 2  # draw 3 is not one of both
    assert as_good_share(other, one, maximise=False) == 2 / 4
    assert as_good_share(other, one, maximise=True) == 2 / 4
    assert as_good_share(Found(Setting("b", ()), 1.0, {}, {}), one, maximise=False) is None
    (best, second) = ranked([one, other], (), maximise=False, others=5)
    assert (best.is_open, second.is_open, second.as_good_percent) == (False, True, 50)


def test_settings_are_drawn_until_all_of_a_step_can_be_told_from_the_best(tmp_path):
    values = tuple(str(clock) for clock in range(100, 120))
    draws = Draws("latin", 2, 1, (parse_interval("", "bus.read_latency_ns=100:1600"),))
    plan = Plan(HALO, ("pax",), (Axis("network.link.clock_mhz", values),), draws)

    def steps(arguments):  # six settings that are equal, then others
        clock = numbers(arguments)["network.link.clock_mhz"]
        return Outcome(State.DONE, "", json.dumps({"time_us": max(5, clock - 100)}))

    found = optimise(plan, Goal(FREE), tmp_path / "a", Threads(), steps)
    assert found.drawn == 12  # four, four with two that are open, and four that are not
    assert len(points_of(tmp_path / "a")) == 20 + 12 * 2
    assert len(found.open) == 5


def test_what_has_no_result_is_counted_and_never_the_best(tmp_path):
    plan = Plan(HALO, ("ape16",), (Axis(CLOCKS.name, ("60", "71", "80")), Axis(BUSES.name, ("58",))))

    def some(arguments):
        clock = numbers(arguments)[CLOCKS.name]
        if clock == 71:
            return Outcome(State.FAILED, "no memory")
        return Outcome(State.REFUSED, "no such machine") if clock == 60 else bowl(arguments)

    found = optimise(plan, Goal(FREE), tmp_path / "a", Threads(), some)
    assert (found.best.values[CLOCKS.name], found.failed, found.refused, found.evaluated) == ("80", 1, 1, 3)
    with pytest.raises(SweepError, match="1 failed"):
        optimise(Plan(HALO, ("ape16",), (Axis(CLOCKS.name, ("71",)), Axis(BUSES.name, ("58",)))), Goal(FREE),
                 tmp_path / "b", Threads(), some)  # fmt: skip


def test_what_the_result_does_not_have_is_said_after_one_simulation(tmp_path):
    plan = Plan(HALO, ("ape16",), (CLOCKS, Axis(BUSES.name, ("58",))))
    with pytest.raises(InputError, match=r"--value = .frob.: expected one of time_us"):
        optimise(plan, Goal(FREE, "frob"), tmp_path / "a", Threads(), bowl)
    assert len(points_of(tmp_path / "a")) == 1
    several = Outcome(State.DONE, "", json.dumps({"points": [{"size_bytes": 1, "time_us": 2}] * 2}))
    with pytest.raises(InputError, match="one that measures one time_us"):
        optimise(plan, Goal(FREE), tmp_path / "b", Threads(), lambda _: several)
    assert len(points_of(tmp_path / "b")) == 1


def command(*words, folder, launcher=()):
    return subprocess.run(
        [*launcher, BIN / "apenet", *words], cwd=folder, capture_output=True, text=True, timeout=GUARD_S, check=False
    )


GRID = ("--grid", "bus.clock_mhz=66,100,133", "--grid", "network.link.clock_mhz=40,133")


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """An exhaustive sweep."""
    folder = tmp_path_factory.mktemp("swept")
    done = command("sweep", "--workers", "1", *GRID, "--json", "--", *HALO, folder=folder)
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_the_answer_is_that_of_the_exhaustive_sweep(swept, tmp_path):
    folder, rows = swept
    best = min(rows, key=lambda row: row["time_us"])
    done = command("optimise", "--workers", "2", *GRID, "--json", "--", *HALO, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["ranked"][0]["value"] == best["time_us"]
    assert found["is_complete"]
    # On the study of the sweep, the same without any simulation.
    before = points_of(folder / "study.sqlite")
    again = command("optimise", *GRID, "--json", "--", *HALO, folder=folder)
    assert again.stdout == done.stdout, again.stderr
    assert points_of(folder / "study.sqlite") == before
    launcher = [BIN / "mpiexec", "-n", "2", sys.executable, "-m", "mpi4py.futures", "-m"]
    mpi = subprocess.run(
        [*launcher, "apenet", "optimise", "--on", "mpi", "--study", "mpi.sqlite", *GRID, "--json", "--", *HALO],
        cwd=tmp_path, capture_output=True, text=True, timeout=GUARD_S, check=False,
    )  # fmt: skip
    assert mpi.stdout == done.stdout, mpi.stderr


def test_the_table_says_what_it_does_not_know(swept):
    folder, _ = swept
    done = command("optimise", *GRID, "--price", "node=3", "--limit", "price=48", "--", *HALO, folder=folder)
    lines = done.stdout.splitlines()
    assert lines[0] == "# apenet bench halo --sizes 1K: smallest time_us; of 6 settings, 6 evaluated"
    assert "nothing is known of what assumed numbers leave open" in done.stdout
    assert lines[2].split()[2:4] == ["16", "48"]
    over = command("optimise", *GRID, "--price", "node=3", "--limit", "price=47", "--", *HALO, folder=folder)
    assert over.returncode == 2
    assert "of 6, 6 beyond the limits" in over.stderr


SCRIPT = """
import json
import apenet

if __name__ == "__main__":
    found = apenet.optimise(
        "bench halo --sizes 1K", "ape16",
        grid={"bus.clock_mhz": "66,100,133", "network.link.clock_mhz": [40, 133]}, price={"ape16:node": 3}, workers=1,
    )
    print(json.dumps(found.to_json()))
"""


def test_python_has_the_answer_of_the_command(swept, tmp_path):
    folder, _ = swept
    words = (*GRID, "--price", "ape16:node=3", "--json", "--", *HALO)
    (tmp_path / "study.sqlite").write_bytes((folder / "study.sqlite").read_bytes())
    (tmp_path / "search.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "search.py"], cwd=tmp_path, capture_output=True, text=True, timeout=GUARD_S, check=False
    )
    assert json.loads(done.stdout or "{}") == json.loads(command("optimise", *words, folder=folder).stdout), done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--limit", "price=3", "--", *HALO), "--limit"),
        (("--limit", "wheel=3", "--", *HALO), "one of node, router, cable, cable_gbit_s, price"),
        (("--limit", "node=0", "--", *HALO), "above zero"),
        (("--limit", "node=many", "--", *HALO), "--limit"),
        (("--limit", "node=3", "--limit", "node=4", "--", *HALO), "once"),
        (("--price", "pax:node=3", "--", *HALO), "one of the machines ape16"),
        (("--price", "price=3", "--", *HALO), "a price of one of"),
        (("--price", "node=-3", "--", *HALO), "above zero"),
        (("--price", "node=3", "-m", "ideal", "--", *HALO), "a network of routers"),
        (("--evaluations", "0", "--", *HALO), "--evaluations"),
        (("--grid", "bus.clock=1,2", "--", *HALO), '"clock_mhz"'),
        (("ends.toml",), "random, latin or sobol"),
        (("--latin", "3", "--sobol", "4", "--", *HALO), "one way of drawing"),
    ],
)
def test_bad_input_starts_nothing_and_leaves_nothing(tmp_path, words, said):
    (tmp_path / "ends.toml").write_text('command = "bench halo --sizes 1K"\n[sample]\nmethod = "ends"\n')
    done = run_forked(("optimise", *words), tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["ends.toml"]


def test_the_neighbours_of_the_best_are_all_settings_with_one_change(tmp_path):
    plan = Plan(HALO, ("ape16", "ape128"), (Axis(CLOCKS.name, ("70", "71")), Axis(BUSES.name, ("57", "58"))))
    found = optimise(plan, Goal(FREE), tmp_path / "a", Threads(), bowl)
    everything = set(product(plan.machines, ("70", "71"), ("57", "58")))
    assert {(one.machine, *one.values.values()) for one in found.ranked} <= everything
    assert found.is_local
    assert len(found.open) == 1  # the other machine takes the same time
