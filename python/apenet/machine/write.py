"""Machine files as text: what a run folder keeps, and what `apenet machine show` prints."""

from __future__ import annotations

from typing import Any

from apenet.machine.schema import MachineFile

EXACT_INTEGERS = 2**53  # below it, a float that is whole is that integer


def to_toml(file: MachineFile) -> str:
    """The file in TOML: one inline table a parameter, in the schema's order. Reading it gives an equal file."""
    import tomlkit  # noqa: PLC0415 (0.1 s of import that most commands do not need)

    return tomlkit.dumps(_written(file.model_dump(by_alias=True, exclude_none=True)))


def _written(value: Any) -> Any:  # noqa: ANN401 (whatever a machine file holds)
    """The value as tomlkit takes it: quantities on one line, whole numbers as such, nothing that is empty."""
    import tomlkit  # noqa: PLC0415

    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT_INTEGERS:
        return int(value)
    if isinstance(value, list):
        return [_written(item) for item in value]
    if not isinstance(value, dict):
        return value
    fields = {key: _written(item) for key, item in value.items() if item not in ("", {})}
    if "class" in value and "value" in value:
        quantity = tomlkit.inline_table().add(tomlkit.ws(" "))
        quantity.update(fields)
        return quantity.add(tomlkit.ws(" "))
    # Values before tables: a key that follows a table's header belongs to that table.
    return dict(sorted(fields.items(), key=lambda field: type(field[1]) is dict))
