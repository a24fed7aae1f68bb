"""apenet explain A B: equal or not, the first event that differs, and why."""

import json
import re
from pathlib import Path

import pytest

import apenet as package
from apenet.base.errors import InputError

RING = Path(__file__).resolve().parents[3] / "examples" / "08_gate"
# Rank 0 computes a microsecond and sends; rank 1 receives.
TRACE = """\
num_ranks 2
rank 0 {
l1: calc 1000
l2: send 64b to 1 tag 0
l2 requires l1
}
rank 1 {
l1: recv 64b from 0 tag 0
}
"""


@pytest.fixture
def replayed(tmp_path):
    """The folder of a replay of a trace."""

    def replay(name, text=TRACE, **options):
        trace = tmp_path / f"{name}.goal"
        trace.write_text(text)
        package.replay(trace, out=tmp_path / name, **options)
        return tmp_path / name

    return replay


def changes(found):
    return {(change.group, change.what): change.values for change in found.changes}


def test_equal_runs(replayed):
    found = package.difference(replayed("a"), replayed("b"))
    assert found.equal
    assert found.first is None
    assert [cause.what for cause in found.causes] == ["replay"]
    assert all(old == new for old, new in changes(found).values())


def test_another_message_is_the_program(replayed):
    text = TRACE.replace("64b", "80b")
    first = package.difference(replayed("a"), replayed("b", text)).first
    # Rank 1 posts its receive at once; rank 0 sends after a microsecond.
    assert (first.rank, first.number, first.why, first.at_ps) == (1, 0, "program", 0)
    assert [event.text for event in first.events] == ["receive of 64 B from rank 0", "receive of 80 B from rank 0"]


def test_another_computation_is_seen_when_it_ends(replayed):
    text = TRACE.replace("calc 1000", "calc 3000")
    found = package.difference(replayed("a"), replayed("b", text))
    assert (found.first.rank, found.first.number, found.first.why) == (0, 0, "computation")
    assert [event.text for event in found.first.events] == ["computation of 1 us", "computation of 3 us"]
    old, new = changes(found)["run", "virtual time"]
    assert new == pytest.approx(old + 2)
    assert changes(found)["all ranks", "compute"] == (pytest.approx(1), pytest.approx(3))


def test_one_more_operation_is_the_program(replayed):
    text = TRACE.replace("recv 64b from 0 tag 0", "recv 64b from 0 tag 0\nl2: calc 5\nl2 requires l1")
    first = package.difference(replayed("a"), replayed("b", text)).first
    assert (first.rank, first.number, first.why) == (1, 1, "program")
    assert first.events[0] is None
    assert "computation of 5 ns in the second run alone" in first.text


def test_another_machine_changes_times_and_is_named(replayed):
    slow = package.machine("ape16", ["network.link.clock_mhz=23"])  # a fifth of the clock
    found = package.difference(replayed("a"), replayed("b", machine=slow))
    assert [(cause.kind, cause.what, cause.values) for cause in found.causes if cause.what != "replay"] == [
        ("machine", "network.link.clock_mhz", (115, 23))
    ]
    first = found.first
    assert (first.rank, first.number, first.why) == (1, 0, "time")
    assert first.events[0].began_ps == first.events[1].began_ps == 0
    assert first.at_ps == first.events[0].ended_ps < first.events[1].ended_ps
    (old, new) = changes(found)["link busy", "(0,0,0)+x"]
    assert new == pytest.approx(5 * old, rel=1e-5)


def test_a_placement_is_named(replayed):
    found = package.difference(replayed("a"), replayed("b", map="random:3"))
    assert ("request", "mapping") in [(cause.kind, cause.what) for cause in found.causes]
    assert ("request", "nodes") not in [(cause.kind, cause.what) for cause in found.causes]


def test_other_ranks_have_no_first_event(replayed):
    text = "num_ranks 3\n" + TRACE.partition("\n")[2] + "rank 2 {\nl1: calc 1\n}\n"
    found = package.difference(replayed("a"), replayed("b", text))
    assert not found.equal
    assert found.first is None
    assert "numbers of ranks differ" in found.unknown


