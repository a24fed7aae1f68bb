"""Rows: a published and a simulated value, with a verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from apenet.machine.published import PublishedPoint, PublishedResult, Role

Verdict = Literal["pass", "miss", "n/a"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One published value. Without a simulated counterpart, `reason` says why."""

    key: str
    machine: str
    test: str
    published: float | str
    simulated: float | None
    unit: str
    tolerance_percent: float | None
    bound: Literal["upper", "lower"] | None
    target: Literal["hard", "soft", "shape", "outside", "none"]
    role: Role | None
    source: str
    layer: str = ""
    quantity: str = ""
    size_bytes: int | None = None
    note: str = ""
    reason: str = ""
    repeats: str = ""
    """The key of the row that counts for this published number; empty for that row itself."""
    command: str = ""
    """The command that measures the simulated value."""
    holds: bool | None = None
    """For a published statement without a number: whether it holds in the simulation."""

    @property
    def error_percent(self) -> float | None:
        """The error of the simulated value in percent of the published one; None without either value."""
        if self.simulated is None or isinstance(self.published, str) or not math.isfinite(self.simulated):
            return None
        return (self.simulated / self.published - 1) * 100

    @property
    def verdict(self) -> Verdict:
        """Pass inside the tolerance or the bound, miss outside; n/a without a target or a simulated value.

        A tolerance widens a bound.
        """
        if self.holds is not None:
            return "pass" if self.holds else "miss"
        if self.target == "none" or self.simulated is None or isinstance(self.published, str):
            return "n/a"
        slack = (self.tolerance_percent or 0) / 100
        match self.bound:
            case "upper":
                agrees = self.simulated <= self.published * (1 + slack)
            case "lower":
                agrees = self.simulated >= self.published * (1 - slack)
            case _:
                agrees = abs(self.simulated - self.published) <= slack * self.published
        return "pass" if agrees else "miss"

    def to_json(self) -> dict[str, Any]:
        """One entry of `rows`."""
        return {
            "key": self.key,
            "machine": self.machine,
            "test": self.test,
            "layer": self.layer,
            "size_bytes": self.size_bytes,
            "quantity": self.quantity,
            "published": self.published,
            "simulated": None if self.simulated is None or not math.isfinite(self.simulated) else self.simulated,
            "unit": self.unit,
            "error_pct": self.error_percent,
            "tolerance_pct": self.tolerance_percent,
            "bound": self.bound,
            "target": self.target,
            "class": self.role,
            "verdict": self.verdict,
            "source": self.source,
            "note": self.note,
            "repeats": self.repeats,
            "reason": self.reason,
            "command": self.command,
        }


def row_of(
    machine: str,
    key: str,
    published: PublishedResult,
    point: PublishedPoint,
    simulated: float | None,
    command: str = "",
) -> Row:
    """The row of one point of a machine's published result."""
    reason = "no target: shown for comparison" if published.target == "none" else ""
    if simulated is None:
        reason = (
            "the simulated path dominates at one number of channels only: only the sum of lambda and tau is determined"
        )
    return Row(
        key=key,
        machine=machine,
        test=published.test,
        layer=published.layer,
        size_bytes=point.size_bytes,
        quantity=published.quantity,
        published=point.value,
        simulated=simulated,
        unit=published.unit,
        tolerance_percent=published.tolerance_percent,
        bound=published.bound,
        target=published.target,
        role=point.role if simulated is not None else None,
        source=published.source,
        note=published.note,
        repeats=published.repeats or "",
        reason=reason,
        command=command,
    )
