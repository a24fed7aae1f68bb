"""The folder of a run: what was run, on which machine, and what came out.

`machine.toml`, `command.json`, `run.json` and `network.json` hold nothing of the host: two runs compare equal.
`host.json` holds the rest.
"""

from __future__ import annotations

import json
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apenet.errors import InputError

if TYPE_CHECKING:
    from apenet.machine import Machine
    from apenet.replay import ReplayRequest, ReplayResult
    from apenet.running import RunRequest, RunResult


RESULTS = ("run.json", "network.json", "host.json")
REQUEST = "command.json"


def keep_apart(outputs: dict[str, Path | None], inputs: dict[str, Path | None]) -> None:
    """Nothing is written over what is read, nor twice to one file. Raises InputError."""
    seen: dict[Path, str] = {path.resolve(): name for name, path in inputs.items() if path is not None}
    for name, path in outputs.items():
        if path is None or not (path.is_file() or not path.exists()):
            continue  # a device is written by many
        other = seen.setdefault(path.resolve(), name)
        if other != name:
            raise InputError(name, str(path), f"another file than that of {other}")


def make(folder: Path) -> None:
    """Makes a folder before anything runs, so that a run is not lost for want of a place. Raises InputError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("out", str(folder), f"a folder that can be written ({error.strerror})") from error
    if not os.access(folder, os.W_OK):
        raise InputError("out", str(folder), "a folder that can be written")


def prepare(folder: Path, machine: Machine) -> None:
    """Makes the folder of a run. That of an earlier run is that of this one from now on: its results go.

    Files of somebody else are not overwritten: raises InputError.
    """
    make(folder)
    if not _is_of_a_run(folder):
        for name in (*machine.saved_files, REQUEST, *RESULTS):
            if (folder / name).exists():
                raise InputError("out", str(folder), f"a folder of runs: {name} is there, and of no run")
    for name in RESULTS:
        (folder / name).unlink(missing_ok=True)


def _is_of_a_run(folder: Path) -> bool:
    try:
        request = json.loads((folder / REQUEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(request, dict) and {"machine", "ranks", "engine", "version"} <= request.keys()


def write(folder: Path, request: RunRequest | ReplayRequest, result: RunResult | ReplayResult) -> None:
    """Writes the four files."""
    request.machine.save(folder)
    _write_json(folder / REQUEST, request.to_json())
    _write_json(folder / "run.json", result.to_json())
    if result.network is not None:
        _write_json(folder / "network.json", result.network.to_json())
    _write_json(folder / "host.json", host_facts(result))


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def host_facts(result: RunResult | ReplayResult) -> dict[str, Any]:
    """Wall time, host and library versions: what differs from run to run."""
    packages: dict[str, str | None] = {}
    for package in ("mpich", "mpi4py", "numpy"):
        try:
            packages[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            packages[package] = None
    return {
        "wall_time_s": round(result.wall_time_s, 3),
        "messages_per_wall_second": round(result.messages / result.wall_time_s) if result.wall_time_s else None,
        "host": platform.node(),
        "system": platform.platform(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "packages": packages,
    }
