"""OTF2 traces, written by the library of the format, replay as the operations that they name."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from importlib import import_module

import pytest

import apenet
from apenet.run.replay import read_trace
from apenet.traces.convert import converted

otf2 = pytest.importorskip("otf2")
enums = import_module("otf2.enums")
US = 1000


class Ranks:
    """Writes the events of ranks: each call of MPI takes 50 us on the recorded machine."""

    def __init__(self, archive, count, ticks_of_us):
        self.definitions = archive.definitions
        self.us = ticks_of_us
        node = self.definitions.system_tree_node("node")
        groups = [self.definitions.location_group(f"rank {rank}", system_tree_parent=node) for rank in range(count)]
        self.locations = [self.definitions.location("master", group=group) for group in groups]
        self.threads = [self.definitions.location("thread 1", group=group) for group in groups]
        self.all = self._group(enums.GroupType.COMM_LOCATIONS, self.locations)
        self.world = self.communicator("world", range(count))
        self.archive = archive
        self.writers = [archive.event_writer_from_location(location) for location in self.locations]
        self.now = [1000 * self.us] * count
        for rank in range(count):
            self.call(rank, "MPI_Init")

    def beside(self, rank):
        return self.archive.event_writer_from_location(self.threads[rank])

    def _group(self, kind, members):
        return self.definitions.group("", group_type=kind, paradigm=enums.Paradigm.MPI, members=members)

    def group(self, ranks):
        return self._group(enums.GroupType.COMM_GROUP, [self.locations[rank] for rank in ranks])

    def communicator(self, name, ranks):
        return self.definitions.comm(name, group=self.group(ranks))

    def compute(self, rank, us):
        self.now[rank] += us * self.us

    @contextmanager
    def calls(self, rank, name):
        region = self.definitions.region(name, paradigm=enums.Paradigm.MPI)
        self.writers[rank].enter(self.now[rank], region)
        yield self.writers[rank], self.now[rank]
        self.compute(rank, 50)
        self.writers[rank].leave(self.now[rank], region)

    def call(self, rank, name):
        with self.calls(rank, name):
            pass

    def collective(self, rank, name, sent, received, root=0, communicator=None):
        with self.calls(rank, f"MPI_{name.capitalize()}") as (writer, now):
            writer.mpi_collective_begin(now)
            operation = getattr(enums.CollectiveOp, name.upper())
            writer.mpi_collective_end(now, operation, communicator or self.world, root, sent, received)


@contextmanager
def written(folder, count, ticks_of_us=US):
    with otf2.writer.open(str(folder / "t"), archive_name="t", timer_resolution=ticks_of_us * 10**6) as archive:
        yield Ranks(archive, count, ticks_of_us)


def replayed(folder, machine="ape16", **options):
    return apenet.replay(folder / "t" / "t.otf2", machine=machine, **options)


def by_hand(folder, text, machine="ape16"):
    file = folder / "hand.goal"
    file.write_text(text)
    return apenet.replay(file, machine=machine)


@pytest.mark.parametrize("ticks_of_us", [1, US, 2400])
def test_messages_and_computation_are_those_of_the_trace(tmp_path, ticks_of_us):
    with written(tmp_path, 2, ticks_of_us) as ranks:
        ranks.compute(0, 30)
        with ranks.calls(0, "MPI_Send") as (writer, now):
            writer.mpi_send(now, 1, ranks.world, 7, 4096)
        ranks.compute(0, 5)
        with ranks.calls(0, "MPI_Recv") as (writer, now):
            writer.mpi_recv(now, 1, ranks.world, 8, 64)
        with ranks.calls(1, "MPI_Recv") as (writer, now):
            writer.mpi_recv(now, 0, ranks.world, 7, 4096)
        ranks.compute(1, 11)
        with ranks.calls(1, "MPI_Send") as (writer, now):
            writer.mpi_send(now, 0, ranks.world, 8, 64)
        for rank in range(2):
            ranks.compute(rank, 3)
            ranks.call(rank, "MPI_Finalize")
            ranks.compute(rank, 1000)
    hand = by_hand(
        tmp_path,
        """num_ranks 2
