"""From a checked machine file to the description that the C++ core wires: its values, flat, by their keys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from apenet import _core
from apenet.base.errors import MachineError, from_core
from apenet.base.infiles import UnreadableError, read_text
from apenet.machine.quantity import Quantity, quantities
from apenet.machine.schema import FILE_KEYS, MachineFile

MOST_NAMED_BYTES = 2**28
"""The largest file with a graph or a table."""

Value = str | int | float | list[int] | list[float]


def lower(
    file: MachineFile,
    name: Path | str,
    folder: Path,
    seed: int = 1,
    engine: _core.Engine = _core.Engine.packet,
    faults: Sequence[str] = (),
) -> _core.MachineDescription:
    """The description that the C++ core wires.

    `name` is the file's, for errors; `folder` is where the files lie that it names.
    """
    found = dict(quantities(file))
    values: list[tuple[str, Value]] = [("machine.name", file.machine.name), ("card.kind", file.card.kind)]
    values += [(f"rail.{rail}.card.kind", one.card.kind) for rail, one in file.rail.items()]
    for key, quantity in found.items():
        section, _, last = key.rpartition(".")
        is_file = last in FILE_KEYS and section.rpartition(".")[2] == "network"
        values.append((key, read_named(quantity, key, name, folder) if is_file else quantity.value))
    try:
        return _core.describe(values, seed, engine, faults)
    except ValueError as error:
        refused = from_core(error)
        given = found.get(refused.name)
        value = refused.value if given is None else _at_fault(given.value, repr(refused.value))
        raise MachineError(name, refused.name, value, refused.expected) from error


def _at_fault(given: Value, refused: str) -> Value:
    """The value that the core refused, as the file writes it: of a list, the number where it names one."""
    if not isinstance(given, list):
        return given
    return next((one for one in given if f"{one:g}" == refused or str(one) == refused), given)


def read_named(quantity: Quantity[Any], key: str, name: Path | str, folder: Path) -> str:
    """The text of a file that a machine file names, relative to the machine file; with --set, to where one is."""
    path = (Path() if quantity.origin == "set" else folder) / str(quantity.value)
    try:
        return read_text(path, MOST_NAMED_BYTES)
    except UnreadableError as error:
        raise MachineError(name, key, quantity.value, f"a file that can be read ({error})") from error
