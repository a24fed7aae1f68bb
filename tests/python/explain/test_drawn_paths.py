"""The critical path of drawn programs: what does not lie on it does not change the time of a run."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import apenet
from apenet.explain.critical_path import CriticalPath
from apenet.explain.rewrite import balanced, early_sends, overlapped_sends
from apenet.explain.timed import CALC, operations_of, timed
from apenet.explain.waiting import STAGES
from apenet.run.replay import read_trace
from apenet.run.results import Request

RANKS = 4
# Rounds: what each rank computes in ns, and who sends how much to whom; sizes below and above the eager limit.
PAIRS = st.tuples(st.integers(0, RANKS - 1), st.integers(1, RANKS - 1), st.sampled_from([0, 64, 1500, 9000]))
ROUNDS = st.lists(
    st.tuples(st.lists(st.integers(1, 20_000), min_size=RANKS, max_size=RANKS), st.lists(PAIRS, max_size=4)),
    min_size=1,
    max_size=5,
)
SLOW_ROUNDS = ROUNDS.map(lambda rounds: [([1000 * one for one in computed], pairs) for computed, pairs in rounds])
LEAST_PACKET_BYTES = 64  # VELO has no smaller one; the processor writes a message packet by packet
BEHIND_OTHERS = {"card queue", "bus busy", "queue full", "link busy", "credits", "receiver full", "memory busy"}
"""Stages in which a message waits for other messages."""
# A thousand times slower than the machine "ideal": a nanosecond of these runs is a picosecond of those.
SLOW = apenet.machine("ideal").with_settings(
    "card.latency_ns=1000000", "card.bandwidth_mib_s=1", "host.local_latency_ns=1000000", "host.copy_bandwidth_mib_s=1"
)


def goal(rounds):
    lines = [[] for _ in range(RANKS)]
    waits = [[] for _ in range(RANKS)]

    def add(rank, text):
        label = sum(":" in line for line in lines[rank]) + 1
        lines[rank].append(f"l{label}: {text}")
        lines[rank].extend(f"l{label} requires l{one}" for one in waits[rank])
        return label

    for computed, pairs in rounds:
        for rank in range(RANKS):
            waits[rank] = [add(rank, f"calc {computed[rank]}")]
        begun = [[] for _ in range(RANKS)]
        for sender, step, size in pairs:
            receiver = (sender + step) % RANKS
            begun[receiver].append(add(receiver, f"recv {size}b from {sender} tag 0 // in MPI_Irecv MPI_Waitall"))
            begun[sender].append(add(sender, f"send {size}b to {receiver} tag 0 // in MPI_Isend MPI_Waitall"))
        for rank in range(RANKS):
            waits[rank] = begun[rank] or waits[rank]
    return "\n".join(
        [f"num_ranks {RANKS}", *(f"rank {r} {{\n" + "\n".join(lines[r]) + "\n}" for r in range(RANKS)), ""]
    )


def replayed(text, machine):
    with TemporaryDirectory() as folder:
        file = Path(folder) / "drawn.goal"
        file.write_text(text)
        schedule = read_trace(file)
    request = Request(
        machine=machine,
        ranks=RANKS,
        ranks_per_node=1,
        mapping="linear",
        nodes=tuple(range(RANKS)),
        engine="packet",
        seed=1,
    )
    operations = operations_of(schedule)
    return request, schedule, operations, timed(request, schedule, operations)


def shortened(request, schedule, operations, number):
    """The time with one computation a nanosecond shorter."""
    rank = operations.rank[number]
    low, high = operations.first[rank], operations.first[rank + 1]
    amounts = operations.amount[low:high].copy()
    amounts[number - low] -= 1
    given_rank = schedule.rank(int(rank))
    first, successors = given_rank.first_successor.tolist(), given_rank.successors.tolist()
    other = schedule.copy()
    other.change(int(rank), amounts.tolist(), first, successors)
    return timed(request, other, operations_of(other)).time_ps


@settings(max_examples=60, deadline=None)
@given(ROUNDS, st.sampled_from(["ape16", "extoll-64", "quong"]))
def test_the_parts_sum_to_the_time(rounds, machine):
    *_, replay = replayed(goal(rounds), apenet.machine(machine))
    parts = CriticalPath(replay)
    assert sum(part.length for part in parts) == replay.time_ps
    assert all(part.length >= 0 for part in parts)


def waits_behind_others(path):
    return any(stage in BEHIND_OTHERS for part in path for stage, _ in part.stages)


@settings(max_examples=100, deadline=None)
@given(SLOW_ROUNDS, st.data())
def test_only_what_lies_on_the_path_changes_the_time(rounds, data):
    """A computation that is a nanosecond shorter, in a run of milliseconds, saves that or nothing.

    Off the path it saves nothing, unless a message of the path waits behind others: then theirs may come earlier.
    """
    request, schedule, operations, replay = replayed(goal(rounds), SLOW)
    number = data.draw(st.sampled_from(np.flatnonzero(operations.kind == CALC).tolist()))
    start, end, rank = replay.began[number], replay.ended[number], operations.rank[number]
    path = CriticalPath(replay)
    is_on_path = any(
        part.kind == "computation" and part.rank == rank and part.start < end and part.until > start for part in path
    )
    saved = replay.time_ps - shortened(request, schedule, operations, number)
    assert saved in ((0, 1000) if is_on_path or waits_behind_others(path) else (0,))


@settings(max_examples=60, deadline=None)
@given(ROUNDS)
def test_a_picosecond_of_latency_counts_once_for_each_message_on_the_path(rounds):
    """Every message takes a picosecond more, or less: what the path is not made of has no part in it."""
    replays = [
        replayed(goal(rounds), apenet.machine("ideal").with_settings(f"card.latency_ns={latency}"))[-1]
        for latency in ("999.999", "1000", "1000.001")
    ]
    path = CriticalPath(replays[1])
    if waits_behind_others(path):
        return
    messages = sum(part.kind not in ("computation", "software") for part in path)
    less, time, more = (replay.time_ps for replay in replays)
    assert time - less <= messages <= more - time  # another path may be as long, with fewer messages or more


@pytest.mark.parametrize(("machine", "doorbell_ps"), [("ape128", 200_000), ("extoll-64", 150_000), ("pax", 150_000)])
@settings(max_examples=30, deadline=None)
@given(rounds=ROUNDS)
def test_a_doorbell_takes_its_own_time_and_waits_for_the_bus_in_another_stage(machine, doorbell_ps, rounds):
    *_, replay = replayed(goal(rounds), apenet.machine(machine))
    is_doorbell = replay.stages.stage == STAGES.index("doorbell")
    of_one_packet = replay.waits.bytes[replay.stages.wait] <= LEAST_PACKET_BYTES
    assert set(replay.stages.whole[is_doorbell & of_one_packet].tolist()) <= {doorbell_ps}


@settings(max_examples=30, deadline=None)
@given(ROUNDS)
def test_a_rewritten_program_has_the_same_messages_and_ends(rounds):
    request, schedule, operations, _ = replayed(goal(rounds), apenet.machine("ape16"))
    for rewritten in (balanced, early_sends, overlapped_sends):
        other = rewritten(schedule, operations)
        if other is None:
            continue
        for one, column in zip(schedule.traffic(), other.traffic(), strict=True):
            assert one.tolist() == column.tolist()
        assert timed(replace(request), other, operations_of(other)).time_ps > 0
