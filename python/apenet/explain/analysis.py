"""Everything that the page shows, as one JSON object: docs/reference/explain.md describes its keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from apenet import _core
from apenet.base.errors import ApenetError
from apenet.explain import waiting
from apenet.explain.alternatives import ideal_time_ps, measured
from apenet.explain.call_times import call_times
from apenet.explain.critical_path import Contributor, CriticalPath, Part
from apenet.explain.deadlock import cycle
from apenet.explain.efficiency import efficiencies, explained
from apenet.explain.folder import RunFolder
from apenet.explain.repeat import repeating
from apenet.explain.timed import CALC, SEND, Operations, Timed, operations_of, timed
from apenet.explain.timeline import timeline
from apenet.explain.verdict import percent, verdict
from apenet.machine.picture import placed
from apenet.run.folder import OF_SEVERAL_JOBS, RECORDING

SCHEMA = 1
PS_PER_US = 1e6
_MOST_PATH_PARTS = 2000
_MOST_CONTRIBUTORS = 12
_MOST_PAIRS_OF_LINKS = 512
_HOT = 0.5  # busy share of a link that is worth a sentence
_MOST_PAIRS = 60_000
_MOST_DRAWN_DIMENSIONS = 3  # by torus.js


def analysed(run: RunFolder) -> dict[str, Any]:
    """Measures what the recording of a run allows to know."""
    content = _frame(run)
    operations = None if run.schedule is None else operations_of(run.schedule)
    stopped_early = content["outcome"] != "completed" and operations is not None and not len(operations.rank)
    if run.schedule is None or operations is None or stopped_early:
        content["verdict"] = {"text": _without_recording(run), "advice": None, "limit": None, "gain": None}
        return content
    replay = timed(run.request, run.schedule, operations)
    alternatives = measured(run.request, run.schedule, operations, replay.time_ps)
    ideal_ps = ideal_time_ps(run.request, run.schedule)
    pieces = waiting.caused(replay)
    path = CriticalPath(replay)
    users = _link_users(run, replay)
    hot = _hot_link(replay, users)
    content["replay"] = _deviation(run, replay)
    content["hot_link"] = hot
    content["link_users"] = {name: [list(pair) for pair in pairs] for name, pairs in users.items()}
    content["verdict"] = verdict(
        _waiting_text(replay, pieces),
        alternatives,
        _hot_text(hot),
        is_measured=bool(alternatives) or not replay.time_ps,
    ).to_json()
    if not content["replay"]["is_exact"] and (content["verdict"]["advice"] or content["verdict"]["limit"]):
        content["verdict"]["text"] += " The gain is that of a replay, which is not exactly the run: try it."
    if content["outcome"] != "completed":
        content["verdict"]["text"] = f"{_stop_text(run)} {_stopped_part(run, replay)}: {content['verdict']['text']}"
    if (replay.report.messages, replay.report.bytes) != (content["messages"], content["bytes"]) and not _stopped(run):
        content["warnings"].append(
            f"the recording has {replay.report.messages} messages, the run had {content['messages']}: remote access "
            "is recorded as messages, and what a replay does not model changes protocols; or it is of another run"
        )
    content["efficiencies"] = explained(efficiencies(replay, ideal_ps))
    content["ideal_time_us"] = None if ideal_ps is None else ideal_ps / PS_PER_US
    content["alternatives"] = [one.to_json() for one in sorted(alternatives, key=lambda one: one.time_ps)]
    content["waits"] = _waits(replay, pieces)
    content["path"] = {
        "composition": [{"kind": kind, "us": ps / PS_PER_US} for kind, ps in path.composition().items()],
        "stages": [
            {"stage": stage, "us": ps / PS_PER_US, "meaning": waiting.STAGE_MEANINGS[stage]}
            for stage, ps in path.stages_of_messages().items()
        ],
        "contributors": [_contributor(one, path, run.schedule) for one in path.contributors()[:_MOST_CONTRIBUTORS]],
        "parts": [[part.kind, part.rank, part.source, part.start, part.until] for part in _longest(path)],
        "left_out": max(0, len(path) - _MOST_PATH_PARTS),
    }
    content["timeline"] = timeline(replay, pieces)
    content["pairs"] = _pairs(run, operations)
    content["sizes"] = _sizes(operations)
    content["calls"] = call_times(replay, pieces)
    return content


def _frame(run: RunFolder) -> dict[str, Any]:
    """What the run folder says without a recording."""
    machine, result, command = run.machine, run.result, run.command
    ended_us = result.get("ended_at_us", result.get("virtual_time_us"))
    return {
        "schema": SCHEMA,
        "version": command["version"],
        "command": command.get("command") or ["replay", command.get("replay", "")],
        "repeat": repeating(run),
        "ranks": run.request.ranks,
        "nodes": list(run.request.nodes),
        "mapping": run.request.mapping,
        "engine": command["engine"],
        "seed": command["seed"],
        "compute": command.get("compute"),
        "trace_hash": result["trace_hash"],
        "outcome": result.get("outcome", "completed"),
        "message": result.get("message", ""),
        "cycle": cycle(result.get("outcome", ""), result.get("message", "")),
        "time_us": ended_us,
        "messages": result["messages"],
        "bytes": result["bytes"],
        "warnings": [*_stopped(run), *_uncharged(run), *result.get("warnings", [])],
        "machine": {
            "name": machine.name,
            "title": machine.file.machine.title,
            "shape": machine.shape,
            "dims": list(machine.dims),
            "settings": command.get("settings", []),
            "numbers": _numbers(run),
        },
        "links": [[link["name"], link["utilisation"], link["wire_bytes"], link["packets"]] for link in result["links"]],
        "link_history": _link_history(run),
        "graph": _graph(run),
        "places": _places(run),
        "ports": list(result["ports"]),
        "cpu": _cpu(run),
        "rank_times": [
            {"waiting_us": rank["waiting_us"], "compute_us": rank["compute_us"]} for rank in result["ranks"]
        ],
    }


def _graph(run: RunFolder) -> dict[str, Any] | None:
    """Places of the switches and nodes of a network that is no torus or mesh of up to three dimensions, and its cables.

    A cable is two switches and the links in both directions of all cables between them.
    """
    if not run.machine.topology.has_routers or 0 < len(run.machine.dims) <= _MOST_DRAWN_DIMENSIONS:
        return None
    wiring = _core.wiring(run.request.description().network)
    routers, nodes, _ = placed((), wiring)
    cables: dict[tuple[int, int], list[str]] = {}
    for name, one, other in wiring.links:
        cables.setdefault((min(one, other), max(one, other)), []).append(name)
    return {
        "routers": [[*place, name] for place, name in zip(routers, wiring.routers, strict=True)],
        "nodes": [[*place, router] for place, router in zip(nodes, wiring.routers_of_nodes, strict=True)],
        "cables": [[one, other, names] for (one, other), names in cables.items()],
    }


def _places(run: RunFolder) -> list[str]:
    """The router at which each rank's node is, by its name; empty on a machine without routers."""
    if not run.machine.topology.has_routers:
        return []
    wiring = _core.wiring(run.request.description().network)
    return [wiring.routers[wiring.routers_of_nodes[node]] for node in run.request.nodes]


