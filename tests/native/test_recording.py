"""A recorded run says which messages are missing from its trace: those of the machines' own libraries."""

import pytest

import apenet as package
from apenet.base.errors import InputError
from apenet.explain.folder import read_folder
from apenet.explain.otf2_archive import write_otf2
from apenet.explain.verdict import percent


def recorded(program, trace, machine, ranks):
    result = package.run([program], n=ranks, machine=machine, record=trace, capture=True)
    return [text for text in result.warnings if text.startswith("recording:")]


@pytest.mark.parametrize(
    ("source", "library", "machine"),
    [
        ("rdma/with_mpi.c", "rdma", "ape16"),
        ("tnw/with_mpi.c", "tnw", package.machine("qpace", ["network.dims=[4,1,1]"])),
        ("extoll/mpi_and_velo.c", "extoll", "extoll-64"),
    ],
)
def test_beside_mpi(compile_native, tmp_path, source, library, machine):
    trace = tmp_path / "t.goal"
    warnings = recorded(compile_native(source, library, mpi=True), trace, machine, 4)
    assert warnings == [f"recording: the trace has MPI's messages alone: it lacks those of {library}"]
    assert trace.read_text().count(" send ") > 0


def test_without_mpi(compile_native, tmp_path):
    trace = tmp_path / "t.goal"
    warnings = recorded(compile_native("apelib/conformance.c", "apelib"), trace, "ape16", 2)
    assert warnings == ["recording: the trace has MPI's messages alone: it lacks those of apelib"]
    assert " send " not in trace.read_text()


@pytest.mark.parametrize(
    ("source", "library", "machine", "mpi"),
    [("apelib/conformance.c", "apelib", "ape16", False), ("extoll/mpi_and_velo.c", "extoll", "extoll-64", True)],
)
def test_a_page_claims_nothing_of_messages_that_it_does_not_know(
    compile_native, tmp_path, source, library, machine, mpi
):
    """Such a run waits for messages that no recording has: a replay without them says that nothing waits."""
    program = compile_native(source, library, mpi=mpi)
    runs = [tmp_path / name for name in "ab"]
    for out in runs:
        result = package.run([program], n=4, machine=machine, out=out, record=out / "recording.goal", capture=True)
    content = package.explain(runs[0])
    waiting = sum(rank.waiting_us for rank in result.ranks) / sum(rank.virtual_time_us for rank in result.ranks)
    assert waiting > 0.01
    assert content["verdict"]["text"].startswith(f"{percent(waiting)} of the ranks' time is waiting. What for is not ")
    assert f"this run has those of {library}." in content["verdict"]["text"]
    assert "waits" not in content
    assert "alternatives" not in content
    assert package.difference(*runs).equal
    with pytest.raises(InputError, match=f"those of {library} cannot be recorded"):
        write_otf2(read_folder(runs[0]), tmp_path / "archive")


def test_a_stopped_run_lacks_them_too(compile_native, tmp_path):
    program = compile_native("extoll/mpi_and_velo.c", "extoll", mpi=True)
    out = tmp_path / "run"
    options = {"out": out, "record": out / "recording.goal", "capture": True, "check": False}
    result = package.run([program], n=4, machine="extoll-64", limit_virtual="100us", **options)
    assert result.outcome == "limit"
    assert "recording: the trace has MPI's messages alone: it lacks those of extoll" in result.warnings
    assert package.explain(out)["verdict"]["text"] == "The run did not complete: it reached its limit of time."
