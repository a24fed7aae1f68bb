"""The verdict: one sentence that says what a run waits for, and what saves how much by measurement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apenet.explain.alternatives import (
    HARDWARE,
    LINKS,
    LINKS_AND_ROUTERS,
    PLACEMENT,
    PROGRAM,
    ROUTERS,
    Alternative,
)

LEAST_GAIN = 0.01
"""A smaller gain is no advice."""
_EQUAL = 1e-3  # gains that differ by less are equally good: then the advice that is simplest to follow
_SIMPLEST = ("linear", "cart:", "eager", "found", "random:")


@dataclass(frozen=True)
class Verdict:
    """The sentence, and the alternative that it names: advice to follow, or hardware that limits; neither if None."""

    text: str
    advice: Alternative | None
    limit: Alternative | None

    def to_json(self) -> dict[str, Any]:
        """As in explain.json."""
        return {
            "text": self.text,
            "advice": None if self.advice is None else self.advice.name,
            "limit": None if self.limit is None else self.limit.name,
            "gain": None if self.advice is None else self.advice.gain,
        }


def verdict(waiting: str, alternatives: list[Alternative], hot_link: str, *, is_measured: bool) -> Verdict:
    """`waiting` says what share of the time goes where; `hot_link` what the busiest link carries, if it is busy."""
    advice = _best([one for one in alternatives if one.advice])
    limit = _best(_limits(alternatives))
    if not is_measured:
        return Verdict(f"{waiting}. No alternative was measured: the recording is too long for it.", None, None)
    if advice is not None:
        because = f" {hot_link}." if hot_link and advice.kind == PLACEMENT else ""
        condition = f", {advice.condition}" if advice.condition else ""
        return Verdict(f"{waiting}.{because} {_sentence(advice)}{condition}.", advice, limit)
    if limit is not None:
        because = f" {hot_link}." if hot_link and limit.name.startswith("links") else ""
        text = f"{waiting}.{because} No placement and no setting helps; {limit.name} would save {percent(limit.gain)}."
        return Verdict(text, None, limit)
    return Verdict(f"{waiting}. There is nothing to gain from the network.", None, None)


def _sentence(advice: Alternative) -> str:
    text = advice.advice[0].upper() + advice.advice[1:]
    if advice.kind == PLACEMENT:
        text = advice.advice if advice.advice.startswith("--") else text
    return f"{text} {'would save' if advice.kind == PROGRAM else 'saves'} {percent(advice.gain)}"


def _limits(alternatives: list[Alternative]) -> list[Alternative]:
    """The hardware; links and routers together only if they save more than the sum of what each saves.

    Then a packet takes equally long in both, and neither is the limit alone.
    """
    apart = sum(max(0.0, one.gain) for one in alternatives if one.name in (LINKS, ROUTERS))
    return [
        one
        for one in alternatives
        if one.kind == HARDWARE and (one.name != LINKS_AND_ROUTERS or one.gain >= apart + LEAST_GAIN)
    ]


def _best(alternatives: list[Alternative]) -> Alternative | None:
    most = max((one.gain for one in alternatives), default=0.0)
    if most < LEAST_GAIN:
        return None
    good = [one for one in alternatives if one.gain >= most - _EQUAL]
    return min(good, key=lambda one: (_effort(one), -one.gain, one.name))


def _effort(one: Alternative) -> int:
    return next((at for at, word in enumerate(_SIMPLEST) if one.name.startswith(word)), len(_SIMPLEST))


def percent(share: float) -> str:
    """A share in percent, with two digits or more."""
    value = 100 * share
    return f"{value:.0f} %" if value >= 10 else f"{value:.1f} %"  # noqa: PLR2004
