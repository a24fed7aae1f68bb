"""Benchmarks at the card: scripted processes over the card's own library, no process of the system."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from apenet import _core
from apenet._core import version as __version__
from apenet.bench.result import BenchResult, make_result
from apenet.errors import InputError, from_core
from apenet.machine import Machine

PAIR = 2


def measure(
    machine: Machine,
    test: str,
    sizes: Sequence[int],
    *,
    nodes: Sequence[int] | None,
    channels: int,
    iterations: int | None,
    seed: int,
    progress: Callable[[int], None],
) -> BenchResult:
    """Each size on a fresh machine; `progress` is told the size before it is measured."""
    if nodes is not None and len(nodes) != PAIR:
        raise InputError("nodes", ",".join(map(str, nodes)), "two nodes at layer card, such as 0,1")
    description = machine.description(seed)
    options = _core.CardTestOptions()
    options.channels = channels
    options.nodes = list(nodes or ())
    if iterations is not None:
        options.iterations = iterations
    points = []
    for size in sizes:
        progress(size)
        options.sizes = [size]
        try:
            (point,) = _core.run_card_test(description, getattr(_core.CardTest, test), options)
        except ValueError as error:
            raise from_core(error) from error
        points.append((point.size_bytes, point.time_ps * 1e-6, point.bandwidth_mib_s))
    return make_result(machine.name, test, "card", seed, __version__, points)
