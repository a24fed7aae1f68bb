"""Jobs written down in a TOML file: the machine, and a table for each job."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apenet.base.errors import ABSENT, MachineError
from apenet.base.tomltext import read_toml
from apenet.cluster.jobs import MOST_JOBS, ClusterResult, Job, run
from apenet.machine import machine as read_machine
from apenet.machine.schema import PARTITION_NAME
from apenet.machine.settings import setting_texts

_MOST_BYTES = 2**20
_TEXT, _TEXTS, _NUMBER, _SWITCH = "a text", "a list of texts", "a whole number", "true or false"
_VARIABLES = "a table of texts"
_KEYS = {
    "machine": _TEXT,
    "settings": _TEXTS,
    "faults": _TEXTS,
    "rail": _TEXT,
    "engine": _TEXT,
    "seed": _NUMBER,
    "joins": _SWITCH,
    "job": "a table for each job, [job.NAME]",
}
_JOB_KEYS = {
    "trace": _TEXT,
    "workload": 'a table such as {test = "halo", sizes = "4K"}',
    "partition": _TEXT,
    "start": "a time such as 10us",
    "map": "a text, or a list of nodes",
    "ranks_per_node": _NUMBER,
    "command": _TEXTS,
    "ranks": _NUMBER,
    "mpi": _TEXT,
    "compute": _TEXT,
    "size": _TEXT,
    "environment": _VARIABLES,
    "directory": _TEXT,
    "limit_virtual": "a time such as 10ms",
    "out": _TEXT,
    "output": _TEXT,
}


def too_large(path: Path, jobs: int) -> str:
    """Why `run_file` refuses the file, if it has so many jobs, or too many bytes; empty if it does not."""
    if jobs > MOST_JOBS:
        return f"apenet cluster run takes at most {MOST_JOBS} of {jobs} jobs"
    if path.stat().st_size > _MOST_BYTES:
        return f"apenet cluster run takes a file of at most {_MOST_BYTES} bytes"
    return ""


def run_file(
    path: str | Path,
    *,
    matrix: bool = True,
    allow_long: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> ClusterResult:
    """Runs the jobs of a file as `apenet.cluster.run`. Paths in it are relative to the current folder.

    Raises InputError and MachineError, which name the file and the key.
    """
    file = Path(path)
    table = read_toml(file, "JOBS.toml", "jobs", _MOST_BYTES)
    _check(file, "", table, _KEYS)
    for key in ("machine", "job"):
        if not table.get(key):
            raise MachineError(file, key, table.get(key, ABSENT), _KEYS[key])
    machine = read_machine(
        table["machine"], setting_texts(table.get("settings", ())), table.get("faults", ()), table.get("rail")
    )
    jobs = [_job(file, name, given) for name, given in table["job"].items()]
    options = {key: table[key] for key in ("engine", "seed", "joins") if key in table}
    return run(jobs, machine=machine, matrix=matrix, allow_long=allow_long, progress=progress, **options)


def _job(file: Path, name: str, table: object) -> Job:
    if not isinstance(table, dict) or not re.fullmatch(PARTITION_NAME, name):
        raise MachineError(file, f"job.{name}", table, "a table [job.NAME], NAME of letters, digits, _ and -")
    _check(file, f"job.{name}.", table, _JOB_KEYS)
    kinds = [kind for kind in ("command", "trace", "workload") if kind in table]
    if not kinds:
        raise MachineError(file, f"job.{name}.trace", ABSENT, "a GOAL trace, or a command or a workload")
    if len(kinds) > 1:
        raise MachineError(file, f"job.{name}.{kinds[1]}", table[kinds[1]], f"none beside the {kinds[0]}")
    if "command" in table and "ranks" not in table:
        raise MachineError(file, f"job.{name}.ranks", ABSENT, "the number of the program's ranks")
    return Job(name, **table)


def _check(file: Path, prefix: str, table: dict[str, Any], known: dict[str, str]) -> None:
    for key, value in table.items():
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            expected = f'the known key "{close[0]}"' if close else f"one of {', '.join(known)}"
            raise MachineError(file, f"{prefix}{key}", value, expected)
        if not _is(value, known[key]):
            raise MachineError(file, f"{prefix}{key}", value, known[key])


def _is(value: object, expected: str) -> bool:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    if expected in (_SWITCH, _NUMBER):
        return isinstance(value, bool) if expected == _SWITCH else is_number
    if expected == _TEXTS:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if expected == _VARIABLES:
        return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())
    if expected in (_KEYS["job"], _JOB_KEYS["workload"]):
        return isinstance(value, dict)
    if expected == _JOB_KEYS["map"] and isinstance(value, list):
        return all(isinstance(one, int) and not isinstance(one, bool) for one in value)
    return isinstance(value, str)
