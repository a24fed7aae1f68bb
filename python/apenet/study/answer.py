"""What a search found: its settings in order, and which of them the assumed numbers leave open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

OPEN_PERCENT = 5
"""A setting that is as good as the best in this share of the draws cannot be told from it."""


@dataclass(frozen=True)
class Setting:
    """A machine, and a value of each axis."""

    machine: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """A setting that was simulated."""

    setting: Setting
    value: float
    """With the machine as it is."""
    amounts: Mapping[str, float]
    """What the budget names: parts, and the price."""
    drawn: Mapping[int, float]
    """The value in each draw that gave one."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ranked:
    """A setting beside the best one."""

    machine: str
    values: Mapping[str, str]
    """The value of each axis."""
    amounts: Mapping[str, float]
    value: float
    median: float | None
    low: float | None
    high: float | None
    draws: int
    as_good_percent: float | None
    """The share of the draws in which it is as good as the best one or better; None for the best one itself."""
    is_open: bool
    """Whether it cannot be told from the best one: it has the same value, or a share of at least OPEN_PERCENT."""


@dataclass(frozen=True)
class OptimiseResult:
    """The answer of a search."""

    command: tuple[str, ...]
    value: str
    """The name of what was made small, or large."""
    maximise: bool
    settings: int
    """How many there are, within the limits or not."""
    evaluated: int
    """How many were simulated, or were in the study."""
    beyond: int
    """How many the search met and left, because they are beyond the limits."""
    refused: int
    failed: int
    is_complete: bool
    """Whether each setting within the limits was evaluated."""
    is_local: bool
    """Whether each setting that differs from the best one on one axis was evaluated, or is beyond the limits."""
    drawn: int
    """How many settings were simulated with each draw; 0 without draws."""
    ranked: tuple[Ranked, ...]
    """The best setting first, then all that cannot be told from it, then the next ones."""
    warnings: tuple[str, ...]
    """Those of the simulations of these settings."""

    @property
    def best(self) -> Ranked:
        """The setting with the best value, with the machines as they are."""
        return self.ranked[0]

    @property
    def open(self) -> tuple[Ranked, ...]:
        """The other settings that may be the best one."""
        return tuple(one for one in self.ranked[1:] if one.is_open)

    def to_json(self) -> dict[str, Any]:
        """The answer as one object."""
        return asdict(self)


def as_good_share(one: Found, best: Found, *, maximise: bool) -> float | None:
    """The share of draws in which a setting is as good as the best one, or better; None without common draws.

    On one machine, a draw sets the same numbers for both. Two machines have assumed numbers of their own, so each draw
    of one is compared with each of the other.
    """
    sign = -1 if maximise else 1
    if one.setting.machine == best.setting.machine:
        common = one.drawn.keys() & best.drawn.keys()
        pairs = [(one.drawn[draw], best.drawn[draw]) for draw in sorted(common)]
    else:
        pairs = [(mine, other) for mine in one.drawn.values() for other in best.drawn.values()]
    if not pairs:
        return None
    return sum(sign * mine <= sign * other for mine, other in pairs) / len(pairs)


def is_open(one: Found, best: Found, *, maximise: bool) -> bool:
    """Whether it cannot be told from the best one."""
    share = as_good_share(one, best, maximise=maximise)
    return one.value == best.value or (share is not None and share * 100 >= OPEN_PERCENT)


def ranked(found: Sequence[Found], names: Sequence[str], *, maximise: bool, others: int) -> tuple[Ranked, ...]:
    """The best of `found`, which are in order, then the open ones, then so many others."""
    best, *rest = found
    left = [one for one in rest if not is_open(one, best, maximise=maximise)][:others]
    kept = [best, *(one for one in rest if is_open(one, best, maximise=maximise)), *left]
    return tuple(_beside(one, best, names, maximise=maximise) for one in kept)


def _beside(one: Found, best: Found, names: Sequence[str], *, maximise: bool) -> Ranked:
    import numpy as np  # noqa: PLC0415 (slow import)

    from apenet.study.summary import HIGH_PERCENT, LOW_PERCENT  # noqa: PLC0415

    low = median = high = None
    if one.drawn:
        low, median, high = map(float, np.percentile(list(one.drawn.values()), [LOW_PERCENT, 50, HIGH_PERCENT]))
    share = None if one is best else as_good_share(one, best, maximise=maximise)
    return Ranked(
        one.setting.machine,
        dict(zip(names, one.setting.values, strict=True)),
        one.amounts,
        one.value,
        median,
        low,
        high,
        len(one.drawn),
        None if share is None else 100 * share,
        one is not best and is_open(one, best, maximise=maximise),
    )
