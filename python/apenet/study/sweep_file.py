"""A sweep written down in a TOML file."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apenet.base.errors import InputError, MachineError
from apenet.base.tomltext import read_toml
from apenet.study.axes import Axis, axis_of, interval_of
from apenet.study.plan import Draws

_MOST_BYTES = 2**20
_KEYS = ("command", "machine", "study", "grid", "sample")
_SAMPLE_KEYS = ("method", "points", "seed", "vary")


@dataclass(frozen=True)
class Written:
    """What the file says; None or empty for what it does not."""

    command: tuple[str, ...]
    machines: tuple[str, ...] = ()
    study: Path | None = None
    axes: tuple[Axis, ...] = ()
    draws: Draws | None = None


def read_sweep_file(path: Path) -> Written:
    """Paths in it are relative to the current folder, as on the command line. Raises InputError and MachineError."""
    table = read_toml(path, "FILE.toml", "a sweep", _MOST_BYTES)
    return _Reader(path).read(table)


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self, table: dict[str, Any]) -> Written:
        self._known("", table, _KEYS)
        if "command" not in table:
            raise self._wrong("command", None, "a command of apenet, such as bench halo")
        study = table.get("study")
        if study is not None and (not isinstance(study, str) or not study):
            raise self._wrong("study", study, "the name of a file")
        grid = self._table("grid", table)
        try:
            axes = tuple(axis_of(f"grid.{key}", key, values) for key, values in grid.items())
            draws = self._draws(table)
        except InputError as error:
            raise self._wrong(error.name, error.value, error.expected) from error
        machines = self._words("machine", table.get("machine", []))
        return Written(self._words("command", table["command"]), machines, Path(study) if study else None, axes, draws)

    def _draws(self, table: dict[str, Any]) -> Draws | None:
        if "sample" not in table:
            return None
        sample = self._table("sample", table)
        self._known("sample.", sample, _SAMPLE_KEYS)
        for key, default in (("points", 0), ("seed", 1)):
            value = sample.get(key, default)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise self._wrong(f"sample.{key}", value, "a whole number")
        vary = self._table("vary", sample, "sample.")
        intervals = tuple(interval_of(f"sample.vary.{key}", key, bounds) for key, bounds in vary.items())
        return Draws(str(sample.get("method", "latin")), sample.get("points", 0), sample.get("seed", 1), intervals)

    def _words(self, key: str, given: object) -> tuple[str, ...]:
        if isinstance(given, str):
            try:
                given = shlex.split(given)
            except ValueError as error:
                raise self._wrong(key, given, f"words as a shell splits them: {error}") from error
        if not isinstance(given, list) or not all(isinstance(word, str) for word in given):
            raise self._wrong(key, given, "a text, or a list of texts")
        return tuple(given)

    def _table(self, key: str, table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
        found = table.get(key, {})
        if not isinstance(found, dict):
            raise self._wrong(prefix + key, found, "a table")
        return found

    def _known(self, prefix: str, table: dict[str, Any], keys: tuple[str, ...]) -> None:
        for key, value in table.items():
            if key not in keys:
                raise self._wrong(prefix + key, value, f"one of the keys {', '.join(keys)}")

    def _wrong(self, key: str, value: object, expected: str) -> MachineError:
        return MachineError(self._path, key, value, expected)
