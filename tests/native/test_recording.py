"""A recorded run says which messages are missing from its trace: those of the machines' own libraries."""

import pytest

import apenet as package


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
