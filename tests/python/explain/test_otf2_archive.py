"""A run as an OTF2 archive: the library of the format reads it back, and it replays as the run does."""

from __future__ import annotations

import filecmp
import sys
from collections import Counter
from types import SimpleNamespace

import pytest

import apenet
from apenet.explain.folder import read_folder
from apenet.explain.otf2_archive import write_otf2
from apenet.explain.timed import CALC, SEND, operations_of, timed

otf2 = pytest.importorskip("otf2")

GOAL = """num_ranks 3
rank 0 {
a: calc 20000
b: send 100000b to 1 tag 7 // in MPI_Isend@halo.c:12 MPI_Waitall@halo.c:20
b requires a
c: recv 64b from 2 tag 9 // in MPI_Irecv@halo.c:13 MPI_Waitall@halo.c:20
c irequires b
d: calc 30000
d requires b
d requires c
e: send 8b to 2 tag 1 cpu 1
}
rank 1 {
a: recv 100000b from 0 tag 7 // in MPI_Recv@halo.c:30
b: calc 1000
b requires a
}
rank 2 {
a: calc 500000
b: send 64b to 0 tag 9 // in MPI_Send
b requires a
c: recv 8b from 0 tag 1 cpu 1
}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    trace = folder / "trace.goal"
    trace.write_text(GOAL)
    result = apenet.replay(trace, machine="ape16", out=folder / "out")
    return SimpleNamespace(folder=folder / "out", result=result, found=read_folder(folder / "out"))


@pytest.fixture(scope="module")
def anchor(run, tmp_path_factory):
    return write_otf2(run.found, tmp_path_factory.mktemp("archives") / "archive")


def events_of(anchor):
    with otf2.reader.open(str(anchor)) as trace:
        return [(location.group.name, location.name, event) for location, event in trace.events]


def test_every_message_and_call_is_there(run, anchor):
    events = events_of(anchor)
    counts = Counter(type(event).__name__ for _, _, event in events)
    operations = operations_of(run.found.schedule)
    sends = int((operations.kind == SEND).sum())
    assert counts["MpiIsend"] == counts["MpiIsendComplete"] == counts["MpiIrecv"] == sends == 3
    assert counts["Enter"] == counts["Leave"]
    sent = [
        (rank, event.receiver, event.msg_tag, event.msg_length)
        for rank, _, event in events
        if type(event).__name__ == "MpiIsend"
    ]
    assert sorted(sent) == [("rank 0", 1, 7, 100000), ("rank 0", 2, 1, 8), ("rank 2", 0, 9, 64)]
    beside = [type(event).__name__ for rank, where, event in events if (rank, where) == ("rank 0", "processor 1")]
    assert beside == ["MpiIsend", "MpiIsendComplete"]
    places = {
        (event.region.name, event.region.source_file, event.region.begin_line_number)
        for _, _, event in events
        if type(event).__name__ == "Enter"
    }
    assert ("MPI_Waitall", "halo.c", 20) in places
    assert ("MPI_Recv", "halo.c", 30) in places


def test_times_are_those_of_the_replay(run, anchor):
    operations = operations_of(run.found.schedule)
    replay = timed(run.found.request, run.found.schedule, operations)
    computed, last, depth, began = Counter(), Counter(), Counter(), {}
    for rank, _, event in events_of(anchor):
        kind = type(event).__name__
        assert event.time >= last[rank]
        last[rank] = event.time
        if kind == "Enter":
            depth[rank] += 1
            assert depth[rank] == 1
            began[rank] = event.time
        elif kind == "Leave":
            depth[rank] -= 1
            if event.region.name == "computation":
                computed[rank] += event.time - began[rank]
        elif kind == "MpiIrecv" and event.msg_length == 100000:
            assert event.time == int(replay.ended[(operations.rank == 1) & (operations.kind != CALC)][0])
    assert computed == {"rank 0": 50_000_000, "rank 1": 1_000_000, "rank 2": 500_000_000}  # ps
    assert max(last.values()) == round(run.result.virtual_time_us * 1e6)


def test_it_replays_as_the_run_does(run, anchor):
    again = apenet.replay(anchor, machine="ape16")
    assert again.messages == run.result.messages
    assert again.virtual_time_us == pytest.approx(run.result.virtual_time_us, rel=0.001)


def test_the_same_run_gives_the_same_events(run, anchor, tmp_path):
    """The library writes an identity and the time of writing into the other two files."""
    again = write_otf2(run.found, tmp_path / "again")
    folder = anchor.parent / "traces"
    names = sorted(path.name for path in folder.iterdir())
    assert len(names) == 2 * 5
    assert filecmp.cmpfiles(folder, again.parent / "traces", names, shallow=False) == (names, [], [])


def test_nothing_is_overwritten_or_left_behind(run, tmp_path, monkeypatch):
    taken = tmp_path / "taken"
    taken.mkdir()
    with pytest.raises(apenet.InputError, match="does not exist yet"):
        write_otf2(run.found, taken)
    with pytest.raises(apenet.InputError, match="can be written"):
        write_otf2(run.found, tmp_path / "no" / "where")

    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys.modules[write_otf2.__module__]._Writer, "write", fails)
    with pytest.raises(apenet.NotWrittenError, match="No space left"):
        write_otf2(run.found, tmp_path / "new")
    assert list(tmp_path.iterdir()) == [taken]


def test_a_run_without_a_recording_is_refused(tmp_path):
    found = SimpleNamespace(schedule=None, lacks="")
    with pytest.raises(apenet.InputError, match="--record"):
        write_otf2(found, tmp_path / "archive")
