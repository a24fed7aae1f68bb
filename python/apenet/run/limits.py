"""Limits of a run that the user sets."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from decimal import Decimal

from apenet.base.errors import InputError
from apenet.run.program_result import RunResult

MOST_SECONDS = 10**9
LIMIT_STATUS = 124
"""As of timeout(1)."""
MOST_PS = 8_985_600 * 10**12
"""104 days: the end of virtual time."""
_VIRTUAL_TIME = "a virtual time such as 10ms, 1.5s or 300us, above 0 and up to 104 days"
_PS = {"s": 10**12, "ms": 10**9, "us": 10**6, "ns": 10**3}


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
    text = given if isinstance(given, str) else f"{given!r}s"
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]{1,2})?)(s|ms|us|ns)", text)
    ps = round(Decimal(found[1]) * _PS[found[2]]) if found is not None else -1
    if not 0 <= ps <= MOST_PS:
        raise InputError(name, given, _VIRTUAL_TIME)
    return ps


class WallLimit:
    """Ends a run after a wall time. Raises InputError for what is no time."""

    def __init__(self, seconds: float | None) -> None:
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if seconds is not None and not (is_number and 0 < seconds <= MOST_SECONDS):
            raise InputError("limit_wall", seconds, f"seconds, above 0 and up to {MOST_SECONDS}")
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
