"""Two runs beside each other: whether they are equal, the first event that differs and why, and what has changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apenet.compare.base_file import parameters_of
from apenet.compare.first_event import FirstEvent, first_event
from apenet.explain import waiting
from apenet.explain.folder import RunFolder, read_folder
from apenet.explain.timed import Timed, operations_of, timed
from apenet.run.folder import OF_SEVERAL_JOBS, RECORDING

SCHEMA = 1
_MOST_LINKS = 8
_ASKED = (
    "ranks",
    "ranks_per_node",
    "mapping",
    "nodes",
    "rail",
    "partition",
    "faults",
    "engine",
    "seed",
    "compute",
    "size",
    "mpi",
    "trap_tsc",
    "limit_virtual",
    "limit_wall",
    "replay",
)


@dataclass(frozen=True)
class Cause:
    """Something that was asked for or found differently: its kind (program, request, machine, library), its values."""

    kind: str
    what: str
    values: tuple[Any, Any]

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        return {"kind": self.kind, "what": self.what, "a": self.values[0], "b": self.values[1]}


@dataclass(frozen=True)
class Change:
    """A number of both runs; None where a run does not have it."""

    group: str
    what: str
    unit: str
    values: tuple[float | None, float | None]

    def to_json(self) -> dict[str, Any]:
        """For --json."""
        return {"group": self.group, "what": self.what, "unit": self.unit, "a": self.values[0], "b": self.values[1]}


@dataclass(frozen=True)
class Difference:
    """Two runs compared. `first` is None for equal runs, and where `unknown` says why it could not be found."""

    paths: tuple[str, str]
    equal: bool
    causes: tuple[Cause, ...]
    first: FirstEvent | None
    unknown: str
    changes: tuple[Change, ...]
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The object that --json prints (docs/reference/explain.md)."""
        return {
            "schema": SCHEMA,
            "a": self.paths[0],
            "b": self.paths[1],
            "equal": self.equal,
            "causes": [cause.to_json() for cause in self.causes],
            "first": None if self.first is None else self.first.to_json(),
            "unknown": self.unknown,
            "changes": [change.to_json() for change in self.changes],
            "notes": list(self.notes),
        }


def difference(a: str | Path, b: str | Path) -> Difference:
    """Compares the folders of two runs. Raises InputError for a folder that is no complete run of this version."""
    return compared(read_folder(a), read_folder(b))


def compared(a: RunFolder, b: RunFolder) -> Difference:
    """Compares two runs that have been read."""
    runs = (a, b)
    equal = all(
        a.result.get(key) == b.result.get(key)
        for key in ("trace_hash", "outcome", "exit_status", "virtual_time_us", "ended_at_us", "ranks", "links", "ports")
    )
    causes = tuple(_causes(a, b))
    notes = []
    for run in runs:
        outcome = run.result.get("outcome", "completed")
        if outcome != "completed":
            notes.append(f"{run.path}: the program did not complete ({outcome}): the numbers are of the part that ran")
        warnings = run.result.get("warnings", [])
        notes += [f"{run.path}: {one}" for one in warnings if "repeat" in one or one == OF_SEVERAL_JOBS]
    replays, unknown = _replays(a, b)
    first = None
    if replays is not None and not equal:
        first = first_event(*replays)
        if a.request.ranks != b.request.ranks:
            unknown = "the numbers of ranks differ, so that no event of one is that of the other"
        elif first is None:
            unknown = "the recorded operations run alike in both: what differs is not in the recordings"
    if replays is not None:
        notes += [
            f"{run.path}: its replay is not exactly the run: times of events may be a little off"
            for run, replay in zip(runs, replays, strict=True)
            if f"{replay.report.trace_hash:016x}" != run.result["trace_hash"]
        ]
    changes = tuple(_changes(a, b, replays))
    return Difference((str(a.path), str(b.path)), equal, causes, first, "" if equal else unknown, changes, tuple(notes))


def _causes(a: RunFolder, b: RunFolder) -> Iterator[Cause]:
    commands = [run.command.get("command", []) for run in (a, b)]
    if commands[0] != commands[1]:
        yield Cause("program", "command", (" ".join(commands[0]), " ".join(commands[1])))
    for key in _ASKED:
        values = (a.command.get(key), b.command.get(key))
        if values[0] != values[1] and not (key == "nodes" and a.command.get("mapping") != b.command.get("mapping")):
            yield Cause("request", key, values)
    old, new = parameters_of(a.machine), parameters_of(b.machine)
    for key in (*old, *(key for key in new if key not in old)):
        if old.get(key) != new.get(key):
            yield Cause("machine", key, (old.get(key), new.get(key)))
    libraries = [sorted({" ".join(rank.get("library", "").split()) for rank in run.result["ranks"]}) for run in (a, b)]
    if libraries[0] != libraries[1]:
        yield Cause("library", "MPI library", (", ".join(libraries[0]), ", ".join(libraries[1])))


