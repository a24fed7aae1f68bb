"""Reads a run folder, and the recording in it, back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apenet import _core
from apenet._core import version as __version__
from apenet.base.errors import InputError, shown
from apenet.base.infiles import UnreadableError, read_json
from apenet.machine import BOTH, ENGINES, Machine
from apenet.machine import machine as read_machine
from apenet.run.folder import RECORDING, REQUEST
from apenet.run.recording import LACKS
from apenet.run.replay import read_trace
from apenet.run.results import Request

MOST_JSON_BYTES = 2**28
_EXPECTED = "a run folder, as apenet run --out writes it"
_REQUEST_KEYS = {"machine", "ranks", "ranks_per_node", "mapping", "nodes", "engine", "seed", "version"}


@dataclass(frozen=True)
class RunFolder:
    """A complete run: what was asked for, what came out, and the recording.

    The recording is None if there is none, or if it `lacks` messages: those of libraries other than MPI.
    """

    path: Path
    command: dict[str, Any]
    result: dict[str, Any]
    network: dict[str, Any] | None
    request: Request
    schedule: _core.GoalSchedule | None
    lacks: str = ""
    """The libraries whose messages no recording has."""

    @property
    def machine(self) -> Machine:
        """The machine as it was simulated."""
        return self.request.machine


def read_folder(path: str | Path, recording: str | Path | None = None) -> RunFolder:
    """Reads a run folder. `recording` names a GOAL trace of the run that lies elsewhere.

    Raises InputError for a folder that is no run, is half written or was written by another version.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise InputError("RUN", folder, f"{_EXPECTED}; {'it is a file' if folder.exists() else 'it does not exist'}")
    command = _json(folder, REQUEST, _REQUEST_KEYS)
    if command["version"] != __version__:
        raise InputError(
            str(folder / REQUEST), command["version"], f"a run of this version, {__version__}: run it again"
        )
    if not (folder / "run.json").exists():
        raise InputError("RUN", folder, "a run that has ended: it has no run.json. Repeat the run")
    result = _json(folder, "run.json", {"version", "trace_hash", "messages", "links", "ports", "ranks"})
    if len(result["ranks"]) != len(command["nodes"]):
        raise InputError("RUN", folder, f"{_EXPECTED}: run.json in it has {len(result['ranks'])} ranks")
    network = _json(folder, "network.json", {"links"}) if (folder / "network.json").exists() else None
    partition = command.get("partition")
    request = Request(
        # The file has the chosen rail alone.
        machine=read_machine(folder / "machine.toml", (), command.get("faults") or (), None, partition),
        ranks=len(command["nodes"]),
        ranks_per_node=command["ranks_per_node"],
        mapping=command["mapping"],
        nodes=tuple(command["nodes"]),
        engine=ENGINES[0] if command["engine"] == BOTH else command["engine"],
        seed=command["seed"],
    )
    warnings = [str(one) for one in result.get("warnings", [])]
    lacks = next((one.removeprefix(LACKS) for one in warnings if one.startswith(LACKS)), "")
    schedule = None if lacks else _recording(folder, command, recording, request.ranks)
    return RunFolder(folder, command, result, network, request, schedule, lacks)


def _recording(
    folder: Path, command: dict[str, Any], given: str | Path | None, ranks: int
) -> _core.GoalSchedule | None:
    """The operations of the run: those given, in the folder, or replayed."""
    inside = folder / RECORDING
    places = [Path(given)] if given is not None else [inside] if inside.exists() else []
    if not places and "replay" in command:
        trace = Path(command["replay"])
        if not trace.exists():
            expected = f"--recording FILE, because its trace, {shown(trace)}, is not found from here"
            raise InputError("RUN", folder, expected)
        places = [trace]
    if not places:
        return None
    schedule = read_trace(places[0])
    if schedule.rank_count != ranks:
        raise InputError("recording", places[0], f"the {ranks} ranks of the run; it has {schedule.rank_count}")
    return schedule


def _json(folder: Path, name: str, keys: set[str]) -> dict[str, Any]:
    file = folder / name
    try:
        content = read_json(file, MOST_JSON_BYTES)
    except UnreadableError as error:
        raise InputError("RUN", folder, f"{_EXPECTED}: {name} in it cannot be read ({error})") from error
    if not isinstance(content, dict) or not keys <= content.keys():
        raise InputError("RUN", folder, f"{_EXPECTED}: {name} in it is of something else")
    if (name == "run.json" and not _is_result(content)) or (name == "network.json" and not _is_history(content)):
        raise InputError("RUN", folder, f"{_EXPECTED}: {name} in it is damaged")
    if name == REQUEST and not _is_placement(content):
        raise InputError("RUN", folder, f"{_EXPECTED}: {name} in it does not place its ranks on nodes")
    return content


_ROWS = {
    "ranks": {"waiting_us", "compute_us"},
    "links": {"name", "utilisation", "wire_bytes", "packets"},
    "ports": {"name", "used", "count", "busiest_us", "busy_us", "waited_us"},
}


def _has_rows(content: dict[str, Any], rows: dict[str, set[str]]) -> bool:
    """Whether it has the rows that are read of it."""
    return all(isinstance(content[key], list) for key in rows) and all(
        isinstance(row, dict) and keys <= row.keys() for key, keys in rows.items() for row in content[key]
    )


def _is_history(content: dict[str, Any]) -> bool:
    return _has_rows(content, {"links": {"name", "utilisation"}}) and all(
        isinstance(link["utilisation"], list) and all(isinstance(value, int | float) for value in link["utilisation"])
        for link in content["links"]
    )


def _is_result(content: dict[str, Any]) -> bool:
    warnings = content.get("warnings", [])
    return _has_rows(content, _ROWS) and isinstance(warnings, list) and all(isinstance(one, str) for one in warnings)


def _is_placement(command: dict[str, Any]) -> bool:
    nodes = command["nodes"]
    return isinstance(nodes, list) and len(nodes) == command["ranks"] and all(type(node) is int for node in nodes)
