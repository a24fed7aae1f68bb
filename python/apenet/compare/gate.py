"""Judges runs by accepted values. A run that failed, or that is another one than the accepted one, is never good."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apenet.base.errors import InputError, Interrupted
from apenet.compare.base_file import Accepted, Base
from apenet.compare.gate_file import GateRun
from apenet.compare.metrics import METRICS, TIMES, Change, values_of

WORSE, NOT_COMPARED = 1, 2
"""Exit statuses."""
_ASKED = (
    "n",
    "rail",
    "faults",
    "ranks_per_node",
    "mapping",
    "compute",
    "size",
    "engine",
    "mpi",
    "seed",
    "trap_tsc",
)
"""The options that decide what a run is; the machine with its settings is compared by its parameters."""
_MAY_NOT_REPEAT = ("may not repeat", "times are not exact", "clocks of the host", "slept in real time")
"""Parts of the core's warnings that the times of a run depend on the host."""


@dataclass(frozen=True)
class Judgement:
    """One run beside its accepted values: the changes, or the `problem` for which it was not compared."""

    name: str
    changes: tuple[Change, ...] = ()
    same_events: bool = False
    notes: tuple[str, ...] = ()
    problem: str = ""
    accepted: Accepted | None = None
    """What `--update` writes; None for a run that did not complete."""

    @property
    def is_worse(self) -> bool:
        """Whether one of its values has grown beyond its limit."""
        return any(change.is_worse for change in self.changes)


def exit_status(judgements: Sequence[Judgement]) -> int:
    """0, or the worst of the statuses above."""
    if any(judgement.problem for judgement in judgements):
        return NOT_COMPARED
    return WORSE if any(judgement.is_worse for judgement in judgements) else 0


def request_of(run: GateRun, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What the parameters of a command ask for. Raises InputError for computation that is measured anew each time."""
    compute = str(parameters.get("compute", "none"))
    is_measured = compute.startswith(("measured", "record:"))
    if is_measured and not run.allow_noise and TIMES & set(run.metrics):
        raise InputError(
            f"{run.name}: --compute",
            compute,
            "none or a profile: measured times differ from run to run; --allow-noise compares them nevertheless",
        )
    program, *arguments = [str(word) for word in parameters.get("command") or [parameters["trace"]]]
    asked = {key: parameters[key] for key in _ASKED if key in parameters}
    request = {
        "command": run.words[0],
        "program": Path(program).name,
        "arguments": arguments,
        **{key: list(value) if isinstance(value, list | tuple) else value for key, value in asked.items()},
        "faults": list(parameters.get("faults") or ()),
    }
    profile = _profile(compute)
    return request if profile is None else {**request, "profile": profile}


def _profile(compute: str) -> str | None:
    """The checksum of the profile that `--compute` names."""
    for path in (Path(compute), Path(compute.rpartition(":")[0] or "/")):
        if path.is_file():
            return f"sha256 {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"
    return None


def served_by(command: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """What a run found: its nodes and the MPI library, both of which decide its times."""
    libraries = {" ".join(str(rank.get("library", "")).split()) for rank in result["ranks"]}
    return {
        "ranks": command["ranks"],
        "nodes": " ".join(map(str, command["nodes"])),
        "mpi": command.get("mpi"),
        "libraries": sorted(libraries - {""}),
    }


def judge(
    run: GateRun, base: Base | None, request: dict[str, Any], machine: tuple[str, dict[str, Any]], folder: Path
) -> Judgement:
    """Judges a run by the folder that it left. Without a base, it only checks whether its values can be accepted.

    Raises Interrupted if a signal has ended the run.
    """
    command, result = (_read(folder / name) for name in ("command.json", "run.json"))
    if result is None or command is None:
        return Judgement(run.name, problem="the run left no result")
    warnings = tuple(map(str, result["warnings"]))
    outcome = str(result.get("outcome", "completed"))
    if outcome == "interrupted":
        raise Interrupted
    if outcome != "completed" or result.get("exit_status", 0) != 0:
        first = (str(result.get("message", "")).splitlines() or [""])[0]
        reason = f"the run failed: {outcome}, exit status {result.get('exit_status')}"
        return Judgement(run.name, problem=f"{reason}: {first}" if first else reason, notes=warnings)
    values = values_of(result)
    noise = [warning for warning in warnings if any(part in warning for part in _MAY_NOT_REPEAT)]
    accepted = Accepted(request, *machine, served_by(command, result), values, result["trace_hash"])
    problem = ""
    if TIMES & set(run.metrics) and values["time"] == 0:
        problem = "the run has no virtual time: its program makes no MPI call"
    elif TIMES & set(run.metrics) and noise and not run.allow_noise:
        problem = f"its times may differ from run to run ({noise[0]}); --allow-noise compares them nevertheless"
    for metric in run.metrics:
        if metric not in values:
            problem = f'metric = "{metric}": the run has no such value; {METRICS[metric].meaning}'
    if problem:
        return Judgement(run.name, problem=problem, notes=warnings)
    notes = (*warnings, *_notes(request, values))
    if base is None:
        return Judgement(run.name, notes=notes, accepted=accepted)
    try:
        base.require_equal(run.name, "served", accepted.served)
    except InputError as error:
        return Judgement(run.name, problem=str(error), notes=notes, accepted=accepted)
    old = base.run(run.name)
    changes = tuple(
        Change(metric, old.values[name], values[name], run.limit if name in run.metrics else None)
        for name, metric in METRICS.items()
        if name in values and name in old.values
    )
    same = old.trace_hash == accepted.trace_hash
    return Judgement(run.name, changes=changes, same_events=same, notes=notes, accepted=accepted)


def _notes(request: Mapping[str, Any], values: Mapping[str, int]) -> list[str]:
    """What a reader of a good verdict must know."""
    notes = []
    if request.get("compute") == "none":
        notes.append("computation between MPI calls takes no time (--compute none): a change of it is not seen")
    if values["max_link"] == 0:
        notes.append("no link between switches was used: max_link is 0")
    return notes


def _read(path: Path) -> dict[str, Any] | None:
    """An object that this process has written just now; None if it has not."""
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    return content
