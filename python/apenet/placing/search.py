"""Searches a placement of ranks that sends bytes over fewer links.

The cost is hop-bytes: the sum over pairs of ranks of bytes times the fewest links between their nodes. To find the
least is a quadratic assignment problem, which can be solved exactly only for tens of ranks. The search starts from the
given placement, from placements grown rank by rank (greedy, several times with other ties), and from recursive
bisection of the ranks and the nodes. It improves the best by threshold accepting (Dueck and Scheuer, J. Comput. Phys.
90, 1990): a swap of two places is taken if it costs at most the threshold, which falls to zero. The search adds
whole numbers only, and all random numbers come from the seed, so it repeats.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apenet import _core
from apenet.base.errors import InputError
from apenet.base.grid import number_of, place_of
from apenet.base.numbers import checked_seed
from apenet.machine import Machine
from apenet.machine import machine as read_machine
from apenet.machine.mapping import Mapping, made_for, map_ranks
from apenet.placing.score import Score, score
from apenet.placing.traffic import Integers, RankTraffic, read_traffic

MOST_NODES = 4096
"""The table of distances has the square of it."""

_GROWTH_WORK = 2**20  # ranks times places, over all grown placements
_MOST_GROWN = 64
_FEWEST_GROWN = 2
_MOST_SCORED = 8
_SWAPS_PER_RANK = 1000
_MOST_SWAPS = 2**20
_UNUSED = -1


@dataclass(frozen=True)
class PlacementResult:
    """The given placement and the best one found, with their scores.

    `nodes` has the node of each rank, by its number in the partition if the machine has one chosen.
    """

    traffic: RankTraffic
    machine: Machine
    ranks_per_node: int
    seed: int
    start: str
    before: Score
    after: Score
    nodes: tuple[int, ...]

    def map_file(self) -> str:
        """The text of a file for `--map`: one node for each rank."""
        return "\n".join([made_for(self.machine, self.traffic.ranks), *map(str, self.nodes), ""])

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet map --json` prints."""
        return {
            "machine": self.machine.name,
            "partition": None if self.machine.partition is None else self.machine.partition.text,
            "traffic": self.traffic.source,
            "ranks": self.traffic.ranks,
            "ranks_per_node": self.ranks_per_node,
            "seed": self.seed,
            "start": self.start,
            "before": self.before.to_json(),
            "after": self.after.to_json(),
            "nodes": list(self.nodes),
        }


def optimise_placement(
    traffic: RankTraffic | str | Path,
    *,
    machine: Machine | str,
    ranks_per_node: int = 1,
    start: Mapping = "linear",
    seed: int = 1,
    progress: Callable[[str], None] = lambda _: None,
) -> PlacementResult:
    """Scores the placement `start`, and searches one whose hop-bytes and busiest link are no worse.

    `traffic`: what the ranks send, or the GOAL trace or matrix that says so. Raises InputError if the ranks do not fit
    the machine, MachineError for a machine without a network.
    """
    chosen = read_machine(machine) if isinstance(machine, str) else machine
    sent = traffic if isinstance(traffic, RankTraffic) else read_traffic(traffic)
    seed = checked_seed(seed)
    allocation = chosen.allocation
    given = np.array(allocation.numbers_of(map_ranks(chosen, sent.ranks, ranks_per_node, start)), dtype=np.int64)
    node_count = chosen.node_count
    if node_count is None or not chosen.topology.has_routers:
        raise InputError("machine", chosen.name, "a machine with a network: here all nodes are equally near")
    if node_count > MOST_NODES:
        raise InputError("machine", f"{chosen.name} with {node_count} nodes", f"at most {MOST_NODES} nodes")
    before = score(chosen, sent, np.array(allocation.of_machine(given.tolist())))
    nodes, after = given, before
    for candidate in _Search(chosen, sent, given, ranks_per_node, random.Random(seed), progress).candidates():  # noqa: S311
        scored = score(chosen, sent, np.array(allocation.of_machine(candidate.tolist())))
        if scored.is_as_good_as(before) and scored.hop_bytes < after.hop_bytes:
            nodes, after = candidate, scored
    return PlacementResult(
        traffic=sent,
        machine=chosen,
        ranks_per_node=ranks_per_node,
        seed=seed,
        start=str(start) if isinstance(start, str | Path) else "given",
        before=before,
        after=after,
        nodes=tuple(int(node) for node in nodes),
    )


