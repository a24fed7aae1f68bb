"""Machine files as text: what a run folder keeps, and what `apenet machine show` prints."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from apenet.machine.schema import MachineFile

EXACT_INTEGERS = 2**53  # below it, a float that is whole is that integer


def to_toml(file: MachineFile) -> str:
    """The file in TOML: one inline table a parameter, in the schema's order. Reading it gives an equal file."""
    table = file.model_dump(by_alias=True, exclude_none=True, exclude_defaults=False)
    return "\n".join(_section(table, ())).lstrip("\n") + "\n"


def _is_quantity(value: object) -> bool:
    return isinstance(value, dict) and "class" in value and "value" in value


def _section(table: dict[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    tables = {key: value for key, value in table.items() if isinstance(value, dict) and not _is_quantity(value)}
    leaves = {key: value for key, value in table.items() if key not in tables}
    if leaves:
        yield f"\n[{'.'.join(_key(step) for step in path)}]"
    for key, value in leaves.items():
        if value != "":
            yield f"{key} = {_value(value)}"
    for key, inner in tables.items():
        yield from _section(inner, (*path, key))


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _value(value: object) -> str:
    if isinstance(value, dict):
        parts = (f"{key} = {_value(inner)}" for key, inner in value.items() if inner != "")
        return "{ " + ", ".join(parts) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_value(inner) for inner in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # TOML's basic strings escape as JSON's do, but for DEL, which JSON leaves bare.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT_INTEGERS:
        return str(int(value))
    return repr(value)