def _stopped(run: RunFolder) -> list[str]:
    """What the page of a stopped run is about."""
    if run.result.get("outcome", "completed") == "completed" or run.schedule is None:
        return []
    return [
        "the run did not complete: waits, path and alternatives are of the operations that each rank had begun when it "
        "was stopped; a message on its way then counts as received"
    ]


def _uncharged(run: RunFolder) -> list[str]:
    """The warning that the program's computation is in no number of the page."""
    if run.command.get("compute") != "none" or any(rank["compute_us"] > 0 for rank in run.result["ranks"]):
        return []
    return ["the program's own computation cost no virtual time (--compute none): it is in no number of this page"]


def _numbers(run: RunFolder) -> list[list[str]]:
    """The machine's numbers on which its times rest: key, value, class, source."""
    found: list[list[str]] = []

    def collect(node: Any, key: str) -> None:  # noqa: ANN401 (any table of a machine file)
        origin = getattr(node, "origin", None)
        if origin is not None:
            found.append([key, str(node.value), str(origin), str(node.source)])
        elif hasattr(type(node), "model_fields"):
            for name in type(node).model_fields:
                collect(getattr(node, name), f"{key}.{name}")

    for section in ("network", "router", "card", "bus", "host"):
        collect(getattr(run.machine.file, section, None), section)
    collect(run.machine.file.software.mpi, "software.mpi")
    return found