rank 0 {
a: calc 30000
b: send 4096b to 1 tag 0
b requires a
c: calc 5000
c requires b
d: recv 64b from 1 tag 1
d requires c
e: calc 3000
e requires d
}
rank 1 {
a: recv 4096b from 0 tag 0
b: calc 11000
b requires a
c: send 64b to 0 tag 1
c requires b
d: calc 3000
d requires c
}
""",
    )
    result = replayed(tmp_path)
    assert result.trace_hash == hand.trace_hash
    assert result.finish_us.tolist() == hand.finish_us.tolist()
    assert result.virtual_time_us > 30 + 5 + 11 + 3


def test_both_directions_of_a_sendrecv_go_at_once(tmp_path):
    large = 1 << 20
    with written(tmp_path, 2) as ranks:
        for rank in range(2):
            with ranks.calls(rank, "MPI_Sendrecv") as (writer, now):
                writer.mpi_send(now, 1 - rank, ranks.world, 0, large)
                writer.mpi_recv(now, 1 - rank, ranks.world, 0, large)
    both = "l: send 1048576b to {0} tag 0\nm: recv 1048576b from {0} tag 0\nm irequires l\n"
    hand = by_hand(tmp_path, f"num_ranks 2\nrank 0 {{\n{both.format(1)}}}\nrank 1 {{\n{both.format(0)}}}\n")
    result = replayed(tmp_path)
    assert result.trace_hash == hand.trace_hash
    assert result.bytes >= 2 * large


def test_requests_go_on_beside_computation(tmp_path):
    """The last wait awaits both; a receive is completed by an event that says of whom it was."""
    with written(tmp_path, 2) as ranks:
        for rank in range(2):
            with ranks.calls(rank, "MPI_Irecv") as (writer, now):
                writer.mpi_irecv_request(now, 1)
            with ranks.calls(rank, "MPI_Isend") as (writer, now):
                writer.mpi_isend(now, 1 - rank, ranks.world, 5, 200_000, 2)
            ranks.compute(rank, 400)
            with ranks.calls(rank, "MPI_Waitall") as (writer, now):
                writer.mpi_irecv(now, 1 - rank, ranks.world, 5, 200_000, 1)
                writer.mpi_isend_complete(now, 2)
            ranks.compute(rank, 10)
            ranks.call(rank, "MPI_Finalize")
    one = """r: recv 200000b from {0} tag 0