def _replays(a: RunFolder, b: RunFolder) -> tuple[tuple[Timed, Timed] | None, str]:
    """Both recordings with their times, or why there are none."""
    lacking = next((run for run in (a, b) if run.lacks), None)
    if lacking is not None:
        reason = f"messages of {lacking.lacks} are not recorded"
        return None, f"{lacking.path}: {reason}, so that the first event is not known"
    missing = [str(run.path) for run in (a, b) if run.schedule is None]
    if missing:
        hint = f"apenet run --out DIR --record DIR/{RECORDING} makes one"
        return None, f"no recording in {' and '.join(missing)}, so that the first event is not known; {hint}"
    found = []
    for run in (a, b):
        assert run.schedule is not None  # noqa: S101 (checked above)
        found.append(timed(run.request, run.schedule, operations_of(run.schedule)))
    return (found[0], found[1]), ""


def _changes(a: RunFolder, b: RunFolder, replays: tuple[Timed, Timed] | None) -> Iterator[Change]:
    results = (a.result, b.result)

    def both(group: str, what: str, unit: str, values: list[float | None]) -> Change:
        return Change(group, what, unit, (values[0], values[1]))

    yield both("run", "virtual time", "us", [one.get("virtual_time_us") for one in results])
    yield both("run", "messages", "", [one["messages"] for one in results])
    yield both("run", "bytes", "B", [one["bytes"] for one in results])
    for key in ("waiting_us", "compute_us"):
        sums: list[float | None] = [sum(rank[key] for rank in one["ranks"]) for one in results]
        yield both("all ranks", key.removesuffix("_us"), "us", sums)
    if replays is not None:
        pieces = [waiting.caused(replay) for replay in replays]
        by_cause = [waiting.by_cause(piece) for piece in pieces]
        for cause in waiting.CAUSES:
            if any(cause in one for one in by_cause):
                yield both("waiting for", cause, "us", [one.get(cause, 0) / 1e6 for one in by_cause])
        by_call = [_by_call(replay, piece) for replay, piece in zip(replays, pieces, strict=True)]
        for call in dict.fromkeys(name for one in by_call for name in one):
            counts: list[float | None] = [one.get(call, (0, 0.0))[0] for one in by_call]
            times: list[float | None] = [one.get(call, (0, 0.0))[1] for one in by_call]
            yield both("operations in", call, "", counts)
            yield both("waiting in", call, "us", times)
    ports = [{port["name"]: port for port in one["ports"]} for one in results]
    for name in dict.fromkeys(name for one in ports for name in one):
        for key, group in (("busiest_us", "busiest of"), ("waited_us", "queueing for")):
            found: list[float | None] = [one.get(name, {}).get(key, 0.0) for one in ports]
            if None not in found:
                yield both(group, name, "us", found)
    links = [{link["name"]: link["busy_us"] for link in one["links"]} for one in results]
    names = sorted({*links[0], *links[1]}, key=lambda name: (-abs(links[0].get(name, 0) - links[1].get(name, 0)), name))
    for name in names[:_MOST_LINKS]:
        yield both("link busy", name, "us", [one.get(name, 0.0) for one in links])


def _by_call(replay: Timed, pieces: waiting.CausedWaits) -> dict[str, tuple[int, float]]:
    """Operations and waiting time by MPI function; those of no known call are left out."""
    names = replay.operations.calls
    counts = np.bincount(replay.operations.begun_in, minlength=len(names))
    lengths = np.bincount(replay.waiting_call[pieces.wait], weights=pieces.length, minlength=len(names))
    sums: dict[str, tuple[int, float]] = {}
    for number, name in enumerate(names):  # a function has an element for each of its places
        if name and (counts[number] or lengths[number]):
            before = sums.get(name, (0, 0.0))
            sums[name] = before[0] + int(counts[number]), before[1] + float(lengths[number]) / 1e6
    return sums


def shown_value(value: object) -> str:
    """A value of a cause, for people."""
    if value is None:
        return "nothing"
    return value if isinstance(value, str) else json.dumps(value)
