"""The file of accepted values: for each run of a gate what was asked for, on which machine, and what came out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apenet._core import version as __version__
from apenet.base.errors import ABSENT, InputError, shown
from apenet.base.infiles import UnreadableError, read_json
from apenet.base.outfiles import OutFile, holds_json
from apenet.base.tomltext import parse_toml
from apenet.compare.metrics import METRICS
from apenet.machine import Machine
from apenet.machine.schema import FILE_KEYS

FORM = "apenet gate 1"
"""The form of the file, in its first key."""
MOST_BYTES = 2**26
IS_OURS = holds_json({"form", "version", "machines", "runs"}.issubset)
_ACCEPT = "--update accepts the values of now"
_MOST_NAMED = 4

Values = dict[str, Any]


@dataclass(frozen=True)
class Accepted:
    """A run as it was accepted: what was asked for, the machine's parameters, what served it, and its values."""

    request: Values
    machine: str
    parameters: Values
    served: Values
    values: dict[str, int]
    trace_hash: str


@dataclass(frozen=True)
class Base:
    """A file of accepted runs by their names."""

    path: Path
    runs: Mapping[str, Accepted] = field(default_factory=dict)

    def run(self, name: str) -> Accepted:
        """An accepted run. Raises InputError for a name that the file has not."""
        if name not in self.runs:
            known = ", ".join(self.runs) or "none"
            raise InputError(str(self.path), name, f"a run with accepted values ({known}); {_ACCEPT}")
        return self.runs[name]

    def require(self, name: str, metrics: tuple[str, ...]) -> None:
        """Raises InputError for a metric of which it has no value."""
        accepted = self.run(name)
        for metric in metrics:
            if metric not in accepted.values:
                known = f"one of {', '.join(accepted.values)}"
                raise InputError("metric", metric, f"{known}, of which {self.path} has values of {name}; {_ACCEPT}")

    def require_equal(self, name: str, part: str, now: Values) -> None:
        """Raises InputError if a part of the request, machine or library is another one than that of the base."""
        old = getattr(self.run(name), part)
        changed = [key for key in (*old, *(key for key in now if key not in old)) if old.get(key) != now.get(key)]
        if not changed:
            return
        key = changed[0]
        more = f" ({len(changed) - 1} more: {_named(changed[1:])})" if len(changed) > 1 else ""
        of_machine = f"{self.run(name).machine}: " if part == "parameters" else ""
        raise InputError(
            f"{name}: {of_machine}{key}",
            _given(now.get(key)),
            f"{shown(_given(old.get(key)))} as in {self.path}{more}: what differs cannot be compared; {_ACCEPT}",
        )


def _given(value: object) -> object:
    return ABSENT if value is None else value


def _named(keys: list[str]) -> str:
    return ", ".join(keys[:_MOST_NAMED]) + (" ..." if len(keys) > _MOST_NAMED else "")


def parameters_of(machine: Machine) -> Values:
    """The parameters of a machine without their sources, by `section.key`; of files that it names, a checksum."""
    files = machine.saved()
    table = parse_toml(files.pop("machine.toml").decode())
    values: Values = {}
    _collect(table, (), values)
    for key in list(values):
        if key.endswith(FILE_KEYS):
            values[key] = f"sha256 {hashlib.sha256(files[values[key]]).hexdigest()[:16]}"
    return values


def _collect(table: Values, path: tuple[str, ...], values: Values) -> None:
    for name, entry in table.items():
        step = (*path, name)
        if not isinstance(entry, dict):
            if step[-2:] not in (("machine", "title"), ("machine", "summary")):
                values[".".join(step)] = entry
        elif "value" in entry:
            values[".".join(step)] = entry["value"]
        elif step != ("results",):
            _collect(entry, step, values)


def read_base(path: Path) -> Base:
    """Reads a file of accepted values. Raises InputError for a file that is none, or of another version."""
    expected = "a file of accepted values, as apenet gate --update writes it"
    try:
        content = read_json(path, MOST_BYTES)
    except UnreadableError as error:
        raise InputError("against", path, f"{expected} ({error})") from error
    if not isinstance(content, dict) or content.get("form") != FORM:
        hint = "; this is a run: its folder is for apenet explain" if _is_run(content) else ""
        raise InputError("against", path, f'{expected}, with form = "{FORM}"{hint}')
    if content.get("version") != __version__:
        raise InputError(
            f"{path}: version",
            content.get("version"),
            f'"{__version__}" as of this apenet, because times may change between versions; {_ACCEPT}, '
            "on the commit that they belong to",
        )
    try:
        runs = {name: _accepted(entry, content["machines"]) for name, entry in content["runs"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError("against", path, f"{expected}: a part of it is missing ({error})") from error
    return Base(path, runs)


def _is_run(content: object) -> bool:
    return isinstance(content, dict) and {"trace_hash", "virtual_time_us"} <= content.keys()


def _accepted(entry: Values, machines: Values) -> Accepted:
    values = entry["values"]
    if not all(type(value) is int and value >= 0 for value in values.values()) or not values.keys() <= METRICS.keys():
        raise TypeError("values are whole numbers of metrics")
    machine = machines[entry["machine"]]
    parts = (entry["request"], machine["parameters"], entry["served"])
    if not all(isinstance(part, dict) for part in parts):
        raise TypeError("request, parameters and served are objects")
    request, parameters, served = parts
    return Accepted(request, str(machine["name"]), parameters, served, values, str(entry["trace_hash"]))


def write_base(file: OutFile, runs: Mapping[str, Accepted]) -> None:
    """Writes accepted values. Raises NotWrittenError."""
    machines: Values = {}
    entries = {}
    for name, run in runs.items():
        digest = hashlib.sha256(json.dumps(run.parameters, sort_keys=True).encode()).hexdigest()[:16]
        key = f"{run.machine} {digest}"
        machines[key] = {"name": run.machine, "parameters": run.parameters}
        entries[name] = {
            "request": run.request,
            "machine": key,
            "served": run.served,
            "values": run.values,
            "trace_hash": run.trace_hash,
        }
    content = {"form": FORM, "version": __version__, "runs": entries, "machines": machines}
    file.write((json.dumps(content, indent=1) + "\n").encode())
    file.keep()
