"""Rows of CSV and JSON that a file itself marks as valid or invalid, and columns that nothing here reads.

A list of words is never complete. So columns that are not read are named, and of each that sets a few rows apart, these
rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from apenet.fit.formats import mark_words as words
from apenet.fit.formats import quantities
from apenet.fit.measurement import Rejected
from apenet.fit.text import Line, MeasurementError

_SHOWN_COLUMNS, _SHOWN_LINES, _SHOWN_CHARACTERS = 8, 3, 30
_LEAST_ROWS = 3


@dataclass(frozen=True)
class Mark:
    """A column in which rows are marked as valid or invalid. `is_of_valid` is None if only words in it are a mark."""

    name: str
    index: int
    is_of_valid: bool | None

    def rejected(self, line: Line, cells: Sequence[str]) -> Rejected | None:
        """The row if it is marked as invalid. Raises MeasurementError for a mark that is not understood."""
        cell = cells[self.index].strip()
        text = cell.strip('"').lower()
        is_valid = not _tells_of_failure(text) if self.is_of_valid is None else _verdict(text, self.is_of_valid)
        if is_valid is None:
            raise line.error(
                cell,
                f'a mark in the column "{self.name}": true, false, pass, fail or a count; an uncertainty is '
                f'named "{re.sub(r"[^a-z0-9]+", "_", self.name.lower())}_us"',
            )
        return None if is_valid else Rejected(line, f"{self.name} {cell}")


def _verdict(text: str, is_of_valid: bool) -> bool | None:
    """Whether such a text says that its row is valid; None if it is unclear."""
    if text in words.GOOD or (text in words.NOTHING and not is_of_valid):
        return True
    if text in words.YES | words.NO:
        return (text in words.YES) == is_of_valid
    if re.fullmatch(r"[+-]?[0-9]+(?:\.0*)?", text):
        return (float(text) != 0) == is_of_valid
    if _tells_of_failure(text):
        return False
    # "no errors" in a column of errors
    return True if not is_of_valid and re.fullmatch(r"(no|without|zero|0)[ _][a-z]+", text) is not None else None


def _tells_of_failure(text: str) -> bool:
    return words.BAD_WORD.search(words.NEGATED.sub("", text.replace("_", " "))) is not None


def marks(names: Sequence[str]) -> list[Mark]:
    """The columns that may mark rows as valid or invalid: all but those with a quantity, and settings."""
    return [
        Mark(name.strip(), index, _is_of_valid(name.strip().strip('"')))
        for index, name in enumerate(names)
        if not quantities.has_quantity(name) and not _is_setting(name)
    ]


def _is_setting(name: str) -> bool:
    return any(part in words.SETTINGS for part in name.lower().split(".")[:-1])


def _words_of(name: str) -> set[str]:
    split = (
        re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
        .lower()
        .replace("timed_out", "timeout")
        .replace("timed out", "timeout")
    )
    return set(re.findall(r"[^\W0-9_][^\W_]*", split))


def _is_of_valid(name: str) -> bool | None:
    """Whether a column with this name marks valid rows or invalid ones; None for any other name.

    `failed_validation` and `validation_errors` mark invalid rows. In `status.code`, an object's key, the last part that
    says anything decides.
    """
    for part in reversed(name.split(".")):
        told = {word[1:] if word[0] == "n" and word[1:] in words.INVALID_NAMES else word for word in _words_of(part)}
        told -= words.NAMES_BESIDE
        if told:
            return told <= words.VALID_NAMES if told <= words.VALID_NAMES | words.INVALID_NAMES else None
    return None


def is_mark(name: str) -> bool:
    """Whether a column with this name marks rows, whatever stands in it."""
    return _is_of_valid(name) is not None


def is_bad(word: str) -> bool:
    """Whether this text is a verdict, and says that something is invalid."""
    return words.BAD_WORD.fullmatch(word.strip().replace("_", " ")) is not None


def first_mark(marks: Sequence[Mark], line: Line, cells: Sequence[str]) -> Rejected | None:
    """The row if one of these columns marks it as invalid."""
    return next((found for mark in marks if (found := mark.rejected(line, cells)) is not None), None)


def is_unclear(name: str, line: Line, cell: str) -> bool:
    """Whether a column marks rows by its name, but what stands in it is no mark."""
    try:
        first_mark(marks([name]), line, [cell])
    except MeasurementError:
        return True
    return False


def is_unread(name: str) -> bool:
    """Whether nothing here reads a column of this name, and it is not known as harmless."""
    if quantities.has_quantity(name) or is_mark(name):
        return False
    found = _words_of(name.rpartition(".")[2])
    return not found or not found <= words.HARMLESS | words.UNITS


def notes_on_unread(
    what: str, rows: Sequence[tuple[str, Mapping[str, str]]], file: str, whole: Iterable[str] = ()
) -> Iterator[str]:
    """Notes on the columns (or fields: `what`) that are not read: their names, and the rows that one sets apart.

    `rows` have the name of each row's place, and its cells by column; `whole` are names of what is told of all rows.
    """
    # Dictionaries, not sets: the order is that of the file.
    unread = [name for name in dict.fromkeys(name for _, cells in rows for name in cells) if is_unread(name)]
    columns = {name: Counter(cells.get(name, "") for _, cells in rows) for name in unread}
    of_rows = [name for name in unread if not _is_known(columns[name])]
    names = list(dict.fromkeys((*of_rows, *filter(is_unread, whole))))
    if not names:
        return
    apart = (note for name in of_rows if (note := _set_apart(name, columns[name], rows)) is not None)
    yield from islice(apart, _SHOWN_COLUMNS)
    shown = ", ".join(_shown(name) or "one without a name" for name in names[:_SHOWN_COLUMNS])
    more = f" and {len(names) - _SHOWN_COLUMNS} more" if len(names) > _SHOWN_COLUMNS else ""
    one = len(names) == 1
    yield (
        f"{file}: {what}{'' if one else 's'} not read: {shown}{more}; if {'it marks' if one else 'one of them marks'} "
        "invalid rows, remove those rows"
    )


def _is_known(cells: Counter[str]) -> bool:
    """Whether a column says nothing of these rows, or that all are good: the others are left out already."""
    found = {cell.strip().strip('"').lower() for cell in cells}
    return found <= words.GOOD or found <= words.NOTHING


def _set_apart(name: str, cells: Counter[str], rows: Sequence[tuple[str, Mapping[str, str]]]) -> str | None:
    """A note on the few rows in which a column differs from what it has in most."""
    alike: dict[str, int] = {}
    usual: dict[str, str] = {}
    for cell, times in cells.items():
        alike[_same(cell)] = alike.get(_same(cell), 0) + times
        usual.setdefault(_same(cell), cell)
    common = max(alike, key=lambda value: alike[value])
    if len(rows) < _LEAST_ROWS or len(alike) == 1 or 2 * alike[common] <= len(rows):
        return None
    others = [(place, of_row.get(name, "")) for place, of_row in rows if _same(of_row.get(name, "")) != common]
    places = ", ".join(place for place, _ in others[:_SHOWN_LINES])
    more = f" and {len(others) - _SHOWN_LINES} more" if len(others) > _SHOWN_LINES else ""
    verb, subject, are = ("has", "this row", "is") if len(others) == 1 else ("have", "these rows", "are")
    return (
        f"{places}{more} {verb} {_value(others[0][1])} in {_shown(name)}, most rows have {_value(usual[common])}: "
        f"{subject} may be invalid, but {are} fitted"
    )


def _value(cell: str) -> str:
    return _shown(cell.strip()) or "nothing"


def _same(cell: str) -> str:
    """A form that equal values share: 0, 0.0 and 0.00."""
    text = cell.strip().strip('"').lower()
    try:
        return f"{float(text):g}"
    except ValueError:
        return text


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."
