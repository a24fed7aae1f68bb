"""`ports` of run.json: engines of cards, buses and copies in memory, against times computed by hand."""

import pytest

import apenet

SENDS = 4


def used(tmp_path, goal, **options):
    path = tmp_path / "trace.goal"
    path.write_text(goal)
    return {port.name: port for port in apenet.replay(path, **options).ports}


def sends(count, size=8):
    """Rank 0 sends messages to rank 1."""
    lines = [f"s{i}: send {size}b to 1 tag {i}" for i in range(count)]
    receives = [f"r{i}: recv {size}b from 0 tag {i}" for i in range(count)]
    return "num_ranks 2\nrank 0 {\n" + "\n".join(lines) + "\n}\nrank 1 {\n" + "\n".join(receives) + "\n}\n"


@pytest.mark.parametrize(
    ("machine", "engine", "taken", "each_ns"),
    [
        # A message of 8 bytes has a header of 24 bytes: one packet on every card.
        ("ape128", "descriptor decoders", SENDS, 12 / 0.133),  # 12 cycles of 133 MHz
        ("apenetplus-v4", "descriptor decoders", SENDS, 25 / 0.25),
        ("pax", "work request engines", SENDS, 50),
        ("extoll-64", "VELO requesters", SENDS, 8 / 0.156),
        ("extoll-64", "VELO completers", SENDS, 8 / 0.156),
        ("ideal", "paths", SENDS, 32 / 1.048576),  # 1000 MiB/s
    ],
)
def test_engines_are_busy_for_each_message(tmp_path, machine, engine, taken, each_ns):
    port = used(tmp_path, sends(SENDS), machine=machine)[engine]
    assert port.packets == taken
    assert port.busy_us * 1e3 == pytest.approx(taken * each_ns, rel=1e-3)
    assert 0 < port.busiest_us <= port.busy_us


def test_messages_whose_timing_is_memoised_count_as_much(tmp_path):
    """Equal messages on an idle machine: the timing of the second is recorded, and the others repeat it."""
    lines = "\n".join(
        f"s{i}: send 64b to 1 tag {i}\nr{i}: recv 64b from 1 tag {i}\nr{i} requires s{i}"
        + (f"\ns{i} requires r{i - 1}" if i else "")
        for i in range(50)
    )
    answers = "\n".join(
        f"r{i}: recv 64b from 0 tag {i}\ns{i}: send 64b to 0 tag {i}\ns{i} requires r{i}"
        + (f"\nr{i} requires s{i - 1}" if i else "")
        for i in range(50)
    )
    ports = used(tmp_path, f"num_ranks 2\nrank 0 {{\n{lines}\n}}\nrank 1 {{\n{answers}\n}}\n", machine="ape128")
    decoders = ports["descriptor decoders"]
    assert decoders.packets == 100
    assert decoders.busy_us == pytest.approx(100 * 12 / 133, rel=1e-3)
    assert decoders.busiest_us == pytest.approx(50 * 12 / 133, rel=1e-3)
    assert decoders.waited_us == 0
    # A descriptor, the read of the payload (96 bytes), the payload written, the event written: 4 bursts.
    assert ports["buses"].packets == 100 * 4


def test_the_processor_links_of_qpace_carry_packets_and_credits(tmp_path):
    """128 bytes at 2500 MB/s and 249 ns for an operation, at both ends; each credit takes card.credit_ns."""
    machine = apenet.machine("qpace")
    links = used(tmp_path, sends(SENDS), machine=machine)["processor links"]
    carried = links.packets - 2 * SENDS
    assert carried > 0
    assert links.busy_us * 1e3 == pytest.approx(
        2 * SENDS * (128 / 2.5 + 249) + carried * machine.file.card.credit_ns.value, rel=1e-3
    )


def test_a_descriptor_waits_while_the_card_sends_what_is_before_it(tmp_path):
    """The card sends 17 packets of up to 256 bytes, each a burst of 16 + 32 clocks of 133 MHz.

    The second descriptor comes when the processor has copied as much, at 1300 MiB/s, and waits for the rest.
    """
    machine = apenet.machine("ape128", ["software.mpi.send_us=0.001"])
    waited = used(tmp_path, sends(2, 4096), machine=machine)["descriptor decoders"].waited_us
    sending, copying = 17 * 48 / 133, 4096 / (1300 * 1.048576)
    assert 0.3 * (sending - copying) < waited < sending - copying


def test_copies_of_one_node_wait_for_each_other(tmp_path):
    """Two ranks of a node send to the other two: 4000 bytes and a header at 1300 MiB/s, one copy after the other."""
    goal = "num_ranks 4\n" + "".join(
        f"rank {rank} {{\n{what} 4000b {way} {peer} tag 0\n}}\n"
        for rank, what, way, peer in (
            (0, "send", "to", 2),
            (1, "send", "to", 3),
            (2, "recv", "from", 0),
            (3, "recv", "from", 1),
        )
    )
    copies = used(tmp_path, goal, machine="ape128", ranks_per_node=4)["memory copies"]
    each = 4024 / (1300 * 1.048576)  # us
    assert (copies.packets, copies.used) == (2, 1)
    assert copies.busy_us == pytest.approx(2 * each, rel=1e-3)
    assert copies.waited_us == pytest.approx(each, rel=1e-3)
