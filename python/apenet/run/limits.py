"""Limits of a run that the user sets."""

from __future__ import annotations

import time
from dataclasses import replace

from apenet.base.errors import InputError
from apenet.run.program_result import RunResult

MOST_SECONDS = 10**9
LIMIT_STATUS = 124
"""As of timeout(1)."""


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
