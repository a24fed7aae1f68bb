"""What if: the same operations on another machine, placed otherwise, or in another order, each measured by a replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from apenet import _core
from apenet.base.errors import ApenetError
from apenet.explain.rewrite import balanced, early_sends, overlapped_sends
from apenet.explain.timed import Operations
from apenet.machine import Machine
from apenet.machine import machine as read_machine
from apenet.machine.mapping import map_ranks
from apenet.placing import named_placements, optimise_placement
from apenet.placing.traffic import RankTraffic
from apenet.run.results import Request

MOST_OPERATIONS = 2_000_000
"""A recording of more operations is not replayed with alternatives."""
_WORKERS = 2
_GREATER = ("_mhz", "_mib_s", "_mb_s", "_gb_s", "_per_second", "_gbit_s")
_SMALLER = ("_ns", "_us")
_LINK, _ROUTER = "network.link", "router"
_EAGER_LIMIT = "software.mpi.eager_limit_bytes"
_EAGER_FACTORS = (0.25, 0.5, 2.0, 4.0)

LINKS, ROUTERS, LINKS_AND_ROUTERS = (f"{what} twice as fast" for what in ("links", "routers", "links and routers"))
HARDWARE, PLACEMENT, LIBRARY, PROGRAM = "hardware", "placement", "library", "program"
FOUND = "found"
_RANDOM = "random:1"


@dataclass(frozen=True)
class Alternative:
    """A change, and the run's time with it. `advice` says what a user does to have it; empty for other hardware."""

    kind: str
    name: str
    time_ps: int
    gain: float
    advice: str = ""
    condition: str = ""
    settings: tuple[str, ...] = ()
    nodes: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As in explain.json."""
        return {
            "kind": self.kind,
            "name": self.name,
            "time_us": self.time_ps / 1e6,
            "gain": self.gain,
            "advice": self.advice,
            "condition": self.condition,
            "settings": list(self.settings),
            "nodes": list(self.nodes),
        }


@dataclass(frozen=True)
class _Candidate:
    kind: str
    name: str
    request: Request
    schedule: Callable[[], _core.GoalSchedule | None]
    """Made when it is replayed, so that few are in memory; None: the recording has nothing to change."""
    advice: str = ""
    condition: str = ""


def measured(request: Request, schedule: _core.GoalSchedule, operations: Operations, time_ps: int) -> list[Alternative]:
    """Replays every alternative; those that this machine cannot have, or that come to no end, are left out."""
    if len(operations.rank) > MOST_OPERATIONS or time_ps == 0:
        return []
    candidates = list(_candidates(request, schedule, operations))
    with ThreadPoolExecutor(_WORKERS) as pool:
        times = list(pool.map(_time_ps, candidates))
    found = []
    for candidate, other_ps in zip(candidates, times, strict=True):
        if other_ps is None:
            continue
        own = set(request.machine.settings)
        found.append(
            Alternative(
                kind=candidate.kind,
                name=candidate.name,
                time_ps=other_ps,
                gain=round(1 - other_ps / time_ps, 9),
                advice=candidate.advice,
                condition=candidate.condition,
                settings=tuple(one for one in candidate.request.machine.settings if one not in own),
                nodes=candidate.request.nodes if candidate.kind == PLACEMENT else (),
            )
        )
    return found


def ideal_time_ps(request: Request, schedule: _core.GoalSchedule) -> int | None:
    """The time on a network without latency, with infinite bandwidth and without software costs."""
    machine = _ideal(request.machine)
    if machine is None:
        return None
    nodes = tuple(range(request.ranks))
    return _time_ps(
        _Candidate(HARDWARE, "", replace(request, machine=machine, nodes=nodes, ranks_per_node=1), lambda: schedule)
    )


def _ideal(machine: Machine) -> Machine | None:
    """A message takes a picosecond, whatever its size; a rendezvous still waits for its receiver."""
    limit = machine.file.software.mpi.eager_limit_bytes.value
    rate, latency = "1e12", "0.001"
    settings = [f"card.latency_ns={latency}", f"host.local_latency_ns={latency}"]
    settings += [f"card.bandwidth_mib_s={rate}", f"host.copy_bandwidth_mib_s={rate}", f"{_EAGER_LIMIT}={limit}"]
    try:
        return read_machine("ideal", settings)
    except ApenetError:  # an eager limit that it cannot have
        return None


def _time_ps(candidate: _Candidate) -> int | None:
    request = candidate.request
    schedule = candidate.schedule()
    if schedule is None:
        return None
    try:
        report = _core.replay_goal(request.description(), list(request.nodes), schedule, _core.ObservationOptions())
    except (ApenetError, ValueError, RuntimeError, _core.ReplayDeadlock):
        return None
    return int(report.finish_ps.max())


def _candidates(request: Request, schedule: _core.GoalSchedule, operations: Operations) -> Iterator[_Candidate]:
    for kind, name, settings, advice in _machines(request.machine):
        try:
            machine = request.machine.with_settings(*settings)
        except ApenetError:  # a value that this machine cannot have
            continue
        yield _Candidate(kind, name, replace(request, machine=machine), lambda: schedule, advice)
    seen = {request.nodes}
    for name, nodes in _placements(request, schedule):
        if nodes not in seen:
            seen.add(nodes)
            advice = "the placement that apenet map finds, --map FILE," if name == FOUND else f"--map {name}"
            yield _Candidate(PLACEMENT, name, replace(request, nodes=nodes), lambda: schedule, advice)
    for name, rewritten, advice, condition in (
        ("equal computation", balanced, "dividing the computation equally", ""),
        ("sends before computation", early_sends, "sending before the computation", "if the data is ready before it"),
        ("sends at once", overlapped_sends, "sending with MPI_Isend, then one MPI_Waitall", ""),
    ):
        yield _Candidate(PROGRAM, name, request, partial(rewritten, schedule, operations), advice, condition)


def _machines(machine: Machine) -> Iterator[tuple[str, str, list[str], str]]:
    """Kind, name, settings and advice."""
    has_routers = machine.topology.has_routers
    for name, sections, is_chosen in (
        (LINKS, (_LINK,), lambda key: not key.startswith("latency")),
        ("half the latency of the links", (_LINK,), lambda key: key.startswith("latency")),
        (ROUTERS, (_ROUTER,), lambda _: True),
        (LINKS_AND_ROUTERS, (_LINK, _ROUTER), lambda key: not key.startswith("latency")),
        ("card twice as fast", ("card",), lambda _: True),
        ("bus twice as fast", ("bus",), lambda _: True),
        ("memory copies twice as fast", ("host",), lambda key: key.startswith("copy")),
        ("MPI software twice as fast", ("software.mpi",), lambda _: True),
    ):
        if not has_routers and {_LINK, _ROUTER} & set(sections):
            continue
        settings = [
            f"{section}.{key}={value}"
            for section in sections
            for key, value in _doubled(machine, section)
            if is_chosen(key)
        ]
        if settings:
            yield HARDWARE, name, settings, ""
    limit = machine.file.software.mpi.eager_limit_bytes.value
    for factor in _EAGER_FACTORS:
        other = int(limit * factor)
        setting = f"{_EAGER_LIMIT}={other}"
        yield LIBRARY, f"eager limit of {other} B", [setting], f"an eager limit of {other} B (--set {setting})"


def _doubled(machine: Machine, section: str) -> Iterable[tuple[str, str]]:
    """The rates of a section doubled, and its times halved."""
    table: Any = machine.file
    for step in section.split("."):
        table = getattr(table, step, None)
        if table is None:
            return
    for key in sorted(type(table).model_fields):
        value = getattr(getattr(table, key, None), "value", None)
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            continue
        if key.endswith(_GREATER):
            yield key, f"{value * 2:.12g}"
        elif key.endswith(_SMALLER):
            yield key, f"{value / 2:.12g}"


def _placements(request: Request, schedule: _core.GoalSchedule) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Values of --map that fit the run, with the node of each rank, and the placement found for its messages."""
    machine = request.machine
    yield from named_placements(machine, request.ranks, request.ranks_per_node)
    yield _RANDOM, tuple(map_ranks(machine, request.ranks, request.ranks_per_node, _RANDOM))
    senders, receivers, _, sent = schedule.traffic()
    counts = (senders != receivers) & (sent > 0)
    traffic = RankTraffic("recording", request.ranks, senders[counts], receivers[counts], np.asarray(sent)[counts])
    try:
        found = optimise_placement(
            traffic,
            machine=machine,
            ranks_per_node=request.ranks_per_node,
            start=machine.allocation.numbers_of(request.nodes),
            seed=request.seed,
        )
    except ApenetError:  # no network, or one whose routing has detours
        return
    yield FOUND, tuple(machine.allocation.of_machine(found.nodes))
