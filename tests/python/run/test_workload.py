"""Workloads written in Python."""

import numpy as np
import pytest

import apenet
from apenet.base.errors import InputError

US_PER_BYTE = 1e6 / (1000 * 2**20)  # the teaching machine's: wire and copy


def ring(rank):
    right, left = (rank.id + 1) % rank.count, (rank.id - 1) % rank.count
    for step in range(3):
        yield rank.send(right, 1000, tag=step)
        message = yield rank.recv(left, tag=step)
        yield rank.compute_us(2.5)
    return message


def test_a_ring_in_closed_form():
    result = apenet.workload(ring, n=5, machine="ideal")
    step = 1 + (24 + 1000 + 1000) * US_PER_BYTE + 2.5
    assert result.finish_us.tolist() == pytest.approx([3 * step] * 5, rel=1e-5)
    assert result.compute_us.tolist() == [7.5] * 5
    assert (result.messages, result.sends.tolist()) == (15, [3] * 5)
    assert result.returned[0] == apenet.workload.__globals__["Message"](source=4, tag=2, bytes=1000)


def test_the_engine_is_that_of_apenet_run():
    packet, flit = (apenet.workload(ring, n=5, machine="ape16", engine=engine) for engine in ("packet", "flit"))
    assert not packet.warnings
    assert any("whole cycles" in warning for warning in flit.warnings)
    assert flit.finish_us == pytest.approx(packet.finish_us, rel=0.05)
    with pytest.raises(InputError, match="engine"):
        apenet.workload(ring, n=5, engine="fast")


def test_operations_overlap_until_they_are_waited_for():
    def overlapped(rank):
        other = 1 - rank.id
        receive = yield rank.irecv(other)
        send = yield rank.isend(other, 100)
        yield rank.compute_us(50)
        sent, message = yield rank.wait(send, receive)
        assert sent is None
        return message.bytes, rank.now_us

    result = apenet.workload(overlapped, n=2, machine="ideal")
    # The message came during the computation; its copy is made when it is waited for.
    assert result.returned[0] == (100, pytest.approx(50 + 100 * US_PER_BYTE, abs=1e-3))


def test_wildcards_take_the_first():
    def program(rank):
        if rank.id > 0:
            yield rank.compute_us(10 * (rank.count - rank.id))
            yield rank.send(0, 8, tag=rank.id)
            return None
        order = []
        for _ in range(rank.count - 1):
            message = yield rank.recv()
            order.append((message.source, message.tag))
        return order

    assert apenet.workload(program, n=4, machine="ape16").returned[0] == [(3, 3), (2, 2), (1, 1)]


def test_the_same_twice_and_large_messages_by_rendezvous():
    def program(rank):
        other = rank.id ^ 1
        handle = yield rank.isend(other, 2**20)
        message = yield rank.recv(other)
        yield rank.wait(handle)
        return message.bytes

    first, second = (apenet.workload(program, n=16, machine="ape16") for _ in range(2))
    assert first.trace_hash == second.trace_hash
    assert first.to_json() == second.to_json()
    assert set(first.returned) == {2**20}
    assert first.messages == 16 * 3
    assert first.virtual_time_us > 1000


def test_a_deadlock_names_what_each_rank_waits_for():
    def program(rank):
        yield rank.send(0, 8, tag=5)
        if rank.id == 0:
            yield rank.recv(1, tag=4)

    with pytest.raises(apenet.WorkloadError) as error:
        apenet.workload(program, n=2, machine="ideal")
    assert str(error.value).splitlines()[1:] == [
        "  rank 0 waits for ever for a message from rank 1, tag 4",
        "  rank 0 has not received the 8 bytes, tag 5, of rank 1",
    ]


def test_exceptions_of_a_program_reach_the_caller():
    def program(rank):
        yield rank.compute_us(1)
        raise KeyError(rank.id)

    with pytest.raises(KeyError):
        apenet.workload(program, n=2)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (lambda rank: 3, "a generator function"),
        (lambda rank: (yield 3), "a generator that yields rank.send"),
        (lambda rank: (yield rank.send(2, 8)), "rank 0: send to = 2: expected a whole number from 0 to 1"),
        (lambda rank: (yield rank.send(0, -1)), "rank 0: bytes = -1"),
        (lambda rank: (yield rank.recv(0, tag=2**32)), "rank 0: tag"),
        (lambda rank: (yield rank.compute_us(-1)), "compute_us = -1"),
    ],
)
def test_invalid_operations_are_refused(program, said):
    with pytest.raises(InputError, match="expected") as refused:
        apenet.workload(program, n=2)
    assert said in str(refused.value)


def test_as_many_ranks_as_a_machine_has():
    result = apenet.workload(ring, n=128, machine="ape128", map="random:3")
    assert result.finish_us.shape == (128,)
    assert result.busiest_link is not None


def test_sizes_and_ranks_may_be_numpy_integers():
    sizes = np.array([64, 128])

    def program(rank):
        yield rank.send(np.int64(1 - rank.id), sizes[rank.id])
        return (yield rank.recv())

    found = apenet.workload(program, n=np.int64(2), seed=np.uint64(3))
    assert [message.bytes for message in found.returned] == [128, 64]


def test_only_handles_can_be_waited_for():
    def program(rank):
        yield rank.wait(3)

    with pytest.raises(InputError, match="wait for = 3"):
        apenet.workload(program, n=2)


def test_computation_beyond_the_end_of_virtual_time_is_named():
    def program(rank):
        while True:
            yield rank.compute_us(1e12)

    with pytest.raises(InputError, match="104 days"):
        apenet.workload(program, n=1)


def test_a_message_beyond_the_end_of_virtual_time_is_bad_input():
    def program(rank):
        yield rank.send(1, 2**24) if rank.id == 0 else rank.recv(0)

    slow = apenet.machine("ideal", [f"card.bandwidth_mib_s={2**-20}"])
    with pytest.raises(InputError, match="rank 0: bytes = 16777216: expected messages that end within 104 days"):
        apenet.workload(program, n=2, machine=slow)
