"""Benchmarks at the card: scripted ranks over the card's own library, without processes of the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from apenet import _core
from apenet.base.errors import InputError
from apenet.bench.layer_table import CARD, PAIR
from apenet.bench.request import MachineRequest
from apenet.bench.result import BenchResult, make_result

MEMORY = "memory"
"""The value of card.same_node with which messages within a node are copies."""


def measure(
    request: MachineRequest[BenchResult],
    options: _core.CardTestOptions,
    channels: Sequence[int],
    conditions: Mapping[str, object],
) -> BenchResult:
    """Measures each size for each number of channels, on a fresh machine."""
    machine = request.simulated
    if request.placed is not None and len(request.placed) != PAIR:
        raise InputError("nodes", ",".join(map(str, request.placed)), "two nodes at layer card, such as 0,1")
    _require_card(request)
    description = machine.description(request.seed, request.engine)
    test = getattr(_core.CardTest, request.traits.test)
    _require_soon(request, description, options, channels)
    points, channels_of_points, warnings = [], [], []
    for at_once in channels:
        options.channels = at_once
        for size in request.sizes_bytes:
            request.progress(size)
            options.sizes = [size]
            try:
                (point,) = _core.run_card_test(description, test, options)
            except ValueError as error:
                raise machine.refused(error) from error
            points.append((point.size_bytes, point.time_ps * 1e-6, point.bandwidth_mib_s))
            channels_of_points.append(at_once)
            warnings.append(point.warnings)
    return make_result(request, "card", points, channels=channels_of_points, conditions=conditions, warnings=warnings)


def _require_card(request: MachineRequest[BenchResult]) -> None:
    """Refuses two processes of one node whose messages pass no card."""
    placed = request.placed
    if placed is None or len(set(placed)) == len(placed):
        return
    key = request.simulated.file.card.same_node
    if key is None or key.value == MEMORY:
        expected = f"two different nodes at layer {CARD}: only with card.same_node = card a card takes part on one node"
        raise InputError("nodes", ",".join(map(str, placed)), expected)


def _require_soon(
    request: MachineRequest[BenchResult],
    description: _core.MachineDescription,
    options: _core.CardTestOptions,
    channels: Sequence[int],
) -> None:
    test = getattr(_core.CardTest, request.traits.test)
    options.sizes = request.sizes_bytes
    packet_hops = 0.0
    for at_once in channels:
        options.channels = at_once
        try:
            packet_hops += _core.count_card_test_packet_hops(description, test, options).all
        except ValueError as error:
            raise request.simulated.refused(error) from error
    request.require_soon(packet_hops)
