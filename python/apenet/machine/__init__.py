"""Machines: finding, reading, changing and showing their descriptions.

`machine("ape16")` is where everything starts; what it returns is given to `apenet.run` and `apenet.bench`.
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apenet import _core
from apenet.errors import InputError, MachineError, from_core
from apenet.machine.check import check
from apenet.machine.lower import lower
from apenet.machine.schema import ApelinkCard, MachineFile, RawTable
from apenet.machine.write import to_toml

__all__ = ["Machine", "MachineFile", "machine", "machine_names", "machines"]

# Keys that are no parameters: their values stand bare in the file.
_BARE = {("card", "kind"), ("machine", "name"), ("machine", "title"), ("machine", "summary")}


@dataclass(frozen=True)
class Machine:
    """A checked machine description, with the settings that were applied to it."""

    path: Path
    file: MachineFile
    settings: tuple[str, ...] = ()
    table: RawTable = field(default_factory=dict, repr=False, compare=False)

    @property
    def name(self) -> str:
        """The machine's name, `ape16`."""
        return self.file.machine.name

    @property
    def label(self) -> str:
        """The file as errors name it."""
        return self.path.name if self.path.parent == _folder() else str(self.path)

    @property
    def dims(self) -> tuple[int, ...]:
        """Nodes along each dimension, X first; empty for a machine of any size."""
        return tuple(self.file.network.dims.value) if self.file.network.dims is not None else ()

    @property
    def node_count(self) -> int | None:
        """Number of nodes, None for a machine that has as many as are asked for."""
        return math.prod(self.dims) if self.dims else None

    @property
    def ports(self) -> int | None:
        """How many processes can share a node's card, None when there is no limit."""
        return self.file.card.ports.value if isinstance(self.file.card, ApelinkCard) else None

    def with_settings(self, *settings: str) -> Machine:
        """A machine with `key.path=value` settings applied, each validated like the file."""
        table = self.table
        for setting in settings:
            table = _apply(table, setting)
        applied = (*self.settings, *settings)
        origin = " ".join((self.label, *(f"--set {setting}" for setting in applied)))
        checked = check(table, origin)
        lower(checked, origin, seed=1)
        return Machine(self.path, checked, applied, table)

    def description(self, seed: int = 1) -> _core.MachineDescription:
        """The machine in base units, as the C++ core takes it."""
        return lower(self.file, self.label, seed)

    def wire(self) -> None:
        """Puts the machine together, as a run would: what no single key shows (deadlock, buffers) is found here."""
        try:
            _core.wire(self.description(), [0])
        except ValueError as error:
            refused = from_core(error)
            raise MachineError(self.label, refused.name, refused.value, refused.expected) from error

    def to_toml(self) -> str:
        """The resolved description as a machine file."""
        return to_toml(self.file)


def _folder() -> Path:
    return Path(_core.__file__).parent / "machines"


def machine_names() -> list[str]:
    """Names of the machines that come with the package."""
    return sorted(path.stem for path in _folder().glob("*.toml"))


def machines() -> Iterator[Machine]:
    """The machines that come with the package."""
    return (machine(name) for name in machine_names())


def machine(name_or_path: str | Path, settings: Iterable[str] = ()) -> Machine:
    """Reads a machine by the name of one that comes with the package, or by the path of a file.

    Raises MachineError naming file, key, value and what was expected.
    """
    path = _find(name_or_path)
    try:
        table: RawTable = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MachineError(path, "the file", "not TOML", f"a machine description in TOML: {error}") from error
    except OSError as error:
        raise InputError("machine", str(path), f"a file that can be read: {error.strerror}") from error
    return Machine(path, check(table, path), (), table).with_settings(*settings)


def _find(name_or_path: str | Path) -> Path:
    text = str(name_or_path)
    shipped = _folder() / f"{text}.toml"
    if isinstance(name_or_path, str) and "/" not in text and shipped.is_file():
        return shipped
    path = Path(name_or_path)
    if path.is_file():
        return path
    names = machine_names()
    if path.suffix == ".toml" or "/" in text:
        raise InputError("machine", text, "a file that exists, or one of " + ", ".join(names))
    close = difflib.get_close_matches(text, names, n=1, cutoff=0.5)
    hint = f'; did you mean "{close[0]}"?' if close else ""
    raise InputError("machine", text, "one of " + ", ".join(names) + ", or the path of a machine file" + hint)


def _apply(table: RawTable, setting: str) -> RawTable:
    """A copy of the table with one `key.path=value` in it. Unknown keys are left to `check`."""
    key, equals, text = setting.partition("=")
    path = tuple(key.strip().split("."))
    if not equals or not all(re.fullmatch(r"[A-Za-z0-9_-]+", step) for step in path) or len(path) < 2:  # noqa: PLR2004
        raise InputError("--set", setting, "key.path=value, such as bus.clock_mhz=66")
    if path[0] == "results":
        raise InputError("--set", setting, "a parameter of the machine: published results cannot be changed")
    value = _toml_value(text.strip(), setting)
    entry = value if path in _BARE else {"value": value, "class": "set", "source": f"--set {setting}"}
    return _replaced(table, path, entry, setting)


def _toml_value(text: str, setting: str) -> Any:  # noqa: ANN401 (whatever TOML holds; checked afterwards)
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        # A bare word is a text: the shell has already taken the quotes.
        if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", text):
            return text
        raise InputError("--set", setting, "a TOML value after '=', such as 66, 1.5, torus or [4,2,2]") from None
    if set(parsed) != {"value"}:
        raise InputError("--set", setting, "one TOML value after '='")
    return parsed["value"]


def _replaced(table: RawTable, path: tuple[str, ...], entry: object, setting: str) -> RawTable:
    step, rest = path[0], path[1:]
    if not rest:
        return {**table, step: entry}
    inner = table.get(step, {})
    if not isinstance(inner, dict) or "class" in inner:
        raise InputError("--set", setting, f'the key of a parameter: "{step}" is one itself, nothing is below it')
    return {**table, step: _replaced(inner, rest, entry, setting)}
