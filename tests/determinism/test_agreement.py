"""Ranks with and without processes have one message engine: they agree to the picosecond."""

import random
import subprocess
from pathlib import Path

import pytest

import apenet as package

ROOT = Path(__file__).resolve().parents[2]
BUFFERS, BUFFER_BYTES = 16, 2 << 20  # as in plan.c
MACHINES = ["ape16", "apenetplus-v5", "extoll-64", "ideal", "pax", "qpace", "quong"]

# One line for each operation of a rank: what it is, peer, bytes, tag, number.
Operation = tuple[int, str, int, int, int, int]


def ping_pong(sizes: list[int], late_ns: int) -> list[Operation]:
    """Expected messages, or unexpected ones: the receiver computes first."""
    plan: list[Operation] = []
    number = 0
    for size in sizes:
        for sender, receiver in ((0, 1), (1, 0)):
            if late_ns:
                plan.append((receiver, "c", 0, late_ns, 0, 0))
            plan.append((receiver, "r", sender, size, 7, number))
            plan += [(sender, "s", receiver, size, 7, number + 1), (sender, "w", 0, 0, 0, number + 1)]
            plan.append((receiver, "w", 0, 0, 0, number))
            number += 2
    return plan


def traffic(seed: int, ranks: int) -> list[Operation]:
    """Rounds in which everybody sends to some and receives from them, in an order of its own, by name or not."""
    random_ = random.Random(seed)
    plan: list[Operation] = []
    number = 0
    for turn in range(4):
        begun: dict[int, list[int]] = {rank: [] for rank in range(ranks)}
        posts: dict[int, list[tuple[str, int, int, int]]] = {rank: [] for rank in range(ranks)}
        wild = turn == 3
        for sender in range(ranks):
            for message in range(random_.randrange(1, 5)):
                receiver = random_.randrange(ranks)
                if receiver == sender:
                    continue
                size = random_.choice([0, 8, 100, 1000, 4096, 4097, 30000, 200_000])
                tag = 10 * turn + message
                posts[sender].append(("s", receiver, size, tag))
                expected = ("r", -1, BUFFER_BYTES, -1) if wild else ("r", sender, BUFFER_BYTES, tag)
                posts[receiver].append(expected)
        for rank in range(ranks):
            random_.shuffle(posts[rank])
            for what, peer, size, tag in posts[rank]:
                if random_.random() < 0.3:
                    plan.append((rank, "c", 0, random_.randrange(1, 20_000), 0, 0))
                plan.append((rank, what, peer, size, tag, number))
                begun[rank].append(number)
                number += 1
            plan += [(rank, "w", 0, 0, 0, one) for one in begun[rank]]
    return plan


@pytest.fixture(scope="session")
def planned(tmp_path_factory):
    """The program that does what a plan says."""
    program = tmp_path_factory.mktemp("plan") / "plan"
    source = ROOT / "tests" / "conformance" / "fabric" / "plan.c"
    options = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
    command = ["gcc", *options, "-o", program, source, "-lfabric"]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return program


def scripted(plan: list[Operation], begin: int):
    def program(rank):
        handles = {}
        for who, what, peer, size, tag, number in plan:
            address = begin + number % BUFFERS * BUFFER_BYTES
            if who != rank.id:
                continue
            if what == "s":
                handles[number] = yield rank.isend(peer, size, tag, address=address)
            elif what == "r":
                source, wanted = (None if value < 0 else value for value in (peer, tag))
                handles[number] = yield rank.irecv(source, wanted, address=address)
            elif what == "w":
                yield rank.wait(handles[number])
            else:
                yield rank.compute_us(size / 1000)

    return program


def require_agreement(program: Path, plan: list[Operation], folder: Path, ranks: int, machine: str) -> None:
    path = folder / "plan"
    path.write_text("".join(" ".join(map(str, operation)) + "\n" for operation in plan))
    trace = folder / "t.goal"
    ran = package.run([program, path], n=ranks, machine=machine, record=trace, capture=True)
    played = package.workload(scripted(plan, int(ran.stdout)), n=ranks, machine=machine)
    replayed = package.replay(trace, machine=machine)
    finish_us = [rank.virtual_time_us for rank in ran.ranks]
    for other in (played, replayed):
        assert other.finish_us.tolist() == finish_us
        # The hash covers all that every card reported: who, what, how much, when, in its order.
        assert other.trace_hash == ran.trace_hash
        assert (other.messages, other.bytes) == (ran.messages, ran.bytes)
    assert not [warning for warning in replayed.warnings if "address" in warning]


SIZES = [0, 1, 32, 33, 168, 169, 4000, 4072, 4073, 4096, 4097, 65536, 65537, 1_000_000]


@pytest.mark.parametrize("late_ns", [0, 150_000], ids=["expected", "unexpected"])
@pytest.mark.parametrize("machine", MACHINES)
def test_a_ping_pong_takes_the_same_time_with_and_without_processes(planned, tmp_path, machine, late_ns):
    require_agreement(planned, ping_pong(SIZES, late_ns), tmp_path, 2, machine)


@pytest.mark.parametrize("machine", MACHINES)
def test_random_traffic_takes_the_same_time_with_and_without_processes(planned, tmp_path, machine):
    require_agreement(planned, traffic(7, 5), tmp_path, 5, machine)


def test_more_messages_than_slots_take_the_same_time_with_and_without_processes(planned, tmp_path):
    """A rank without a process has no slots: what a sender waits for in the simulator costs no virtual time."""
    messages = range(0, 2 * 4500, 2)
    plan: list[Operation] = [(1, "c", 0, 20_000_000, 0, 0)]
    for number in messages:
        plan += [(0, "s", 1, 1000, 7, number), (0, "w", 0, 0, 0, number)]
        plan += [(1, "r", 0, 1000, 7, number + 1), (1, "w", 0, 0, 0, number + 1)]
    require_agreement(planned, plan, tmp_path, 2, "ape16")


def test_a_rank_that_has_ended_gives_no_more_credit(planned, tmp_path):
    """Rank 2 passes a message on and ends: the room that it took from its ring stays taken."""
    plan: list[Operation] = [
        (0, "s", 2, 1000, 7, 0),
        (0, "w", 0, 0, 0, 0),
        (2, "r", 0, BUFFER_BYTES, 7, 1),
        (2, "w", 0, 0, 0, 1),
        (2, "s", 3, 1000, 8, 2),
        (2, "w", 0, 0, 0, 2),
        (3, "r", 2, BUFFER_BYTES, 8, 3),
        (3, "w", 0, 0, 0, 3),
    ]
    require_agreement(planned, plan, tmp_path, 5, "qpace")
