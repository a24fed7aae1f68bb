"""What another placement would gain for the traffic of a run, by the bytes on the links: no run is made for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from apenet.base.errors import ApenetError
from apenet.base.grid import nearly_cubic
from apenet.machine import Machine
from apenet.machine.mapping import map_ranks
from apenet.placing.score import Score, score
from apenet.placing.traffic import RankTraffic
from apenet.run.program_result import RunResult
from apenet.run.results import show_size

_MOST_FOLDED = 1024
"""Ranks of a grid that is folded: more take minutes on a large machine."""
_MOST_PAIRS = 2**16
_DIMENSIONS = (2, 3, 4)
_MOST_LEFT = 0.9
"""A placement is named if it leaves at most this share of the bytes on the busiest link."""


def named_placements(
    machine: Machine, ranks: int, ranks_per_node: int, grid: Sequence[int] = ()
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The values of `--map` that fit, but for random ones and files, with the node of each rank.

    `grid` is that of the program, if it has one. The other grids are nearly a square, a cube and a hypercube: those
    that MPI_Dims_create mostly makes.
    """
    grids = [tuple(grid)] if len(grid) > 1 else []
    if ranks <= _MOST_FOLDED:
        grids += [made for made in (nearly_cubic(ranks, count) for count in _DIMENSIONS) if 1 not in made]
    for mapping in ("linear", *dict.fromkeys(f"cart:{'x'.join(map(str, extents))}" for extents in grids)):
        try:
            yield mapping, tuple(map_ranks(machine, ranks, ranks_per_node, mapping))
        except ApenetError:  # it does not fit the machine
            continue


def placement_gain(result: RunResult, machine: Machine, ranks_per_node: int) -> str:
    """What the best of the named placements would change on the links, for the summary of a run; "": nothing much."""
    if len(result.traffic) > _MOST_PAIRS or result.faults.events:  # routes change with faults
        return ""
    ranks = len(result.ranks)
    rows = np.array([row for row in result.traffic if row[0] != row[1] and row[2] > 0], dtype=np.int64).reshape(-1, 3)
    traffic = RankTraffic("run", ranks, rows[:, 0], rows[:, 1], rows[:, 2])
    grid = tuple(extent for extent in result.grid if extent > 1)
    try:
        before = score(machine, traffic, np.array(result.nodes))
        scored = [
            (name, score(machine, traffic, np.array(nodes)))
            for name, nodes in named_placements(machine, ranks, ranks_per_node, grid)
        ]
    except ApenetError:  # a routing whose packets take detours at random
        return ""
    better = [(name, after) for name, after in scored if _is_worth_it(before, after)]
    if not better:
        return ""
    name, after = min(better, key=lambda one: (one[1].largest_link_bytes, one[1].hop_bytes))
    return (
        f"--map {name} would put {_size(after)} instead of {_size(before)} on the busiest link "
        f"({after.mean_dilation:.2f} instead of {before.mean_dilation:.2f} links a byte); --report measures the time"
    )


def _is_worth_it(before: Score, after: Score) -> bool:
    relieves = before.largest_link_bytes > 0 and after.largest_link_bytes <= _MOST_LEFT * before.largest_link_bytes
    return relieves and after.is_as_good_as(before)


def _size(scored: Score) -> str:
    return show_size(round(scored.largest_link_bytes))
