"""Limits of a run that the user sets."""

from __future__ import annotations

import math
import re
import time
from dataclasses import replace
from decimal import Decimal

from apenet.base.errors import InputError
from apenet.run.program_result import RunResult

LEAST_SECONDS = 0.001
MOST_SECONDS = 10**9
LIMIT_STATUS = 124
"""As of timeout(1)."""
MOST_PS = 8_985_600 * 10**12
"""104 days: the end of virtual time."""
_VIRTUAL_TIME = "a virtual time such as 10ms, 1.5s or 300us, above 0 and up to 104 days"
_PS = {"s": 10**12, "ms": 10**9, "us": 10**6, "ns": 10**3}
_S = {"": 1.0, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def virtual_limit_ps(given: str | float | None) -> int:
    """The virtual time of a limit, from seconds or a text such as 10ms; 0 for none. Raises InputError."""
    if given is None:
        return 0
    ps = virtual_time_ps("limit_virtual", given)
    if ps == 0:
        raise InputError("limit_virtual", given, _VIRTUAL_TIME)
    return ps


def virtual_time_ps(name: str, given: str | float) -> int:
    """A virtual time from seconds or a text such as 10ms. Raises InputError."""
    text = time_text(given)
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,2})?)(s|ms|us|ns)", text)
    ps = round(Decimal(found[1]) * _PS[found[2]]) if found is not None else -1
    if not 0 <= ps <= MOST_PS:
        raise InputError(name, given, _VIRTUAL_TIME)
    return ps


def time_text(given: str | float) -> str:
    """A time as the command line takes it; a number is of seconds."""
    return given if isinstance(given, str) else f"{given!r}s"


def wall_time_s(name: str, given: str | float, least_s: float, most_s: float) -> float:
    """A wall time in seconds, from a number or a text such as 90, 90s or 2min. Raises InputError."""
    if isinstance(given, str):
        found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(|ms|s|min|h)", given)
        seconds = float(found[1]) * _S[found[2]] if found is not None else math.nan
    else:
        seconds = math.nan if isinstance(given, bool) else given
    if not least_s <= seconds <= most_s:
        raise InputError(name, given, f"a wall time such as 90s or 2min, from {least_s:g} s to {most_s:g} s")
    return seconds


class WallLimit:
    """Ends a run after a wall time, in seconds or as `90s`. Raises InputError for what is no time."""

    def __init__(self, given: str | float | None) -> None:
        seconds = None if given is None else wall_time_s("limit_wall", given, LEAST_SECONDS, MOST_SECONDS)
        self._seconds = seconds
        self._ends_at = None if seconds is None else time.monotonic() + seconds
        self._is_reached = False

    def is_over(self) -> bool:
        """Call often while the run lasts."""
        if self._ends_at is not None and time.monotonic() >= self._ends_at:
            self._is_reached = True
        return self._is_reached

    def judge(self, result: RunResult) -> RunResult:
        """The result, which says so if the limit has ended the run."""
        if not self._is_reached or result.outcome != "interrupted":
            return result
        message = f"limit: ended after {self._seconds:g} s of wall time; what was measured until then is kept"
        return replace(result, outcome="limit", exit_status=LIMIT_STATUS, message=message)
