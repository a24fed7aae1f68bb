"""`apenet.toml`: the runs of a repository that its gate compares."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from apenet.base.errors import ABSENT, InputError, MachineError
from apenet.base.infiles import UnreadableError, read_text
from apenet.base.tomltext import TomlError, parse_toml
from apenet.compare.metrics import DEFAULT_METRICS, parse_limit, parse_metrics

NAME = "apenet.toml"
DEFAULT_BASE = "apenet-gate.json"
MOST_BYTES = 2**20
_GATE_KEYS = ("base", "max", "metric", "allow_noise", "runs")
_RUN_KEYS = ("run", "max", "metric", "allow_noise")


@dataclass(frozen=True)
class GateRun:
    """A run of a gate: its name, the words of the command `run` or `replay`, and how it is judged."""

    name: str
    words: tuple[str, ...]
    limit: Fraction
    metrics: tuple[str, ...]
    allow_noise: bool


@dataclass(frozen=True)
class Choices:
    """What the command line says of all runs; None where it says nothing."""

    limit: str | None = None
    metrics: str | None = None
    allow_noise: bool = False


def one_run(words: list[str], choices: Choices) -> GateRun:
    """The run of a command line. Raises InputError."""
    return _run("run", tuple(words), {}, {}, choices)


def read_gate_file(path: Path, choices: Choices) -> tuple[Path, list[GateRun]]:
    """The base file and the runs. Raises InputError or MachineError, which names file, key and value."""
    try:
        table = parse_toml(read_text(path, MOST_BYTES))
    except FileNotFoundError as error:
        raise InputError("gate", path, "a file of runs") from error
    except UnreadableError as error:
        raise InputError(
            "gate", path, f"a file that lists runs, in this folder, or a run after -- ({error})"
        ) from error
    except TomlError as error:
        raise MachineError(path, "the file", "not TOML", f"a list of runs in TOML: {error}") from error
    gate = table.get("gate", ABSENT)
    if not isinstance(gate, dict):
        raise MachineError(path, "gate", gate, "a table [gate], and runs in [gate.runs]")
    _check_keys(path, "gate", gate, _GATE_KEYS)
    runs = gate.get("runs", ABSENT)
    if not isinstance(runs, dict) or not runs:
        raise MachineError(path, "gate.runs", runs, 'a table with runs: NAME = "run -n 16 -- ./program"')
    base = _text(path, "gate.base", gate.get("base", DEFAULT_BASE))
    found = []
    for name, entry in runs.items():
        key = f"gate.runs.{name}"
        own = entry if isinstance(entry, dict) else {"run": entry}
        _check_keys(path, key, own, _RUN_KEYS)
        if not re.fullmatch(r"[A-Za-z0-9_.+-]{1,60}", name):
            raise MachineError(path, "gate.runs", name, "a name of letters, digits, - and _")
        line = _text(path, f"{key}.run" if isinstance(entry, dict) else key, own.get("run", ABSENT))
        try:
            words = tuple(shlex.split(line))
        except ValueError as error:
            raise MachineError(path, key, line, f"the words of a command ({error})") from error
        found.append(_run(name, words, own, gate, choices, path))
    return path.parent / base, found


def _run(
    name: str,
    words: tuple[str, ...],
    own: dict[str, Any],
    shared: dict[str, Any],
    choices: Choices,
    path: Path | None = None,
) -> GateRun:
    if not words or words[0] not in ("run", "replay"):
        given = " ".join(words)
        raise InputError(name, given, "apenet's command run or replay with its options: run -n 16 -- ./program")

    def chosen(key: str, given: str | None, default: str) -> tuple[str, str]:
        """The option's name in errors and its value: of the command line, the run, all runs, or the default."""
        if given is not None:
            return f"--{key}", given
        for where, table in ((f"gate.runs.{name}.{key}", own), (f"gate.{key}", shared)):
            if key in table:
                return f"{path}: {where}", _text(path, where, table[key])
        return f"--{key}", default

    noise = own.get("allow_noise", shared.get("allow_noise", False))
    if not isinstance(noise, bool):
        raise MachineError(path or NAME, f"gate.runs.{name}.allow_noise", noise, "true or false")
    return GateRun(
        name=name,
        words=words,
        limit=parse_limit(*chosen("max", choices.limit, "0%")),
        metrics=parse_metrics(*chosen("metric", choices.metrics, ",".join(DEFAULT_METRICS))),
        allow_noise=choices.allow_noise or noise,
    )


def _check_keys(path: Path, key: str, table: dict[str, Any], known: tuple[str, ...]) -> None:
    for name, value in table.items():
        if name not in known:
            raise MachineError(path, f"{key}.{name}", value, f"one of the keys {', '.join(known)}")


def _text(path: Path | None, key: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise MachineError(path or NAME, key, value, "a text")
    return value