s: send 200000b to {0} tag 0
s irequires r
c: calc 400000
c irequires s
d: calc 10000
d requires c
d requires r
d requires s
"""
    hand = by_hand(tmp_path, f"num_ranks 2\nrank 0 {{\n{one.format(1)}}}\nrank 1 {{\n{one.format(0)}}}\n")
    result = replayed(tmp_path)
    assert (result.trace_hash, result.virtual_time_us) == (hand.trace_hash, hand.virtual_time_us)
    alone = 200_000 / 4e8 * 1e6  # us, no link is faster
    assert 410 < result.virtual_time_us < 410 + 400 + alone


def operations(folder):
    with converted(folder / "t" / "t.otf2") as (goal, notes), open(goal) as text:  # noqa: PTH123 (a descriptor)
        return text.read(), notes


def test_collective_operations_are_those_of_the_members(tmp_path):
    with written(tmp_path, 5) as ranks:
        odd = ranks.communicator("odd", [3, 1])
        for rank in range(5):
            ranks.collective(rank, "barrier", 0, 0, root=2**32 - 1)
            if rank in (1, 3):
                ranks.collective(rank, "bcast", 200 if rank == 3 else 0, 100, root=0, communicator=odd)
            ranks.collective(rank, "allreduce", 40, 40)
            ranks.collective(rank, "gather", 24, 120 if rank == 4 else 0, root=4)
    text, notes = operations(tmp_path)
    assert "the messages of collective operations (1 allreduce, 1 barrier, 1 bcast, 1 gather)" in notes[0]
    rank_three = text.partition("rank 3 {")[2].partition("}")[0]
    assert rank_three.count("send 0b") == 3  # dissemination among five
    assert rank_three.count("send 100b to 1") == 1  # rank 0 of its communicator
    assert "send 8b" in rank_three
    result = replayed(tmp_path)
    assert result.messages >= 5 * 3 + 1 + 2 * 4 + 2 + 4
    assert any("MPICH's are taken" in warning for warning in result.warnings)


def test_a_nonblocking_collective_goes_on_beside_computation(tmp_path):
    def write(folder, *, is_beside):
        folder.mkdir()
        with written(folder, 4) as ranks:
            for rank in range(4):
                if is_beside:
                    with ranks.calls(rank, "MPI_Iallreduce") as (writer, now):
                        writer.non_blocking_collective_request(now, 9)
                else:
                    ranks.collective(rank, "allreduce", 4 * 100_000, 4 * 100_000)
                ranks.compute(rank, 500)
                if is_beside:
                    with ranks.calls(rank, "MPI_Wait") as (writer, now):
                        operation = enums.CollectiveOp.ALLREDUCE
                        writer.non_blocking_collective_complete(
                            now, operation, ranks.world, 0, 4 * 100_000, 4 * 100_000, 9
                        )
                ranks.collective(rank, "barrier", 0, 0)
        return replayed(folder)

    after, beside = write(tmp_path / "after", is_beside=False), write(tmp_path / "beside", is_beside=True)
    assert beside.messages == after.messages
    assert 500 < beside.virtual_time_us < after.virtual_time_us


def test_threads_tags_and_communicators_are_told_apart(tmp_path):
    with written(tmp_path, 3) as ranks:
        pair = ranks.communicator("pair", [2, 0])
        with ranks.calls(0, "MPI_Send") as (writer, now):
            writer.mpi_send(now, 2, ranks.world, 1, 10)
        with ranks.calls(0, "MPI_Send") as (writer, now):
            writer.mpi_send(now, 0, pair, 1, 20)
        with ranks.calls(2, "MPI_Recv") as (writer, now):
            writer.mpi_recv(now, 1, pair, 1, 20)
        with ranks.calls(2, "MPI_Recv") as (writer, now):
            writer.mpi_recv(now, 0, ranks.world, 1, 10)
    text, notes = operations(tmp_path)
    assert notes == []
    assert "send 10b to 2 tag 0" in text
    assert "recv 20b from 0 tag 1" in text
    assert replayed(tmp_path).messages == 2


def test_what_is_left_out_is_counted(tmp_path):
    with written(tmp_path, 2) as ranks:
        with ranks.calls(0, "MPI_Irecv") as (writer, now):
            writer.mpi_irecv_request(now, 1)
            writer.mpi_irecv_request(now, 2)
        with ranks.calls(0, "MPI_Cancel") as (writer, now):
            writer.mpi_request_cancelled(now, 2)
        window = ranks.definitions.rma_win("window", comm=ranks.world)
        with ranks.calls(0, "MPI_Put") as (writer, now):
            writer.rma_put(now, window, 1, 64, 5)
        with ranks.calls(0, "MPI_Neighbor_allgather") as (writer, now):
            writer.mpi_collective_begin(now)
            writer.mpi_collective_end(now, enums.CollectiveOp.ALLGATHER, ranks.world, 0, 64, 64)
    warnings = replayed(tmp_path).warnings
    assert (
        "not in the replay: 1 calls of collective operations among neighbours, 1 cancelled requests, "
        "1 one-sided operations, 2 receives without an end"
    ) in warnings


def test_other_readers_of_traces_take_them_too(tmp_path):
    with written(tmp_path, 4) as ranks:
        for rank in range(4):
            ranks.collective(rank, "alltoall", 4000, 4000)
    assert read_trace(tmp_path / "t" / "t.otf2").rank_count == 4


def test_a_collective_that_a_member_has_not_called_is_refused(tmp_path):
    with written(tmp_path, 3) as ranks:
        for rank in range(2):
            ranks.collective(rank, "barrier", 0, 0)
    with pytest.raises(apenet.InputError, match="BARRIER by each member of world, operation 0: rank 2 has not"):
        replayed(tmp_path)


def test_a_trace_without_mpi_or_with_damage_is_refused(tmp_path):
    with otf2.writer.open(str(tmp_path / "t"), archive_name="t", timer_resolution=1000) as archive:
        node = archive.definitions.system_tree_node("node")
        group = archive.definitions.location_group("program", system_tree_parent=node)
        writer = archive.event_writer_from_location(archive.definitions.location("master", group=group))
        writer.enter(1, archive.definitions.region("main"))
    with pytest.raises(apenet.InputError, match="a trace of an MPI program"):
        replayed(tmp_path)
    definitions = tmp_path / "t" / "t.def"
    definitions.write_bytes(definitions.read_bytes()[:40])
    with pytest.raises(apenet.InputError, match="an OTF2 trace that can be read"):
        replayed(tmp_path)


BROKEN = "Invalid or inconsistent record data: "
DAMAGED = {
    "t.otf2": BROKEN + "Searching for string's terminating null byte failed!",
    "t.def": "UnicodeDecodeError: ",
    "t/0.evt": BROKEN + "Invalid size in compressed length byte",
    "absent": "File or directory does not exist: POSIX: ",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_the_library_says_of_damage_is_in_the_error_alone(tmp_path, capfd, name):
    with written(tmp_path, 2) as ranks:
        for rank in range(2):
            ranks.collective(rank, "barrier", 0, 0)
    if name == "absent":
        (tmp_path / "t" / "t" / "0.evt").unlink()
    else:
        file = tmp_path / "t" / name
        whole = file.read_bytes()
        half = len(whole) // 2
        file.write_bytes(whole[:half] + bytes(one ^ 0x5A for one in whole[half:]))
    with pytest.raises(apenet.InputError) as raised:
        replayed(tmp_path)
    assert raised.value.expected.startswith(f"an OTF2 trace that can be read ({DAMAGED[name]}")
    assert capfd.readouterr() == ("", "")


def test_without_the_library_of_the_format_it_is_named(tmp_path, monkeypatch):
    with written(tmp_path, 2) as ranks:
        ranks.compute(0, 1)

    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("apenet.base.otf2_library.import_module", missing)
    with pytest.raises(apenet.InputError, match="pip install otf2"):
        replayed(tmp_path)


def test_a_thread_computes_beside_its_master(tmp_path):
    with written(tmp_path, 2) as ranks:
        send = ranks.definitions.region("MPI_Send", paradigm=enums.Paradigm.MPI)
        with ranks.calls(0, "MPI_Send") as (writer, now):
            writer.mpi_send(now, 1, ranks.world, 1, 10)
        beside = ranks.beside(0)
        beside.enter(ranks.now[0] + 700 * US, send)
        beside.mpi_send(ranks.now[0] + 700 * US, 1, ranks.world, 2, 30)
        beside.leave(ranks.now[0] + 701 * US, send)
        for tag, size in ((1, 10), (2, 30)):
            with ranks.calls(1, "MPI_Recv") as (writer, now):
                writer.mpi_recv(now, 0, ranks.world, tag, size)
    text, _ = operations(tmp_path)
    assert "send 10b to 1 tag 0" in text
    assert "calc 750000 cpu 1" in text  # since the end of MPI_Init
    assert "send 30b to 1 tag 1 cpu 1" in text
    assert replayed(tmp_path).virtual_time_us > 750


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_file_that_ends_early_is_refused_or_a_shorter_trace(tmp_path):
    """Never another error, wherever it ends."""
    with written(tmp_path, 2) as ranks:
        for rank in range(2):
            ranks.collective(rank, "barrier", 0, 0)
    for name in ("t.otf2", "t.def", "t/0.evt"):
        file = tmp_path / "t" / name
        whole = file.read_bytes()
        for end in range(0, len(whole), 7):
            file.write_bytes(whole[:end])
            with suppress(apenet.InputError):
                replayed(tmp_path)
        file.write_bytes(whole)
    assert replayed(tmp_path).messages > 0