def _cpu(run: RunFolder) -> dict[str, float]:
    """What all ranks do with their time: what is neither computation nor waiting is software of MPI and copies."""
    ranks = run.result["ranks"]
    ended = sum(rank.get("virtual_time_us", rank.get("finish_us", 0.0)) for rank in ranks)
    computing = sum(rank["compute_us"] for rank in ranks)
    waiting_us = sum(rank["waiting_us"] for rank in ranks)
    return {"computation": computing, "software": max(0.0, ended - computing - waiting_us), "waiting": waiting_us}


def _link_history(run: RunFolder) -> dict[str, Any] | None:
    if run.network is None:
        return None
    links = {link["name"]: [round(value, 4) for value in link["utilisation"]] for link in run.network["links"]}
    return {"bin_us": run.network.get("bin_us"), "links": links}


def _stop_text(run: RunFolder) -> str:
    """How a run ended that did not complete."""
    outcome = run.result["outcome"]
    found = cycle(outcome, run.result.get("message", ""))
    if found is None:
        return f"The run did not complete: {_STOPS.get(outcome, outcome)}."
    ranks = " → ".join(str(rank) for rank in [*found["ranks"], found["ranks"][0]])
    return f"Deadlock: ranks {ranks} wait for each other."


def _stopped_part(run: RunFolder, replay: Timed) -> str:
    """What the replay of a stopped run is about: it ends later where messages were on their way."""
    longer = replay.time_ps / PS_PER_US > (1 + _LATER) * run.result.get("ended_at_us", 0)
    return "What had begun, carried to its end" if longer else "Up to there"


_LATER = 0.05
_STOPS = {
    "limit": "it reached its limit of time",
    "interrupted": "it was interrupted",
    "failed": "the program failed",
    "aborted": "the program called MPI_Abort",
    "output_closed": "nobody read its output any more",
}


def _without_recording(run: RunFolder) -> str:
    if run.result.get("outcome", "completed") != "completed":
        return _stop_text(run)
    if run.lacks:
        cpu = _cpu(run)
        share = cpu["waiting"] / (sum(cpu.values()) or 1)
        return (
            f"{percent(share)} of the ranks' time is waiting. What for is not known: only MPI's messages can be "
            f"recorded, and this run has those of {run.lacks}. Links and times of ranks are known."
        )
    if OF_SEVERAL_JOBS in run.result.get("warnings", []):
        return "Jobs beside each other are not recorded: apenet run --report explains this program alone."
    return (
        f"This run has no recording: apenet run --report, or --record {RECORDING} in its folder, makes one. Without it "
        "neither waits nor alternatives are known; links and times of ranks are."
    )


def _deviation(run: RunFolder, replay: Timed) -> dict[str, Any]:
    """How exactly the replay repeats the run."""
    time_us = run.result.get("virtual_time_us")
    replayed_us = replay.time_ps / PS_PER_US
    return {
        "time_us": replayed_us,
        "ranks_us": int(replay.report.finish_ps.sum()) / PS_PER_US,
        "deviation": replayed_us / time_us - 1 if time_us else None,
        "is_exact": f"{replay.report.trace_hash:016x}" == run.result["trace_hash"],
        "operations": int(replay.report.operations),
        "has_calls": replay.operations.has_calls,
    }