@pytest.fixture(scope="module")
def rings(apenet, build, tmp_path_factory):
    """Folders of the fast and of the slow ring of example 08, the last without a recording."""
    folder = tmp_path_factory.mktemp("rings")
    for name, source, recording in (
        ("fast", "halo_fast.c", True),
        ("again", "halo_fast.c", True),
        ("slow", "halo.c", True),
        ("plain", "halo.c", False),
    ):
        record = ("--record", folder / name / "recording.goal") if recording else ()
        words = ("run", "-n", "4", "--out", folder / name, *record, "--", build(RING / source))
        assert apenet(*words).returncode == 0
    return folder


def test_programs_are_compared_by_their_calls(rings):
    assert package.difference(rings / "fast", rings / "again").equal
    found = package.difference(rings / "fast", rings / "slow")
    assert found.first.why == "program"
    assert found.first.at_ps == 0
    assert found.first.rank == 0
    assert [event.call for event in found.first.events] == ["MPI_Irecv", "MPI_Send"]
    # 10 steps of two messages to each of two neighbours, on 4 ranks.
    assert changes(found)["operations in", "MPI_Isend"] == (80, 0)
    assert changes(found)["operations in", "MPI_Send"] == (0, 80)
    assert changes(found)["run", "messages"][0] == changes(found)["run", "messages"][1]


def test_the_command_prints_verdict_reason_and_changes(apenet, rings):
    same = apenet("explain", "fast", "again", cwd=rings)
    assert same.returncode == 0, same.stderr
    assert same.stdout == "fast and again: equal, in every event\n"
    other = apenet("explain", "fast", "slow", cwd=rings)
    assert "first event that differs: at 0 ps rank 0, operation 0: receive of 8192 B" in other.stdout
    assert "why: the programs do something else there" in other.stdout
    assert "run: virtual time" in other.stdout
    assert "run: messages" not in other.stdout
    printed = json.loads(apenet("explain", "fast", "slow", "--json", cwd=rings).stdout)
    own = package.difference(rings / "fast", rings / "slow").to_json()
    assert {**printed, "a": own["a"], "b": own["b"]} == own


def test_the_page_says_what_the_command_prints(apenet, rings):
    done = apenet("explain", "fast", "slow", "--report", "both.html", cwd=rings)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "both.html"
    text = (rings / "both.html").read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    old, new = data["times"]
    assert new > old
    percent = f"{100 * (new / old - 1):.3g} %"
    assert data["verdict"]["text"] == f"fast and slow: different. The second takes {percent} more time."
    assert "why: the programs do something else there" in data["lines"]
    assert data["rows"][0][:4] == ["run: virtual time", "us", old, new]
    printed = [line for line in done.stdout.splitlines() if ": " in line]
    assert all(any(row[0] in line for line in printed) for row in data["rows"])
    assert apenet("explain", "fast", "slow", "--report", "fast/run.json", cwd=rings).returncode == 2


def test_without_a_recording_the_changes_remain(apenet, rings):
    done = apenet("explain", "fast", "plain", cwd=rings)
    assert done.returncode == 0, done.stderr
    assert "no recording in plain" in done.stdout
    assert "--record DIR/recording.goal makes one" in done.stdout
    assert "run: virtual time" in done.stdout


def test_a_failed_run_is_said_to_be_one(apenet, rings):
    assert apenet("run", "-n", "4", "--out", rings / "failed", "--", "false").returncode != 0
    done = apenet("explain", "fast", "failed", cwd=rings)
    assert done.returncode == 0, done.stderr
    assert "different" in done.stdout
    assert "failed: the program did not complete (failed)" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fast", "nowhere"], "a run folder"),
        (["fast", "."], "a run folder"),
        (["fast", "again", "--recording", "x.goal"], "one run with --recording"),
        (["fast", "again", "--report", "none/x.html"], "in a folder that exists"),
        (["fast", "nowhere", "--report", "x.html"], "a run folder"),
    ],
)
def test_bad_input(apenet, rings, words, said):
    done = apenet("explain", *words, cwd=rings)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (rings / "x.html").exists()


def test_a_half_written_run_is_refused(replayed):
    folder = replayed("a")
    other = replayed("b")
    (other / "run.json").unlink()
    with pytest.raises(InputError, match=r"no run\.json"):
        package.difference(folder, other)
