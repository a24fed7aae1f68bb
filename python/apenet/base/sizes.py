"""Parses message sizes as on the command line: 16:1M, 4096, or 16,1K,64K."""

from __future__ import annotations

import re
from collections.abc import Iterable

from apenet.base.errors import InputError
from apenet.base.numbers import whole

LARGEST_BYTES = 2**40  # a larger size is a typing error

_SUFFIXES = {"": 1, "B": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_EXPECTED = "sizes in bytes such as 16:1M (doubling), 4096 or 16,1K,64K; K, M and G are powers of 1024"


def parse_size(text: str) -> int:
    """One size in bytes: 4096, 4K, 1M, 1MiB. Raises InputError for zero, negative and everything else."""
    match = re.fullmatch(r"([0-9]+)([KMG]?)(?:i?B)?", text.strip(), flags=re.IGNORECASE)
    if match is None:
        raise InputError("sizes", text, _EXPECTED)
    size = int(match[1]) * _SUFFIXES[match[2].upper()]
    if not 1 <= size <= LARGEST_BYTES:
        raise InputError("sizes", text, "a size of at least 1 byte and at most 1024G")
    return size


def parse_sizes(text: str) -> list[int]:
    """Sizes in bytes, in rising order. `min:max` doubles from min up to the last size that is not above max."""
    if ":" in text:
        ends = text.split(":")
        if len(ends) != 2:  # noqa: PLR2004 (a range has two ends)
            raise InputError("sizes", text, _EXPECTED)
        low, high = (parse_size(end) for end in ends)
        if low > high:
            raise InputError("sizes", text, "the smaller size first")
        sizes = [low]
        while sizes[-1] * 2 <= high:
            sizes.append(sizes[-1] * 2)
        return sizes
    return sorted({parse_size(part) for part in text.split(",")})


def checked_sizes(sizes: str | int | Iterable[int]) -> list[int]:
    """Sizes given from Python: a text as for `parse_sizes`, or numbers."""
    if isinstance(sizes, str):
        return parse_sizes(sizes)
    given = sizes if isinstance(sizes, Iterable) else [sizes]
    checked = [whole("sizes", size, 1, LARGEST_BYTES, "whole numbers of bytes, at least 1") for size in given]
    if not checked:
        raise InputError("sizes", [], "at least one size")
    return checked
