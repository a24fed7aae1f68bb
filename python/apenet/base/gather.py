"""Merges the warnings of a sweep's points: each kind once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

NO_EFFECT = "had no effect on any event of this run"
NO_EFFECT_REPLAYED = "had no effect on any event of a replay of this run"
"""Both end a warning that is true of a sweep only if every point has it."""
_NUMBER = re.compile(r"[0-9]+")


def gather_warnings(points: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """The warnings of all points in the order of their first appearance.

    Warnings of different points that differ only in numbers ("used 61 % of the time") are merged, and the one with the
    greatest numbers is kept. Several such warnings of one point (on several links) are all kept. One that ends with
    `NO_EFFECT` or `NO_EFFECT_REPLAYED` is kept if every point has it.
    """
    kept: dict[tuple[str, int], str] = {}
    given = [list(warnings) for warnings in points]
    for warnings in given:
        seen: Counter[str] = Counter()
        for warning in warnings:
            if warning.endswith((NO_EFFECT, NO_EFFECT_REPLAYED)) and any(warning not in others for others in given):
                continue
            wording = _NUMBER.sub("#", warning)
            key = (wording, seen[wording])
            seen[wording] += 1
            kept[key] = max(kept.get(key, warning), warning, key=_numbers)
    return tuple(kept.values())


def _numbers(warning: str) -> list[int]:
    return [int(number) for number in _NUMBER.findall(warning)]
