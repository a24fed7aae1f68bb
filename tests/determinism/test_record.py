"""Recorded runs, replayed: on the same machine the time agrees; other machines can replay them."""

import gzip
import re
from pathlib import Path

import pytest

import apenet as package
from apenet.base.errors import InputError, MachineError

ROOT = Path(__file__).parents[2]
JACOBI = ["python", ROOT / "examples" / "02_jacobi" / "jacobi.py"]
SHORT = ["card.max_message_bytes=16", "card.max_payload_bytes=16"]

# Blocking messages of growing size, eager and by rendezvous; ranks compute different times in between.
PING_PONG = """
#include <mpi.h>
#include <stdlib.h>
#include "apenet_compute.h"
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* buffer = calloc(1 << 18, 1);
  for (int size = 1; size <= 1 << 18; size *= 8) {
    for (int i = 0; i < 5; ++i) {
      if (rank == 0) MPI_Send(buffer, size, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(buffer, size, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      ape_compute_seconds((1 + rank) * 3.3e-6);
      if (rank == 1) MPI_Send(buffer, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
  }
  free(buffer);
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture(scope="module")
def pingpong(build, tmp_path_factory):
    source = tmp_path_factory.mktemp("sources") / "recorded_pingpong.c"
    source.write_text(PING_PONG)
    return build(source)


@pytest.fixture(scope="module")
def gpu_pingpong(build, tmp_path_factory):
    """The same between device memories."""
    source = tmp_path_factory.mktemp("sources") / "recorded_gpu_pingpong.c"
    device = PING_PONG.replace("calloc(1 << 18, 1)", "ape_gpu_malloc(1 << 18)").replace(
        "free(buffer)", "ape_gpu_free(buffer)"
    )
    source.write_text('#include "apenet_gpu.h"\n' + device)
    return build(source)


# Rank 0 writes 8 MiB to memory of rank 1 of which the card has translated no page yet.
PUTS = """
#include <mpi.h>
#include <string.h>
int main(int argc, char** argv) {
  enum { bytes = 8 << 20, piece = 1 << 20 };
  static char source[bytes];
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  void* memory;
  MPI_Win window;
  MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  memset(memory, 0, bytes);
  MPI_Win_fence(0, window);
  for (int at = 0; rank == 0 && at < bytes; at += piece)
    MPI_Put(source + at, piece, MPI_CHAR, 1, at, piece, MPI_CHAR, window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
  MPI_Finalize();
  return 0;
}
"""


def record(command, path, **options):
    return package.run(command, record=path, capture=True, **options)


def require_equal(ran, replayed, machine):
    """The cards do the same at the same times, to the picosecond."""
    assert replayed.trace_hash == ran.trace_hash
    assert (replayed.messages, replayed.bytes) == (ran.messages, ran.bytes)
    # MPI_Finalize looks for events and so pays what the last receive has deferred. No operation of the trace does.
    deferred_us = package.machine(machine).table["software"]["mpi"]["after_receive_us"]["value"]
    for rank, finish_us in zip(ran.ranks, replayed.finish_us.tolist(), strict=True):
        assert round(rank.virtual_time_us - finish_us, 6) in (0, deferred_us)


@pytest.mark.parametrize("machine", ["ape16", "ideal"])
def test_a_ping_pong_replays_to_the_picosecond(pingpong, tmp_path, machine):
    trace = tmp_path / "t.goal"
    ran = record([pingpong], trace, n=2, machine=machine)
    replayed = package.replay(trace, machine=machine)
    require_equal(ran, replayed, machine)
    # The rounding to nanoseconds applies to the sum of each rank's times.
    assert replayed.compute_us.tolist() == pytest.approx([rank.compute_us for rank in ran.ranks], abs=0.002)
    assert ran.warnings == ()


@pytest.mark.parametrize("rail", ["first", "ib"])
@pytest.mark.parametrize("memory", ["host", "gpu"])
def test_the_card_and_the_memory_of_a_buffer_are_in_the_trace(pingpong, gpu_pingpong, tmp_path, rail, memory):
    trace = tmp_path / "t.goal"
    machine = package.machine("quong", rail=rail)
    ran = record([gpu_pingpong if memory == "gpu" else pingpong], trace, n=2, machine=machine)
    replayed = package.replay(trace, machine=machine)
    if rail == "ib":
        assert replayed.trace_hash == ran.trace_hash
        assert replayed.virtual_time_us == ran.virtual_time_us
    else:  # a card that translates addresses: a replay publishes a buffer anew for each message
        assert replayed.virtual_time_us == pytest.approx(ran.virtual_time_us, rel=0.03)
    assert f"on quong, rail {rail}, " in trace.read_text().splitlines()[0]
    assert (" gpu in MPI_" in trace.read_text()) == (memory == "gpu")


def test_a_machine_without_gpu_replays_device_memory_as_host_memory(gpu_pingpong, tmp_path):
    trace = tmp_path / "t.goal"
    record([gpu_pingpong], trace, n=2, machine="quong")
    replayed = package.replay(trace, machine="ape16")
    (warning,) = (text for text in replayed.warnings if "GPU" in text)
    assert "name a buffer in the memory of a GPU, which the nodes of this machine do not have" in warning


def test_a_replay_names_the_cards_that_it_does_not_use(build, tmp_path):
    trace = tmp_path / "t.goal"
    program = build(ROOT / "tests" / "conformance" / "rails" / "two_cards.c")
    record([program], trace, n=2, machine="quong", environment={"MPIR_CVAR_CH4_OFI_MAX_NICS": "2"})
    assert " nic 1 // @0x" in trace.read_text()
    assert package.replay(trace, machine="quong").warnings == (
        "operations name the network interface 1 (rail ib): all messages went by one card of their node, that of rail "
        "first; --rail chooses another",
    )


def test_jacobi_replays_to_the_picosecond(tmp_path):
    trace = tmp_path / "t.goal"
    ran = record(JACOBI, trace, n=8, machine="ape16")
    replayed = package.replay(trace, machine="ape16")
    # Halo exchange with MPI_Waitall, allreduce, gather: nothing that polls.
    require_equal(ran, replayed, "ape16")
    elsewhere = {name: package.replay(trace, machine=name).virtual_time_us for name in ("ape128", "ideal")}
    assert elsewhere["ideal"] < elsewhere["ape128"] < replayed.virtual_time_us


# What ends early in the recorded run, in the calls that start it, ends late elsewhere: the next calls must not wait.
@pytest.mark.parametrize("elsewhere", [{"map": "cart:4x2x2"}, {"map": "linear"}, {"clock_mhz": 133}])
def test_a_replay_elsewhere_takes_the_time_of_the_run_there(build, tmp_path, elsewhere):
    trace = tmp_path / "t.goal"
    program = build(ROOT / "bench" / "mpi" / "message_rate.c")
    slow = package.machine("ape16", ["network.link.clock_mhz=20"])
    record([program, "halo", "10"], trace, n=16, machine=slow, map="random:7")
    machine = package.machine("ape16", [f"network.link.clock_mhz={elsewhere.get('clock_mhz', 20)}"])
    placement = elsewhere.get("map", "random:7")
    ran = package.run([program, "halo", "10"], n=16, machine=machine, map=placement, capture=True)
    replayed = package.replay(trace, machine=machine, map=placement)
    assert replayed.virtual_time_us == pytest.approx(ran.virtual_time_us, rel=0.01)


# On extoll-64 what is eager on ape16 takes a rendezvous: the recorded order of independent operations would not end.
@pytest.mark.parametrize("machine", ["pax", "extoll-64"])
def test_collectives_that_overlap_replay_on_another_machine(build, tmp_path, machine):
    trace = tmp_path / "t.goal"
    program = build(ROOT / "tests" / "conformance" / "c" / "nonblocking_collectives.c")
    record([program], trace, n=4, machine="ape16")
    ran = package.run([program], n=4, machine=machine, capture=True)
    assert package.replay(trace, machine=machine).virtual_time_us == pytest.approx(ran.virtual_time_us, rel=0.005)


# Calls that wait for one message see the end of others, too, and so the trace has an order that the program does not
# need: the largest deviation of 24 programs on five machines and settings was 0.8 %.
@pytest.mark.parametrize("seed", range(6))
def test_drawn_messages_replay_elsewhere(build, tmp_path, seed):
    trace = tmp_path / "t.goal"
    command = [build(Path(__file__).with_name("drawn_messages.c")), str(seed)]
    ran = record(command, trace, n=8, machine="ape16")
    assert package.replay(trace, machine="ape16").virtual_time_us == pytest.approx(ran.virtual_time_us, rel=0.01)
    others = [
        package.machine("ape16", ["network.link.clock_mhz=33"]),
        package.machine("ape16", ["software.mpi.eager_limit_bytes=1024"]),
        package.machine("extoll-64"),
    ]
    for machine in others:
        ran = package.run(command, n=8, machine=machine, capture=True)
        replayed = package.replay(trace, machine=machine)
        assert replayed.virtual_time_us == pytest.approx(ran.virtual_time_us, rel=0.01)


def test_the_same_run_gives_the_same_trace_and_leaves_nothing(pingpong, tmp_path, monkeypatch):
    for folder in ("one", "two", "tmp"):
        (tmp_path / folder).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    for folder in ("one", "two"):
        record([pingpong], tmp_path / folder / "t.goal", n=2, machine="ape16")
    assert (tmp_path / "one" / "t.goal").read_bytes() == (tmp_path / "two" / "t.goal").read_bytes()
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["t.goal"]
    assert list((tmp_path / "tmp").iterdir()) == []


def test_wildcards_replay_to_the_picosecond(build, tmp_path):
    trace = tmp_path / "t.goal"
    ran = record([build(ROOT / "tests" / "conformance" / "c" / "any_source.c")], trace, n=4, machine="ape16")
    require_equal(ran, package.replay(trace, machine="ape16"), "ape16")


# What a trace does not hold. probe_cancel (0.04 %): polls that find nothing cost time, and a receive that follows a
# probe is posted before its message arrives, not after. nonblocking_collectives (0.08 %): the same polls, and a message
# to or from a datatype with gaps, which is one put for each piece in the run and one in all in the replay. rma_passive
# (0.8 %): a put becomes a message with a receive, a get two messages, and the processor of the target takes part.
@pytest.mark.parametrize(
    ("name", "tolerance"), [("probe_cancel", 0.002), ("nonblocking_collectives", 0.002), ("rma_passive", 0.02)]
)
def test_whatever_mpi_does_replays_to_its_end(build, tmp_path, name, tolerance):
    trace = tmp_path / "t.goal"
    ran = record([build(ROOT / "tests" / "conformance" / "c" / f"{name}.c")], trace, n=4, machine="ape16")
    replayed = package.replay(trace, machine="ape16")
    assert replayed.virtual_time_us == pytest.approx(ran.virtual_time_us, rel=tolerance)
    one_sided = [warning for warning in ran.warnings if re.match(r"recording: \d+ remote (writes|reads) were", warning)]
    assert len(one_sided) == (2 if name == "rma_passive" else 0)


def test_puts_replay_with_the_pages_of_their_target(build, tmp_path):
    source = tmp_path / "puts.c"
    source.write_text(PUTS)
    trace = tmp_path / "t.goal"
    ran = record([build(source)], trace, n=2, machine="apenetplus-v5")
    replayed = package.replay(trace, machine="apenetplus-v5")
    assert replayed.warnings == ()
    assert replayed.virtual_time_us == pytest.approx(ran.virtual_time_us, rel=0.005)
    # Without the addresses at the target its TLB misses once.
    trace.write_text(re.sub(r"(recv .* cpu 1) // @\S+", r"\1", trace.read_text()))
    assert package.replay(trace, machine="apenetplus-v5").virtual_time_us < 0.95 * ran.virtual_time_us


def test_a_failed_run_writes_what_had_begun(tmp_path):
    trace = tmp_path / "t.goal"
    program = "from mpi4py import MPI; MPI.COMM_WORLD.Abort(3)"
    result = package.run(["python", "-c", program], n=2, record=trace, capture=True, check=False)
    assert result.exit_status == 3
    assert result.warnings == ("recording: the run did not complete: the trace ends where it was stopped",)
    assert "stopped (aborted)" in trace.read_text().splitlines()[0]
    assert package.replay(trace).warnings == ("the trace has no operations: nothing was simulated",)


def test_a_place_that_cannot_be_written_is_named_before_anything_runs(apenet, tmp_path):
    for place in (tmp_path, tmp_path / "none" / "t.goal"):
        done = apenet("run", "-n", "2", "--record", place, "--", "true")
        assert done.returncode == 2
        assert f'record = "{place}"' in done.stderr


def test_a_full_disk_is_named(apenet, pingpong):
    done = apenet("run", "-n", "2", "--record", "/dev/full", "--", pingpong)
    assert done.returncode == 2
    assert "record" in done.stderr
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_name_in_gz_packs_the_trace(pingpong, tmp_path):
    ran = record([pingpong], tmp_path / "t.goal", n=2)
    for _ in range(2):  # over a packed trace, too
        record([pingpong], tmp_path / "t.goal.gz", n=2)
        packed = (tmp_path / "t.goal.gz").read_bytes()
        assert gzip.decompress(packed) == (tmp_path / "t.goal").read_bytes()
    record([pingpong], tmp_path / "again.gz", n=2)
    assert (tmp_path / "again.gz").read_bytes() == packed
    assert package.replay(tmp_path / "t.goal.gz").messages == ran.messages
    (tmp_path / "own.gz").write_bytes(gzip.compress(b"mine"))
    with pytest.raises(InputError, match=r"own\.gz"):
        record([pingpong], tmp_path / "own.gz", n=2)
    assert gzip.decompress((tmp_path / "own.gz").read_bytes()) == b"mine"
    with pytest.raises(InputError, match=r"a name that ends in \.gz"):
        record([pingpong], tmp_path / "t.goal.zst", n=2)


def test_nothing_is_written_over_what_is_read_nor_twice_to_one_file(pingpong, tmp_path):
    trace = tmp_path / "t.goal"
    before = Path(pingpong).read_bytes()
    with pytest.raises(InputError, match="than that of program"):
        package.run([pingpong], n=2, trace=pingpong, capture=True)
    with pytest.raises(InputError, match="than that of trace"):
        package.run([pingpong], n=2, trace=trace, record=trace, capture=True)
    assert Path(pingpong).read_bytes() == before
    record([pingpong], trace, n=2)
    with pytest.raises(InputError, match="than that of the GOAL file"):
        package.replay(trace, trace_out=trace)


def test_a_card_that_cannot_carry_what_begins_a_rendezvous_is_refused(pingpong):
    with pytest.raises(MachineError, match="max_message_bytes = 16: expected at least 104"):
        package.run([pingpong], n=2, machine=package.machine("ape16", SHORT), capture=True)


def test_a_program_of_mpich_is_not_started_as_open_mpis(pingpong):
    with pytest.raises(InputError, match='mpi = "openmpi": expected mpich: the loader binds'):
        package.run([pingpong], n=2, mpi="openmpi", capture=True)
