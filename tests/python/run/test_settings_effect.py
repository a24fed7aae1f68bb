"""A setting without effect on any event of a run is named, and no other. The judge is a second run without it."""

import sys
from pathlib import Path

import pytest

import apenet as package
from apenet.host.compiling import compile_program
from apenet.run import settings_effect


@pytest.fixture
def exchange(build):
    return build(Path(__file__).with_name("exchange.c"))


@pytest.fixture
def run(exchange):
    def run_with(settings, machine="ape16", n=8, **options):
        return package.run([exchange, "2000"], n=n, machine=package.machine(machine, settings), capture=True, **options)

    return run_with


def ineffective(result):
    return [words.split()[1] for words in result.warnings if "had no effect on any event" in words]


def unchecked(result):
    said = "not checked whether "
    return [words.removeprefix(said) for words in result.warnings if words.startswith(said)]


@pytest.mark.parametrize(
    ("machine", "setting", "is_ineffective"),
    [
        ("pax", "network.link.clock_mhz=312.5", True),  # between switches; eight nodes are on one
        ("ape16", "bus.clock_mhz=66", False),
        ("ape16", "router.buffer_flits=4096", True),  # every packet uses the buffers, none waits for room
        ("ape16", "network.link.bit_error_rate=0", True),  # as it is
        ("ape16", "network.link.latency_ns=500", False),
        ("ape16", "software.mpi.send_us=7", False),
    ],
)
def test_a_setting_is_without_effect_if_a_run_without_it_has_the_same_events(run, machine, setting, is_ineffective):
    result = run([setting], machine)
    assert ineffective(result) == ([setting] if is_ineffective else [])
    without = run([], machine)
    assert (without.trace_hash == result.trace_hash) == is_ineffective
    assert (without.ranks == result.ranks) == is_ineffective


def test_each_of_several_settings_is_judged_alone(run):
    settings = ["bus.clock_mhz=90", "bus.clock_mhz=66", "router.buffer_flits=4096"]
    assert ineffective(run(settings)) == ["bus.clock_mhz=90", "router.buffer_flits=4096"]


def test_what_a_few_ranks_do_not_use_more_ranks_may(run):
    """Eight nodes of PAX are on one switch; from seventeen on, messages cross to another."""
    setting = "network.link.clock_mhz=62.5"
    assert ineffective(run([setting], "pax", n=8)) == [setting]
    assert ineffective(run([setting], "pax", n=20)) == []


def test_a_recorded_run_and_its_replay_say_the_same(run, tmp_path):
    settings = ["bus.clock_mhz=66", "router.buffer_flits=4096"]
    trace = tmp_path / "t.goal"
    result = run(settings, record=trace)
    replayed = package.replay(trace, machine=package.machine("ape16", settings))
    assert ineffective(result) == ineffective(replayed) == ["router.buffer_flits=4096"]


def test_the_recording_changes_no_event(run, monkeypatch):
    watched = run(["bus.clock_mhz=66"])
    monkeypatch.setattr(settings_effect, "machines_without", lambda _machine: iter(()))
    plain = run(["bus.clock_mhz=66"])
    assert watched.trace_hash == plain.trace_hash
    assert watched.ranks == plain.ranks


@pytest.mark.parametrize(
    ("setting", "is_ineffective"), [("network.link.clock_mhz=312.5", True), ("router.port_clock_mhz=66", False)]
)
def test_of_a_program_that_polls_only_a_replay_is_known(exchange, setting, is_ineffective):
    """Its replay has the same messages at other times; so the warning does not speak of the run."""
    program = [exchange, "2000", "poll"]
    result = package.run(program, n=8, machine=package.machine("pax", [setting]), capture=True)
    said = f"--set {setting} had no effect on any event of a replay of this run"
    assert [words for words in result.warnings if "no effect" in words] == ([said] if is_ineffective else [])
    without = package.run(program, n=8, machine=package.machine("pax"), capture=True)
    assert (without.trace_hash == result.trace_hash) == is_ineffective


def test_a_recording_that_lacks_messages_says_nothing(tmp_path):
    """A replay of nothing has no event that a setting could change."""
    source = Path(__file__).parents[3] / "examples/10_halo_apelib_c/halo.c"
    compile_program([source, "-o", tmp_path / "halo"], ("apelib",))
    machine = package.machine("ape16", ["bus.clock_mhz=66", "router.buffer_flits=4096"])
    result = package.run([tmp_path / "halo"], n=2, machine=machine, capture=True)
    assert result.messages > 0
    assert ineffective(result) == []
    assert unchecked(result) == [
        "--set bus.clock_mhz=66, --set router.buffer_flits=4096 had an effect: messages of apelib cannot be replayed"
    ]


def test_a_long_run_is_not_replayed(run, monkeypatch, tmp_path):
    result = run(["router.buffer_flits=4096"], record=tmp_path / "t.goal")
    monkeypatch.setattr(settings_effect, "MOST_MESSAGES", 3)
    same = "bus.clock_mhz=100.0"
    machine = package.machine("ape16", ["router.buffer_flits=4096", same])
    for result in (run(machine.settings), package.replay(tmp_path / "t.goal", machine=machine)):
        assert unchecked(result) == [
            "--set router.buffer_flits=4096 had an effect: the run has too many messages to be replayed for it"
        ]
        assert ineffective(result) == [same]


def test_costs_of_software_that_change_no_message_are_not_claimed_to_have_no_effect(run, tmp_path):
    """A program's own work has reads of the clock; a replay has none of them."""
    setting = "software.mpi.clock_read_us=7"
    trace = tmp_path / "t.goal"
    result = run([setting], record=trace)
    assert ineffective(result) == []
    assert unchecked(result) == [
        f"--set {setting} had an effect: it changes no message of a replay, which does not have all that programs do"
    ]
    assert ineffective(package.replay(trace, machine=package.machine("ape16", [setting]))) == [setting]


@pytest.mark.parametrize("key", ["software.mpi.poll_us", "host.copy_bandwidth_mib_s"])
def test_a_value_that_the_machine_has_anyway_has_no_effect(run, key):
    found = package.machine("ape16").file
    for step in key.split("."):
        found = getattr(found, step)
    assert ineffective(run([f"{key}={found.value}"])) == [f"{key}={found.value}"]


def test_a_failed_run_says_nothing_of_its_settings():
    program = [sys.executable, "-c", "from mpi4py import MPI; MPI.COMM_WORLD.Abort(3)"]
    machine = package.machine("ape16", ["router.buffer_flits=4096"])
    assert ineffective(package.run(program, n=2, machine=machine, capture=True, check=False)) == []


def test_the_command_line_says_it(exchange, apenet):
    done = apenet("run", "-n", "8", "-m", "pax", "--set", "network.link.clock_mhz=312.5", "--", exchange, "100")
    assert "apenet: warning: --set network.link.clock_mhz=312.5 had no effect on any event of this run\n" in done.stderr