class _Search:
    """The candidates for one machine and traffic.

    A place is a node's slot for one rank: place p belongs to node p // ranks_per_node.
    """

    def __init__(
        self,
        machine: Machine,
        traffic: RankTraffic,
        given: Integers,
        ranks_per_node: int,
        draws: random.Random,
        progress: Callable[[str], None],
    ) -> None:
        nodes = machine.allocation.node_count or 0
        self._allocation = machine.allocation
        self._ranks = traffic.ranks
        self._per_node = ranks_per_node
        self._draws = draws
        self._progress = progress
        self._places = nodes * ranks_per_node
        try:
            hops = _core.hop_counts(machine.description().network)
        except ValueError as error:
            raise machine.refused(error) from error
        whole, of_machine = machine.node_count or 0, self._allocation.of_machine(range(nodes))
        self._hops = hops.reshape(whole, whole)[np.ix_(of_machine, of_machine)]
        self._peers: list[list[tuple[int, int]]] = [[] for _ in range(self._ranks)]
        for low, high, weight in zip(*(column.tolist() for column in traffic.between()), strict=True):
            self._peers[low].append((high, weight))
            self._peers[high].append((low, weight))
        self._given = self._placed_as(given)

    def candidates(self) -> list[Integers]:
        """The node of each rank in the best placements grown or bisected, and in the best one with ranks swapped."""
        self._progress("growing placements")
        grown = _GROWTH_WORK // max(1, self._ranks * self._places // 64)
        starts = [self._given, self._bisected()]
        starts += [self._grown() for _ in range(min(_MOST_GROWN, max(_FEWEST_GROWN, grown)))]
        starts.sort(key=self._cost)
        self._progress("swapping ranks")
        return [self._nodes(places) for places in (self._swapped(starts[0]), *starts[:_MOST_SCORED])]

    def _placed_as(self, nodes: Integers) -> list[int]:
        used = [0] * (self._places // self._per_node)
        places = []
        for node in nodes.tolist():
            if used[node] == self._per_node:
                raise InputError("map", f"more ranks on node {node}", f"at most {self._per_node} rank(s) on a node")
            places.append(node * self._per_node + used[node])
            used[node] += 1
        return places

    def _nodes(self, places: Sequence[int]) -> Integers:
        return np.array(places, dtype=np.int64) // self._per_node

    def _cost(self, places: Sequence[int]) -> int:
        nodes = self._nodes(places)
        return sum(
            weight * int(self._hops[nodes[rank], nodes[peer]])
            for rank, peers in enumerate(self._peers)
            for peer, weight in peers
            if peer > rank
        )

    def _grown(self) -> list[int]:
        """Places the rank that communicates most with those already placed where that costs least."""
        places = [_UNUSED] * self._ranks
        is_free = np.ones(self._places, dtype=bool)
        node_of = np.arange(self._places) // self._per_node
        order = list(range(self._ranks))
        self._draws.shuffle(order)
        turn = {rank: number for number, rank in enumerate(order)}
        bound = [0] * self._ranks  # bytes exchanged with placed ranks
        left = set(range(self._ranks))
        while left:
            rank = max(left, key=lambda one: (bound[one], turn[one]))
            left.discard(rank)
            cost = np.zeros(self._hops.shape[0], dtype=np.int64)
            for peer, weight in self._peers[rank]:
                if places[peer] != _UNUSED:
                    cost += weight * self._hops[places[peer] // self._per_node]
                else:
                    bound[peer] += weight
            free = np.flatnonzero(is_free)
            costs = cost[node_of[free]]
            cheapest = free[costs == costs.min()]
            place = int(cheapest[self._draws.randrange(len(cheapest))])
            places[rank] = place
            is_free[place] = False
        return places

    def _bisected(self) -> list[int]:
        """Halves ranks and nodes again and again: ranks by growth along their traffic, nodes by extent or order."""
        places = [_UNUSED] * self._ranks
        used = _block(self._allocation.dims, -(-self._ranks // self._per_node))
        work: list[tuple[list[int], list[int]]] = [(list(range(self._ranks)), used)]
        while work:
            ranks, nodes = work.pop()
            if len(nodes) == 1:
                for number, rank in enumerate(ranks):
                    places[rank] = nodes[0] * self._per_node + number
                continue
            first_nodes, second_nodes = _halves(self._allocation.dims, nodes)
            room = len(first_nodes) * self._per_node
            share = min(
                room, max(len(ranks) - len(second_nodes) * self._per_node, len(ranks) * len(first_nodes) // len(nodes))
            )
            first, second = self._split(ranks, share)
            work += [(first, first_nodes), (second, second_nodes)]
        return places

    def _split(self, ranks: list[int], count: int) -> tuple[list[int], list[int]]:
        """`count` ranks, grown from the one that a walk along the traffic reaches last; and the others."""
        left = set(ranks)
        first: list[int] = []
        bound = dict.fromkeys(ranks, 0)
        reached = self._reached_last(ranks)
        while len(first) < count:
            rank = reached if reached in left else max(left, key=lambda one: (bound[one], -one))
            left.discard(rank)
            first.append(rank)
            for peer, weight in self._peers[rank]:
                if peer in bound:
                    bound[peer] += weight
        return first, [rank for rank in ranks if rank in left]

    def _reached_last(self, ranks: list[int]) -> int:
        if not ranks:
            return _UNUSED
        inside, seen, walk = set(ranks), {ranks[0]}, [ranks[0]]
        for rank in walk:
            for peer, _ in self._peers[rank]:
                if peer in inside and peer not in seen:
                    seen.add(peer)
                    walk.append(peer)
        return walk[-1]

    def _swapped(self, start: Sequence[int]) -> list[int]:
        """Swaps the contents of two places. The first half of the swaps may cost bytes, the second may not."""
        places = list(start)
        rank_at = [_UNUSED] * self._places
        for rank, place in enumerate(places):
            rank_at[place] = rank
        hops = self._hops.tolist()
        node_of = [place // self._per_node for place in range(self._places)]
        swaps = min(_MOST_SWAPS, _SWAPS_PER_RANK * self._ranks) if self._ranks > 1 else 0
        threshold = max((weight for peers in self._peers for _, weight in peers), default=0)
        for number in range(swaps):
            rank = int(self._draws.random() * self._ranks)
            place = int(self._draws.random() * self._places)
            old = places[rank]
            if node_of[place] == node_of[old]:
                continue
            other = rank_at[place]
            old_row, new_row = hops[node_of[old]], hops[node_of[place]]
            change = 0
            for peer, weight in self._peers[rank]:
                if peer != other:
                    node = node_of[places[peer]]
                    change += weight * (new_row[node] - old_row[node])
            if other != _UNUSED:
                for peer, weight in self._peers[other]:
                    if peer != rank:
                        node = node_of[places[peer]]
                        change += weight * (old_row[node] - new_row[node])
            if change * swaps > threshold * (swaps - 2 * number) and change > 0:
                continue
            places[rank], rank_at[place], rank_at[old] = place, rank, other
            if other != _UNUSED:
                places[other] = old
        return places


def _block(dims: Sequence[int], count: int) -> list[int]:
    """The first nodes, or on a torus or mesh the nodes of a small block at the origin with at least so many."""
    if not dims:
        return list(range(count))
    extents = [1] * len(dims)
    while math.prod(extents) < count:
        widest = max(range(len(dims)), key=lambda d: (extents[d] < dims[d], -extents[d], -d))
        extents[widest] += 1
    places = np.arange(math.prod(extents))
    return sorted(number_of(dims, place_of(extents, places)).tolist())


def _halves(dims: Sequence[int], nodes: list[int]) -> tuple[list[int], list[int]]:
    """Cuts across the widest dimension; without dimensions, in the middle of the order."""
    ordered = nodes
    if dims:
        coordinates = place_of(dims, np.array(nodes))
        widest = max(coordinates, key=lambda along: len(np.unique(along)))
        ordered = [node for _, node in sorted(zip(widest.tolist(), nodes, strict=True))]
    middle = len(ordered) // 2
    return ordered[:middle], ordered[middle:]