def _waiting_text(replay: Timed, pieces: waiting.CausedWaits) -> str:
    total = int(replay.report.finish_ps.sum())
    causes = waiting.by_cause(pieces)
    if not causes or not total:
        operations = replay.operations
        if not len(operations.rank):
            return "No message was sent"
        if (operations.cpu[operations.kind != CALC] > 0).any():
            return (
                "The first processor of no rank waits for the network; other processors move the messages, and what "
                "they wait for is not known"
            )
        return "No rank waits for the network"
    cause, longest = max(causes.items(), key=lambda one: one[1])
    share = sum(causes.values()) / total
    because = f"{percent(share)} of the ranks' time is waiting, {percent(longest / total)} because {_BECAUSE[cause]}"
    stages = [(stage, ps) for of, stage, ps in waiting.by_cause_and_stage(replay) if of == cause]
    held = next((_WHILE[stage] for stage, ps in stages if stage in _WHILE and ps >= _MOST * longest), None)
    if held is not None:
        because = f"{because}, most of that while {held}"
    return because + _place_text(replay, pieces, cause, total)


def _place_text(replay: Timed, pieces: waiting.CausedWaits, cause: str, total_ps: int) -> str:
    """Where in the program the ranks wait longest for this reason, if debug information tells it."""
    rows = [(call, place, ps) for call, place, of, ps in waiting.by_call_and_cause(replay, pieces) if of == cause]
    call, place, longest = rows[0]
    return f"; {percent(longest / total_ps)} in {call} ({place})" if place else ""


_BECAUSE = {
    "late sender": "a sender is late",
    "late receiver": "a receiver is late for a rendezvous",
    "handshake": "of the handshakes of rendezvous",
    "transfer": "a message is on its way",
    "own message": "a message of their own has not left",
    "other": "of other messages",
}
_MOST = 0.5
"""The part of a cause that is most of it."""
_WHILE = {
    "card queue": "a card works on other messages",
    "bus busy": "other transfers have the bus",
    "queue full": "the network takes packets more slowly than the card makes them",
    "link busy": "a link or port carries other packets",
    "credits": "there is no buffer behind a link",
    "retransmission": "packets are sent again",
    "translation": "a card translates addresses",
    "receiver full": "the receiver has no place for a message",
    "interrupt": "the processor has not yet been interrupted for it",
    "memory busy": "other copies have the memory",
}
"""What an awaited message waits for in a stage, where it is not under way itself."""


def _hot_link(replay: Timed, users: dict[str, list[tuple[int, int]]]) -> dict[str, Any] | None:
    """The busiest link and the pairs of ranks that use it; None if it is not busy."""
    links = replay.report.links
    busiest = max(range(len(links)), key=lambda number: links[number].busy_ps, default=None)
    if busiest is None or replay.time_ps == 0 or links[busiest].busy_ps < _HOT * replay.time_ps:
        return None
    share = links[busiest].busy_ps / replay.time_ps
    name = links[busiest].name
    return {"link": name, "busy": share, "pairs": [list(pair) for pair in users.get(name, [])]}


def _hot_text(hot: dict[str, Any] | None) -> str:
    if hot is None:
        return ""
    count = len(hot["pairs"])
    carried = f", and carries messages of {count} pairs of ranks" if count > 1 else ""
    return f"Link {hot['link']} is busy for {percent(hot['busy'])} of the time{carried}"


