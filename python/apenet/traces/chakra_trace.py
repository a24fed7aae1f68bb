"""Execution traces of Chakra (MLCommons), one file a rank: NAME.0.et, NAME.1.et ...

A node computes for its recorded duration, sends, receives, or takes part in a collective operation of all ranks, after
the nodes on which it depends. Communication goes on beside computation. Source of the format: Sridharan et al.,
"Chakra: advancing performance benchmarking and co-design using standardized execution traces", arXiv:2305.14516, and
its schema et_def.proto (version 0.0.4).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path
from typing import Any

from apenet.base.errors import InputError
from apenet.base.infiles import printable
from apenet.traces.collectives import Collective, Operation, assumed_messages
from apenet.traces.schedule import Chain, RankOperations, message

MOST_FILE_BYTES = 2**32
"""The most bytes of one rank's file."""
_NAME = re.compile(r"(?P<stem>.+)\.(?P<rank>[0-9]+)\.et")
_NS_PER_US = 1000
_COMPUTES, _COMMUNICATES = 0, 1  # CPUs of a rank
_METADATA, _SEND, _RECEIVE, _COLLECTIVE = 1, 5, 6, 7
_MOST_KIND = 7
_FIRST_COLLECTIVE_TAG = 2**31
_MOST_SHIFT = 63

_OPERATIONS = (
    Operation.ALLREDUCE,
    Operation.REDUCE,
    Operation.ALLGATHER,
    Operation.GATHER,
    Operation.SCATTER,
    Operation.BROADCAST,
    Operation.ALLTOALL,
    Operation.REDUCE_SCATTER,
    Operation.REDUCE_SCATTER,
    Operation.BARRIER,
)
"""By the number of the schema's CollectiveCommType."""


@dataclass(slots=True)
class _Node:
    number: int
    kind: int
    name: str
    after: list[int]
    duration_ns: int
    numbers: dict[str, int]
    group: str
    collective: int = 0  # number of its collective operation


