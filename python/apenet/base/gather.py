"""Merges the warnings of a sweep's points: each kind once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

_NUMBER = re.compile(r"[0-9]+")


def gather_warnings(points: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """The warnings of all points in the order of their first appearance.

    Warnings of different points that differ only in numbers ("used 61 % of the time") are merged, and the one with the
    greatest numbers is kept. Several such warnings of one point (on several links) are all kept.
    """
    kept: dict[tuple[str, int], str] = {}
    for warnings in points:
        seen: Counter[str] = Counter()
        for warning in warnings:
            wording = _NUMBER.sub("#", warning)
            key = (wording, seen[wording])
            seen[wording] += 1
            kept[key] = max(kept.get(key, warning), warning, key=_numbers)
    return tuple(kept.values())


def _numbers(warning: str) -> list[int]:
    return [int(number) for number in _NUMBER.findall(warning)]
