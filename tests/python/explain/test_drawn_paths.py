"""The critical path of drawn programs: what does not lie on it does not change the time of a run."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import apenet
from apenet.explain.critical_path import critical_path
from apenet.explain.rewrite import balanced, early_sends, overlapped_sends
from apenet.explain.timed import CALC, operations_of, timed
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
# Every rank sends to the rank so many places on: then no two messages meet in a card, and none has to queue.
RINGS = st.lists(
    st.tuples(st.lists(st.integers(1, 20_000), min_size=RANKS, max_size=RANKS), st.integers(1, RANKS - 1)),
    min_size=1,
    max_size=5,
).map(lambda rounds: [(computed, [(rank, step, 64) for rank in range(RANKS)]) for computed, step in rounds])


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
        machine=apenet.machine(machine),
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
    *_, replay = replayed(goal(rounds), machine)
    parts = critical_path(replay)
    assert sum(part.length for part in parts) == replay.time_ps
    assert all(part.length >= 0 for part in parts)


@settings(max_examples=60, deadline=None)
@given(RINGS, st.data())
def test_only_what_lies_on_the_path_changes_the_time(rounds, data):
    """Where no message meets another one: else an earlier message may go first, and delay what is on the path."""
    request, schedule, operations, replay = replayed(goal(rounds), "ideal")
    number = data.draw(st.sampled_from(np.flatnonzero(operations.kind == CALC).tolist()))
    start, end, rank = replay.began[number], replay.ended[number], operations.rank[number]
    is_on_path = any(
        part.kind == "computation" and part.rank == rank and part.start < end and part.until > start
        for part in critical_path(replay)
    )
    other = shortened(request, schedule, operations, number)
    if is_on_path:
        assert replay.time_ps - 1000 <= other <= replay.time_ps
    else:
        assert other == replay.time_ps


@settings(max_examples=30, deadline=None)
@given(ROUNDS)
def test_a_rewritten_program_has_the_same_messages_and_ends(rounds):
    request, schedule, operations, _ = replayed(goal(rounds), "ape16")
    for rewritten in (balanced, early_sends, overlapped_sends):
        other = rewritten(schedule, operations)
        if other is None:
            continue
        for one, column in zip(schedule.traffic(), other.traffic(), strict=True):
            assert one.tolist() == column.tolist()
        assert timed(replace(request), other, operations_of(other)).time_ps > 0