class ChakraTrace:
    """The nodes of a Chakra trace."""

    def __init__(self, file: Path) -> None:
        """Reads the files of all ranks, of which this is one. Raises InputError if they are not a whole trace."""
        self._name = printable(file)
        self.collectives: Counter[str] = Counter()
        """Collective operations by name."""
        self.computed_nodes = 0
        self.unknown_durations = 0
        self._ranks = [self._read(place) for place in self._files(file)]
        self._instances = self._find_instances()

    @property
    def rank_count(self) -> int:
        """The number of ranks."""
        return len(self._ranks)

    def notes(self) -> list[str]:
        """What a replay does not repeat, a sentence each."""
        notes = assumed_messages(self.collectives)
        if self.unknown_durations:
            notes.append(
                f"{self.unknown_durations} of {self.computed_nodes} computing nodes have no duration, and take no time"
            )
        return notes

    def _refused(self, expected: str) -> InputError:
        return InputError("trace", self._name, expected)

    def _files(self, file: Path) -> list[Path]:
        named = _NAME.fullmatch(file.name)
        if named is None:
            raise self._refused("a file of Chakra named NAME.RANK.et, beside those of the other ranks")
        stem = named["stem"]
        found = {
            int(other["rank"]): place
            for place in file.parent.iterdir()
            if (other := _NAME.fullmatch(place.name)) is not None and other["stem"] == stem
        }
        missing = [rank for rank in range(max(found) + 1) if rank not in found]
        if missing:
            raise self._refused(f"a file for each rank: {stem}.{missing[0]}.et is missing")
        return [found[rank] for rank in range(len(found))]

    def _read(self, place: Path) -> list[_Node]:
        try:
            if place.stat().st_size > MOST_FILE_BYTES:
                raise self._refused(f"files of at most {MOST_FILE_BYTES} bytes")
            read = place.read_bytes()
        except OSError as error:
            raise self._refused(f"files that can be read: {printable(place)}: {error.strerror}") from error
        messages = _messages(read)
        try:
            next(messages)  # metadata of the file
            nodes = [self._node(content) for content in messages]
        except (ValueError, StopIteration) as error:
            raise self._refused(f"files of Chakra: {printable(place)} is damaged ({error})") from error
        known = {node.number for node in nodes}
        if len(known) != len(nodes):
            raise self._refused(f"nodes with numbers of their own: {printable(place)}")
        for node in nodes:
            unknown = [number for number in node.after if number not in known]
            if unknown:
                raise self._refused(f"nodes that exist: node {node.number} of {printable(place)} awaits {unknown[0]}")
        return nodes

    def _node(self, content: bytes) -> _Node:
        node = _schema()()
        try:
            node.ParseFromString(content)
        except import_module("google.protobuf.message").DecodeError as error:
            raise ValueError(str(error)) from error
        numbers: dict[str, int] = {}
        group = ""
        for attribute in node.attr:
            chosen = attribute.WhichOneof("value")
            if chosen == "string_val":
                group = attribute.string_val if attribute.name in ("pg_name", "comm_group") else group
            elif chosen is not None:
                numbers[attribute.name] = int(getattr(attribute, chosen))
        if not 0 < node.type <= _MOST_KIND:
            raise ValueError(f"node {node.id} is of an unknown type, {node.type}")
        return _Node(
            node.id,
            node.type,
            node.name,
            [*node.data_deps, *node.ctrl_deps],
            node.duration_micros * _NS_PER_US,
            numbers,
            group,
        )

    def _find_instances(self) -> dict[int, Collective]:
        """The collective operations: the first of each rank belong together, then the second, and so on."""
        calls = [[node for node in nodes if node.kind == _COLLECTIVE] for nodes in self._ranks]
        counts = {len(made) for made in calls}
        if len(counts) > 1:
            raise self._refused(f"as many collective operations in each rank, not {min(counts)} to {max(counts)}")
        instances = {}
        for number, made in enumerate(zip(*calls, strict=True)):
            kinds = {node.numbers.get("comm_type", -1) for node in made}
            sizes = {node.numbers.get("comm_size", -1) for node in made}
            groups = {node.group for node in made}
            kind, size_bytes = min(kinds), max(sizes)
            if len(kinds) > 1 or not 0 <= kind < len(_OPERATIONS) or min(sizes) < 0:
                raise self._refused(
                    f"collective operations with comm_type and comm_size that agree: operation {number}, {made[0].name}"
                )
            if len(groups) > 1:
                raise self._refused(f"collective operations of all ranks: operation {number} is of several groups")
            operation = _OPERATIONS[kind]
            self.collectives[operation.value] += 1
            for node in made:
                node.collective = number
            instances[number] = Collective(operation, [_block(operation, size_bytes, len(made))] * len(made))
        return instances

    def operations(self) -> Iterator[RankOperations]:
        """The operations of each rank, one after the other."""
        for rank, nodes in enumerate(self._ranks):
            written = RankOperations()
            ends: dict[int, list[int]] = {}
            for node in self._ordered(nodes):
                is_message = node.kind in (_SEND, _RECEIVE, _COLLECTIVE)
                chain = Chain(written, _COMMUNICATES if is_message else _COMPUTES)
                chain.await_end(number for before in node.after for number in ends[before])
                if node.kind == _COLLECTIVE:
                    tag = _FIRST_COLLECTIVE_TAG + node.collective
                    for steps in self._instances[node.collective].rounds(rank):
                        chain.await_end(
                            [
                                chain.begin(message(step.member, step.size_bytes, tag, is_send=step.is_send))
                                for step in steps
                            ]
                        )
                elif is_message:
                    chain.await_end([chain.begin(self._message(node))])
                elif node.kind != _METADATA:
                    self.computed_nodes += 1
                    self.unknown_durations += node.duration_ns == 0
                    chain.compute(node.duration_ns)
                ends[node.number] = chain.pending()
            yield written

    def _ordered(self, nodes: Sequence[_Node]) -> Iterator[_Node]:
        """Each after those that it awaits."""
        found = {node.number: node for node in nodes}
        try:
            order = tuple(TopologicalSorter({node.number: node.after for node in nodes}).static_order())
        except CycleError as error:
            shown = " -> ".join(str(number) for number in error.args[1])
            raise self._refused(f"nodes that do not await each other: {shown}") from error
        return (found[number] for number in order)

    def _message(self, node: _Node) -> str:
        is_send = node.kind == _SEND
        peer = node.numbers.get("comm_dst" if is_send else "comm_src", -1)
        size_bytes, tag = node.numbers.get("comm_size", -1), node.numbers.get("comm_tag", 0)
        if not 0 <= peer < len(self._ranks) or size_bytes < 0 or not 0 <= tag < _FIRST_COLLECTIVE_TAG:
            raise self._refused(
                f"messages with comm_{'dst' if is_send else 'src'}, comm_size and comm_tag, of {len(self._ranks)} "
                f"ranks: node {node.number}, {node.name}, has {node.numbers}"
            )
        return message(peer, size_bytes, tag, is_send=is_send)


