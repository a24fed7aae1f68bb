"""What awaited messages did: the stages sum to the waits and to the critical path, and have the right values."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import apenet
from apenet.explain.critical_path import CriticalPath
from apenet.explain.timed import operations_of, timed
from apenet.explain.waiting import STAGE_MEANINGS, STAGES, by_cause, by_cause_and_stage, caused
from apenet.run.replay import read_trace
from apenet.run.results import Request

CARDS = ("ape128", "apenetplus-v4", "pax", "extoll-64", "qpace", "ideal")


def replayed(ranks, machine, changes=(), *, ranks_per_node=1, engine="packet"):
    """Replays a list of operations for each rank; those of a rank are independent."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "drawn.goal"
        lines = ["\n".join(f"l{number}: {one}" for number, one in enumerate(rank)) for rank in ranks]
        file.write_text(
            f"num_ranks {len(ranks)}\n" + "".join(f"rank {r} {{\n{text}\n}}\n" for r, text in enumerate(lines))
        )
        schedule = read_trace(file)
    request = Request(
        machine=apenet.machine(machine, changes),
        ranks=len(ranks),
        ranks_per_node=ranks_per_node,
        mapping="linear",
        nodes=tuple(rank // ranks_per_node for rank in range(len(ranks))),
        engine=engine,
        seed=1,
    )
    return timed(request, schedule, operations_of(schedule))


def stages_of(replay, rank):
    """Nanoseconds in each stage of the messages that ended the waits of a rank."""
    chosen = replay.waits.rank[replay.stages.wait] == rank
    sums = np.zeros(len(STAGES), dtype=np.int64)
    np.add.at(sums, replay.stages.stage[chosen], replay.stages.whole[chosen])
    return {STAGES[stage]: int(ps) / 1e3 for stage, ps in enumerate(sums) if ps}


def require_sums(replay):
    waits, stages = replay.waits, replay.stages
    assert len(waits.rank) > 0
    for weights, since in ((stages.whole, waits.posted), (stages.awaited, np.maximum(waits.posted, waits.start))):
        sums = np.zeros(len(waits.rank), dtype=np.int64)
        np.add.at(sums, stages.wait, weights)
        assert sums.tolist() == (waits.until - since).tolist()
    causes = by_cause(caused(replay))
    rows = by_cause_and_stage(replay)
    for cause in ("handshake", "transfer"):
        assert sum(ps for of, _, ps in rows if of == cause) == causes.get(cause, 0)
    parts = CriticalPath(replay)
    of_messages = sum(part.length for part in parts if part.kind not in ("computation", "software"))
    assert sum(parts.stages_of_messages().values()) == of_messages
    assert sum(one.ps for one in parts.contributors()) == replay.time_ps
    assert sum(part.length for part in parts) == replay.time_ps


MESSAGES = st.lists(
    st.tuples(st.integers(0, 5), st.integers(1, 5), st.sampled_from([0, 64, 3000, 70_000])), min_size=1, max_size=12
)


@pytest.mark.parametrize(
    ("machine", "engine"), [*((card, "packet") for card in CARDS), ("ape128", "flit"), ("pax", "flit")]
)
@settings(max_examples=10, deadline=None)
@given(messages=MESSAGES, per_node=st.sampled_from([1, 2]))
def test_stages_sum_to_waits_and_path_exactly(machine, engine, messages, per_node):
    ranks = [[] for _ in range(6)]
    for number, (sender, step, size) in enumerate(messages):
        receiver = (sender + step) % 6
        ranks[sender].append(f"send {size}b to {receiver} tag {number}")
        ranks[receiver].append(f"recv {size}b from {sender} tag {number}")
    require_sums(replayed(ranks, machine, ranks_per_node=per_node, engine=engine))


def test_each_stage_is_explained():
    assert set(STAGES) == set(STAGE_MEANINGS)


ONE = [["send 8b to 1 tag 0"], ["recv 8b from 0 tag 0"]]


def test_one_message_on_an_idle_machine():
    """docs/models/apelink.md. 32 bytes; clocks of 133 MHz of card and bus, and a doorbell of 200 ns."""
    clock = 1 / 0.133
    stages = stages_of(replayed(ONE, "ape128"), 1)
    assert set(stages) == {"doorbell", "card", "bus", "links"}
    assert stages["doorbell"] == pytest.approx(200, abs=0.1)
    # The read: 350 ns, the burst's 16 clocks and its first word. The payload, which ends with its tail, and the event:
    # 16 clocks and two words.
    read = 350 + 17 * clock
    event = 18 * clock
    assert read + event <= stages["bus"] <= read + event + 22 * clock
    # 12 clocks decode the descriptor. The look-up of 8 clocks ends before the tail is there.
    assert stages["card"] >= 12 * clock
    assert stages["card"] <= (12 + 8) * clock + 0.1


def test_copies_within_a_node():
    """The second sender's copy waits for the first one's: 4024 bytes at 1300 MiB/s; 500 ns more for the hand-over."""
    ranks = [
        ["send 4000b to 2 tag 0"],
        ["send 4000b to 3 tag 0"],
        ["recv 4000b from 0 tag 0"],
        ["recv 4000b from 1 tag 0"],
    ]
    replay = replayed(ranks, "ape128", ranks_per_node=4)
    copy = 4024 / (1300 * 1.048576) * 1e3
    first, second = stages_of(replay, 2), stages_of(replay, 3)
    assert first == {"memory copy": pytest.approx(copy + 500, abs=0.1)}
    assert second == {"memory busy": pytest.approx(copy, abs=0.1), "memory copy": pytest.approx(copy + 500, abs=0.1)}


def test_a_page_walk_is_translation():
    """The first packet misses the TLB: 1900 ns from its header on, of which the tail takes some."""
    replay = replayed(ONE, "apenetplus-v4")
    assert 1800 < stages_of(replay, 1)["translation"] <= 1900


def test_messages_of_two_senders_meet_on_a_link():
    """Ranks 0 and 1 send along x to rank 2. Only where they meet at the same time is the link busy with the other's."""
    both = [
        ["send 4000b to 2 tag 0"],
        ["send 4000b to 2 tag 0"],
        ["recv 4000b from 0 tag 0", "recv 4000b from 1 tag 0"],
    ]
    alone = [both[0], [], ["recv 4000b from 0 tag 0"]]
    assert "link busy" in stages_of(replayed(both, "ape128", ["network.link.clock_mhz=20"]), 2)
    assert sum(stages_of(replayed(both, "ape128", ["network.link.clock_mhz=20"]), 2).values()) > sum(
        stages_of(replayed(alone, "ape128", ["network.link.clock_mhz=20"]), 2).values()
    )


def test_a_slow_link_keeps_the_queue_into_the_network_full():
    """64000 bytes by rendezvous: the card makes packets faster than a link of a tenth of its clock takes them."""
    ranks = [["send 64000b to 1 tag 0"], ["recv 64000b from 0 tag 0"]]
    slow = stages_of(replayed(ranks, "ape128", ["network.link.clock_mhz=10"]), 1)
    payload = 64000 / (16 * 10 / 3) * 1e3  # ns
    assert max(slow, key=slow.get) == "queue full"
    assert slow["queue full"] > 0.8 * payload
    fast = stages_of(replayed(ranks, "ape128"), 1)
    assert max(fast, key=fast.get) in ("bus busy", "queue full")


def test_an_interrupt_comes_after_the_message():
    """It adds its 5000 ns to the message as it is without, and 2000 ns more where it waits for further events."""
    polled = stages_of(replayed(ONE, "ape128"), 1)
    told = stages_of(replayed(ONE, "ape128", ["card.interrupt_us=5"]), 1)
    assert told == {**polled, "interrupt": pytest.approx(5000, abs=1e-3)}
    coalesced = ["card.interrupt_us=5", "card.coalesce_us=2"]
    assert stages_of(replayed(ONE, "ape128", coalesced), 1) == {**polled, "interrupt": pytest.approx(7000, abs=1e-3)}


@pytest.mark.parametrize("machine", ["pax", "extoll-64"])
def test_each_process_waits_for_its_own_interrupt(machine):
    """A sender that waits for its rendezvous is told by an interrupt, too, while the receiver's is under way."""
    ranks = [["send 64000b to 1 tag 0"], ["recv 64000b from 0 tag 0"]]
    replay = replayed(ranks, machine, ["card.interrupt_us=5"])
    require_sums(replay)
    for rank in (0, 1):
        waits = int((replay.waits.rank == rank).sum())
        told = stages_of(replay, rank).get("interrupt", 0)
        assert told <= 5000 * waits + 1e-3
        assert told > 0


def test_a_full_receive_queue_is_the_receivers():
    """Four messages to a queue pair with one receive request: the second is refused, and waits for the timer."""
    ranks = [[f"send 8b to 1 tag {i}" for i in range(4)], [f"recv 8b from 0 tag {i}" for i in range(4)]]
    stages = stages_of(replayed(ranks, "pax", ["card.receive_queue_entries=1", "card.receive_repost_us=50"]), 1)
    assert "receiver full" in stages
    assert "receiver full" not in stages_of(replayed(ranks, "pax"), 1)


def test_bit_errors_are_retransmission():
    """48 bytes take 9 clocks of 115 MHz; the answer and the next try twice 70 ns of link and 10 clocks of router."""
    ranks = [[f"send 8b to 1 tag {i}" for i in range(20)], [f"recv 8b from 0 tag {i}" for i in range(20)]]
    stages = stages_of(replayed(ranks, "ape128", ["network.link.bit_error_rate=3e-3"]), 1)
    tries = stages["retransmission"] / (9 / 0.115 + 2 * (70 + 10 / 0.115))
    assert tries > 0.9
    assert tries == pytest.approx(round(tries), rel=1e-3)
    assert "retransmission" not in stages_of(replayed(ranks, "ape128"), 1)
