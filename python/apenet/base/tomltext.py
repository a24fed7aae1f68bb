"""Parses TOML within limits: for some texts, the standard library's parser takes time and memory without a bound."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from apenet.base.errors import InputError, MachineError
from apenet.base.infiles import UnreadableError, read_text

MOST_KEY_PARTS = 16
MOST_NESTED = 16
MOST_DIGITS = 100
"""The most digits of a number; the longest in a machine file has 20."""

# A text, a comment, the punctuation of keys and brackets, or a run of what keys and numbers consist of. A text that is
# not closed reaches to the end of the line or file, so that the search takes time in proportion to the length.
_WORD = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"""|\Z)'
    r"|\'\'\'.*?(?:\'\'\'|\Z)"
    r'|"(?:\\[^\n]|[^"\\\n])*"?'
    r"|'[^'\n]*'?"
    r"|#[^\n]*|[.\[\]{}]|[\w+-]+|[^\w\s.+\"'#\[\]{}-]+|\n",
    re.DOTALL,
)


class TomlError(ValueError):
    """Why a text is not TOML that this package reads."""


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a text. Raises TomlError for what is not TOML, and beyond the limits above."""
    _check_limits(text)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise TomlError(str(error)) from error


def read_toml(path: Path, name: str, what: str, most_bytes: int) -> dict[str, Any]:
    """The tables of a file that a user gives as `name`. Raises InputError and MachineError, which say `what` it has."""
    try:
        return parse_toml(read_text(path, most_bytes))
    except UnreadableError as error:
        raise InputError(name, path, f"{what} in TOML: {error}") from error
    except TomlError as error:
        raise MachineError(path, "the file", "not TOML", f"{what} in TOML: {error}") from error


def _check_limits(text: str) -> None:
    parts, depth, is_open = 0, 0, False
    for found in _WORD.finditer(text):
        word = found[0]
        if word in ("[", "{"):
            depth += 1
        elif word in ("]", "}"):
            depth -= 1
        if word == ".":
            is_open = True
        elif word[0] in "\"'" or word[0].isalnum() or word[0] in "_+-":
            parts = parts + 1 if is_open else 1
            is_open = False
            if len(word) > MOST_DIGITS and re.fullmatch(r"[+-]?(?:[0-9]|0[xob])[\w+-]*", word):
                raise TomlError(
                    f"a number of {len(word)} digits (at line {_line(text, found)}); the most are {MOST_DIGITS}"
                )
        else:
            parts, is_open = 0, False
        if parts > MOST_KEY_PARTS:
            raise TomlError(f"a key of more than {MOST_KEY_PARTS} parts (at line {_line(text, found)})")
        if depth > MOST_NESTED:
            raise TomlError(f"more than {MOST_NESTED} brackets in each other (at line {_line(text, found)})")


def _line(text: str, found: re.Match[str]) -> int:
    return text.count("\n", 0, found.start()) + 1