def _link_users(run: RunFolder, replay: Timed) -> dict[str, list[tuple[int, int]]]:
    """Pairs of ranks whose messages may cross each link, by the machine's routing; empty if that is not known."""
    if run.schedule is None or run.machine.file.rail:
        return {}
    senders, receivers, _, _ = run.schedule.traffic()
    if len(senders) > _MOST_PAIRS_OF_LINKS:
        return {}
    found: dict[str, list[tuple[int, int]]] = {}
    network = run.machine.description().network
    for sender, receiver in zip(senders.tolist(), receivers.tolist(), strict=True):
        nodes = run.request.nodes[sender], run.request.nodes[receiver]
        if nodes[0] == nodes[1]:
            continue
        try:
            loads = _core.link_loads(network, [nodes[0]], [nodes[1]], [1])
        except (ValueError, ApenetError):
            return {}
        for link in np.flatnonzero(loads.bytes):
            found.setdefault(replay.report.links[link].name, []).append((sender, receiver))
    return found


def _waits(replay: Timed, pieces: waiting.CausedWaits) -> dict[str, Any]:
    return {
        "causes": [
            {"cause": cause, "us": ps / PS_PER_US, "meaning": waiting.MEANINGS[cause]}
            for cause, ps in waiting.by_cause(pieces).items()
        ],
        "stages": [
            {"cause": cause, "stage": stage, "us": ps / PS_PER_US, "meaning": waiting.STAGE_MEANINGS[stage]}
            for cause, stage, ps in waiting.by_cause_and_stage(replay)
        ],
        "calls": [
            {"call": call, "place": place, "cause": cause, "us": ps / PS_PER_US}
            for call, place, cause, ps in waiting.by_call_and_cause(replay, pieces)
        ],
        "ranks": (waiting.by_rank(replay, pieces) / PS_PER_US).round(6).tolist(),
        "columns": list(waiting.CAUSES),
    }


def _contributor(one: Contributor, path: CriticalPath, schedule: _core.GoalSchedule) -> dict[str, Any]:
    calls = path.calls_of(one.longest_part, schedule)
    return {
        "what": one.what,
        "count": one.times,
        "us": one.ps / PS_PER_US,
        "longest": {
            "us": one.longest_ps / PS_PER_US,
            "calls": [{"rank": call.rank, "call": call.name, "number": call.number or None} for call in calls],
        },
    }


def _longest(path: CriticalPath) -> Iterator[Part]:
    if len(path) <= _MOST_PATH_PARTS:
        return iter(path)
    lengths = path.length
    least = np.partition(lengths, len(path) - _MOST_PATH_PARTS)[len(path) - _MOST_PATH_PARTS]
    return path.parts(np.flatnonzero(lengths >= least)[:_MOST_PATH_PARTS])


def _pairs(run: RunFolder, operations: Operations) -> list[list[int]]:
    """Sender, receiver, messages, bytes and, where the network is known, links between them."""
    assert run.schedule is not None  # noqa: S101 (the caller has checked)
    senders, receivers, messages, sent = (column.tolist() for column in run.schedule.traffic())
    hops = _hops(run)
    rows = []
    for sender, receiver, count, size in zip(senders, receivers, messages, sent, strict=True):
        row = [sender, receiver, count, size]
        if hops is not None:
            row.append(int(hops[run.request.nodes[sender], run.request.nodes[receiver]]))
        rows.append(row)
    return rows[:_MOST_PAIRS]


def _hops(run: RunFolder) -> np.ndarray | None:
    count = run.machine.node_count
    if count is None or not run.machine.topology.has_routers or count > 4096:  # noqa: PLR2004
        return None
    try:
        return np.asarray(_core.hop_counts(run.machine.description().network)).reshape(count, count)
    except ValueError:
        return None


def _sizes(operations: Operations) -> list[list[int]]:
    """Messages and bytes by size: the least size of a class, a power of two or 0."""
    amounts = operations.amount[operations.kind == SEND]
    classes = np.where(amounts > 0, 2 ** np.floor(np.log2(np.maximum(amounts, 1))).astype(np.int64), 0)
    return [[int(one), int((classes == one).sum()), int(amounts[classes == one].sum())] for one in np.unique(classes)]
