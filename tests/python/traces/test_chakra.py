"""Chakra's execution traces, encoded here by hand from the schema, replay as their nodes say."""

from __future__ import annotations

import pytest

import apenet
from apenet.traces.convert import converted

pytest.importorskip("google.protobuf")
COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
ALL_REDUCE, ALL_TO_ALL = 0, 6


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def field(number, value):
    """A field of a message: a number, or bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    if isinstance(value, str):
        return field(10, field(1, name.encode()) + field(29, value.encode()))
    return field(10, field(1, name.encode()) + field(13, value))


def node(number, kind, after=(), duration_us=0, name="n", data=(), **attributes):
    content = field(1, number) + field(2, name.encode()) + field(3, kind)
    content += field(4, b"".join(map(varint, after))) if after else b""  # packed
    content += b"".join(field(5, before) for before in data)
    content += field(7, duration_us) + field(8, field(1, b"tensors"))
    return content + b"".join(attribute(*item) for item in attributes.items())


def write(folder, ranks, name="t"):
    for rank, nodes in enumerate(ranks):
        messages = [field(1, b"0.0.4"), *nodes]
        file = folder / f"{name}.{rank}.et"
        file.write_bytes(b"".join(varint(len(message)) + message for message in messages))
    return folder / f"{name}.0.et"


def operations(file):
    with converted(file) as (goal, notes), open(goal) as text:  # noqa: PTH123 (a descriptor)
        return text.read(), notes


def test_nodes_compute_and_communicate_after_those_they_await(tmp_path):
    file = write(
        tmp_path,
        [
            [
                node(1, COMPUTE, duration_us=30),
                node(2, SEND, after=[1], comm_dst=1, comm_size=4096, comm_tag=3),
                node(3, COMPUTE, data=[1], duration_us=500),
            ],
            [node(9, COMPUTE, data=[4], duration_us=11), node(4, RECEIVE, comm_src=0, comm_size=4096, comm_tag=3)],
        ],
    )
    hand = tmp_path / "hand.goal"
    hand.write_text(
        """num_ranks 2
rank 0 {
a: calc 30000
b: send 4096b to 1 tag 3 cpu 1
b requires a
c: calc 500000
c requires a
}
rank 1 {
a: recv 4096b from 0 tag 3 cpu 1
b: calc 11000
b requires a
}
"""
    )
    result, expected = apenet.replay(file), apenet.replay(hand)
    assert result.trace_hash == expected.trace_hash
    assert result.finish_us.tolist() == expected.finish_us.tolist()
    assert result.finish_us[0] == 530  # the send goes on beside
    assert [warning for warning in result.warnings if "duration" in warning] == []


def test_collective_operations_are_of_all_ranks(tmp_path):
    nodes = [
        node(0, COMPUTE, name="unknown"),
        node(1, COLLECTIVE, data=[0], comm_type=ALL_REDUCE, comm_size=1024),
        node(2, COLLECTIVE, data=[1], comm_type=ALL_TO_ALL, comm_size=4 * 400),
    ]
    file = write(tmp_path, [nodes] * 4)
    text, notes = operations(file)
    assert text.count("send 1024b") == 4 * 2  # recursive doubling
    assert text.count("send 400b") == 4 * 3
    assert "(1 allreduce, 1 alltoall)" in notes[0]
    assert notes[1] == "4 of 4 computing nodes have no duration, and take no time"
    assert apenet.replay(file, machine="ape16").messages >= 20


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ([[node(1, COMPUTE, after=[2])]], "node 1 of .* awaits 2"),
        ([[node(1, COMPUTE, after=[2]), node(2, COMPUTE, data=[1])]], "do not await each other: "),
        ([[node(1, COMPUTE), node(1, COMPUTE)]], "numbers of their own"),
        ([[node(1, SEND, comm_dst=1, comm_size=8)]], "node 1, n, has .*comm_dst"),
        ([[node(1, SEND, comm_dst=0)]], "comm_size"),
        ([[node(1, 12)]], "unknown type, 12"),
        ([[node(1, COLLECTIVE, comm_type=0, comm_size=8)], []], "not 0 to 1"),
        ([[node(1, COLLECTIVE, comm_type=0, comm_size=8)], [node(1, COLLECTIVE, comm_type=1, comm_size=8)]], "agree"),
        (
            [
                [node(1, COLLECTIVE, comm_type=0, comm_size=8, pg_name="a")],
                [node(1, COLLECTIVE, comm_type=0, comm_size=8, pg_name="b")],
            ],
            "of several groups",
        ),
    ],
)
def test_bad_nodes_are_named(tmp_path, ranks, expected):
    with pytest.raises(apenet.InputError, match=expected):
        apenet.replay(write(tmp_path, ranks))


def test_files_of_all_ranks_are_needed(tmp_path):
    file = write(tmp_path, [[node(1, COMPUTE, duration_us=1)]] * 3)
    (tmp_path / "t.1.et").unlink()
    with pytest.raises(apenet.InputError, match=r"t\.1\.et is missing"):
        apenet.replay(file)
    other = file.rename(tmp_path / "trace.et")
    with pytest.raises(apenet.InputError, match=r"NAME\.RANK\.et"):
        apenet.replay(other)


def test_what_goal_cannot_hold_is_refused(tmp_path):
    for large in (
        node(1, COMPUTE, duration_us=2**62),
        node(1, SEND, data=[], comm_dst=0, comm_size=2**62, comm_tag=1),
    ):
        with pytest.raises(apenet.InputError, match=r"t\.0\.et, as GOAL:"):
            apenet.replay(write(tmp_path, [[large]]))


def test_a_damaged_file_is_refused_wherever_it_ends(tmp_path):
    nodes = [node(1, COMPUTE, duration_us=1), node(2, SEND, data=[1], comm_dst=0, comm_size=8, comm_tag=1)]
    whole = write(tmp_path, [nodes]).read_bytes()
    heads = len(varint(6)) + len(field(1, b"0.0.4"))
    ends = {heads, heads + 1 + len(nodes[0])}  # between two nodes, nobody can tell
    for end in set(range(heads + 1, len(whole))) - ends:
        (tmp_path / "t.0.et").write_bytes(whole[:end])
        with pytest.raises(apenet.InputError, match="damaged"):
            apenet.replay(tmp_path / "t.0.et")
