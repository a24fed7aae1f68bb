"""The values of a run that a gate compares. All are whole numbers, so that equal means equal."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from apenet.base.errors import InputError
from apenet.run.results import PS_PER_US

DEFAULT_METRICS = ("time",)
MOST_PERCENT = 10_000
_LIMIT = re.compile(r"\+?([0-9]{1,6}(?:\.[0-9]{1,9})?) ?%")
_UNITS_PS = (("s", 10**12), ("ms", 10**9), ("us", 10**6), ("ns", 10**3), ("ps", 1))


@dataclass(frozen=True)
class Metric:
    """A value of a run: its name, what it means, how to take it from run.json, and whether it is a time."""

    name: str
    meaning: str
    value: Callable[[Mapping[str, Any]], int | None]
    is_time: bool

    def shown(self, value: int) -> str:
        """The exact value, for people."""
        return show_ps(value) if self.is_time else f"{value:,}".replace(",", " ")


def _picoseconds(microseconds: float) -> int:
    return round(microseconds * PS_PER_US)


def _time(result: Mapping[str, Any]) -> int | None:
    return _picoseconds(result["virtual_time_us"])


def _flit_time(result: Mapping[str, Any]) -> int | None:
    time_us = result.get("flit_virtual_time_us")
    return None if time_us is None else _picoseconds(time_us)


def _max_link(result: Mapping[str, Any]) -> int | None:
    return max((_picoseconds(link["busy_us"]) for link in result["links"]), default=0)


METRICS = {
    metric.name: metric
    for metric in (
        Metric("time", "virtual time of the run", _time, is_time=True),
        Metric("messages", "messages posted to the cards", lambda result: result["messages"], is_time=False),
        Metric("bytes", "bytes posted to the cards", lambda result: result["bytes"], is_time=False),
        Metric("max_link", "busy time of the busiest link between switches", _max_link, is_time=True),
        Metric("flit_time", "virtual time with the flit engine, of --engine both", _flit_time, is_time=True),
    )
}
TIMES = frozenset(name for name, metric in METRICS.items() if metric.is_time)


def values_of(result: Mapping[str, Any]) -> dict[str, int]:
    """The values of a completed run, from its run.json."""
    values = {name: metric.value(result) for name, metric in METRICS.items()}
    return {name: value for name, value in values.items() if value is not None}


def parse_metrics(name: str, given: str) -> tuple[str, ...]:
    """The metrics of a list `time,messages`. Raises InputError."""
    names = tuple(part.strip() for part in given.split(","))
    for metric in names:
        if metric not in METRICS:
            raise InputError(name, given, f"some of {', '.join(METRICS)}, separated by commas")
    if len(set(names)) < len(names):
        raise InputError(name, given, "each metric once")
    return names


def parse_limit(name: str, given: str) -> Fraction:
    """The percentage of a limit `+0.5%`, exactly. Raises InputError."""
    found = _LIMIT.fullmatch(given.strip())
    percent = Fraction(found[1]) if found is not None else None
    if percent is None or percent > MOST_PERCENT:
        raise InputError(name, given, f"a percentage from 0 to {MOST_PERCENT} by which a value may grow, such as +0.5%")
    return percent


def show_percent(percent: Fraction) -> str:
    """A limit as it is given."""
    return f"+{float(percent):g} %" if percent else "0"


def show_ps(picoseconds: int) -> str:
    """A time in a suitable unit, exactly to the picosecond."""
    unit, size = next(((unit, size) for unit, size in _UNITS_PS if abs(picoseconds) >= size), _UNITS_PS[-1])
    digits = len(str(size)) - 1
    text = f"{Fraction(picoseconds, size).__float__():.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if digits else text} {unit}"


@dataclass(frozen=True)
class Change:
    """One value of a run beside the accepted one."""

    metric: Metric
    base: int
    now: int
    limit: Fraction | None
    """The percentage by which it may grow; None for a value that is not judged."""

    @property
    def is_worse(self) -> bool:
        """Whether it has grown by more than the limit."""
        return self.limit is not None and 100 * (self.now - self.base) > self.limit * self.base

    @property
    def verdict(self) -> str:
        """One word or two, for people."""
        if self.now == self.base:
            return "equal"
        if self.limit is None:
            return "not judged"
        if self.now < self.base:
            return "better"
        return "worse" if self.is_worse else "within the limit"

    @property
    def shown(self) -> str:
        """The difference, exactly, and in percent of the base."""
        difference = self.now - self.base
        if difference == 0:
            return "0"
        sign = "+" if difference > 0 else "-"
        text = f"{sign}{self.metric.shown(abs(difference))}"
        return f"{text} ({100 * difference / self.base:+.3g} %)" if self.base else text
