"""Parses data rates as on the command line: 200Gbit/s, 25GB/s, 100MiB/s."""

from __future__ import annotations

import re

from apenet.base.errors import InputError

_RATE = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) ?([kKMGT]?)(i?)(b|bit|B)(?:/s|ps)?")
_POWERS = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4}


def parse_rate(name: str, text: str) -> float:
    """Bytes a second; a lower-case b is a bit, Ki and Mi are powers of 1024. Raises InputError that names `name`."""
    found = _RATE.fullmatch(text.strip())
    number = float(found[1]) if found else 0.0
    if found is None or number == 0 or (found[3] and not found[2]):
        raise InputError(name, text, "a rate in one direction, such as 200Gbit/s or 25GB/s")
    scale = float(1024 if found[3] else 1000) ** _POWERS[found[2]]
    return number * scale / (1 if found[4] == "B" else 8)
