"""The keys of machine files as tables: what `apenet machine keys` prints and the documentation shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from apenet import _core
from apenet.machine.schema import CARD_FIELDS, SECTIONS


class Key(NamedTuple):
    """One key of a section."""

    key: str
    value: str  # what it may be, with its unit
    default: str  # empty where the key has to be there
    meaning: str


def sections() -> list[str]:
    """Every section by its name; those of cards as `card KIND`, and of tables in them as `card KIND.TABLE`."""
    return [*SECTIONS, *CARD_FIELDS]


def keys(section: str) -> Iterator[Key]:
    """The keys of a section, in the order of the core's list."""
    for field in SECTIONS[section] if section in SECTIONS else CARD_FIELDS[section]:
        yield Key(field.key, _value(field), _default(field), field.meaning)


def _default(field: _core.Field) -> str:
    return "" if not field.is_optional else field.default_value or "absent"


def _value(field: _core.Field) -> str:
    unit = f" {field.unit}" if field.unit else ""
    if field.kind == _core.FieldKind.choice:
        return ", ".join(field.choices)
    if field.kind == _core.FieldKind.probability:
        return "0 to 1"
    if field.kind in (_core.FieldKind.text, _core.FieldKind.file):
        return field.kind.name
    if field.kind == _core.FieldKind.measured:
        text = f"{'> 0' if field.least > 0 else '>= 0'}{unit}"
    else:
        text = f"{field.least} to {_power(field.most)}{unit}"
    return f"list of {text}" if field.is_list else text


def _power(number: int | None) -> str:
    """Limits of the core are powers of two: 2^31 is read at once, 2147483648 is not."""
    if number is None or number < 2**10 or number & (number - 1):
        return str(number)
    return f"2^{number.bit_length() - 1}"