def _block(operation: Operation, size_bytes: int, members: int) -> int:
    """One member's part of comm_size, which is what a member gives, as in ASTRA-sim's collectives."""
    parts = (Operation.ALLTOALL, Operation.REDUCE_SCATTER, Operation.SCATTER)
    return -(-size_bytes // members) if operation in parts else size_bytes


def _messages(content: bytes) -> Iterator[bytes]:
    """The messages of a file, each behind its length. Raises ValueError where they end early."""
    at = 0
    while at < len(content):
        length, shift = 0, 0
        while True:
            if at >= len(content) or shift > _MOST_SHIFT:
                raise ValueError(f"no length of a message at byte {at}")
            byte = content[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:  # noqa: PLR2004 (the mark that more follows)
                break
        if at + length > len(content):
            raise ValueError(f"it ends within a message, at byte {len(content)} of {at + length}")
        yield content[at : at + length]
        at += length


@cache
def _schema() -> Any:  # noqa: ANN401 (made at run time)
    """The class of a node: of Chakra's schema, what a replay needs."""
    try:
        descriptor = import_module("google.protobuf.descriptor_pb2")
        pool = import_module("google.protobuf.descriptor_pool")
        factory = import_module("google.protobuf.message_factory")
    except ImportError as error:
        raise InputError("trace", "Chakra", "an installed protobuf: pip install protobuf") from error
    kinds = descriptor.FieldDescriptorProto
    one, many = kinds.LABEL_OPTIONAL, kinds.LABEL_REPEATED
    file = descriptor.FileDescriptorProto(name="chakra_node.proto", package="apenet.chakra", syntax="proto3")
    attribute = file.message_type.add(name="Attribute")
    attribute.oneof_decl.add(name="value")
    attribute.field.add(name="name", number=1, label=one, type=kinds.TYPE_STRING)
    for name, number in (
        ("int32", 7),
        ("int64", 9),
        ("uint32", 11),
        ("uint64", 13),
        ("sint32", 15),
        ("sint64", 17),
        ("fixed32", 19),
        ("fixed64", 21),
        ("sfixed32", 23),
        ("sfixed64", 25),
        ("bool", 27),
        ("string", 29),
    ):
        kind = getattr(kinds, f"TYPE_{name.upper()}")
        attribute.field.add(name=f"{name}_val", number=number, label=one, type=kind, oneof_index=0)
    node = file.message_type.add(name="Node")
    for name, number, label, kind in (
        ("id", 1, one, kinds.TYPE_UINT64),
        ("name", 2, one, kinds.TYPE_STRING),
        ("type", 3, one, kinds.TYPE_INT32),
        ("ctrl_deps", 4, many, kinds.TYPE_UINT64),
        ("data_deps", 5, many, kinds.TYPE_UINT64),
        ("duration_micros", 7, one, kinds.TYPE_UINT64),
    ):
        node.field.add(name=name, number=number, label=label, type=kind)
    node.field.add(name="attr", number=10, label=many, type=kinds.TYPE_MESSAGE, type_name=".apenet.chakra.Attribute")
    made = pool.DescriptorPool()
    made.Add(file)
    return factory.GetMessageClass(made.FindMessageTypeByName("apenet.chakra.Node"))
