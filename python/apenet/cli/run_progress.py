"""How far a long run is, on a terminal."""

from __future__ import annotations

import time

from apenet.cli.common import messages
from apenet.run.results import show_time

FIRST_S = 2.0
"""Wall time after which a run says it first; then after twice as long each time."""
MOST_S = 60.0


class RunProgress:
    """Prints a line with virtual time and messages a second, if standard error is a terminal.

    Whole lines, at growing intervals: the program may print to the same terminal.
    """

    def __init__(self) -> None:
        self._console = messages()
        self._began = self._last = time.monotonic()
        self._interval = FIRST_S
        self._messages = 0

    def __call__(self, virtual_us: float, count: int) -> None:
        """Call often while the run lasts, with its virtual time and its messages until now."""
        if not self._console.is_terminal:
            return
        now = time.monotonic()
        elapsed = now - self._last
        if elapsed < self._interval:
            return
        rate = (count - self._messages) / elapsed
        self._last, self._messages = now, count
        self._interval = min(2 * self._interval, MOST_S)
        text = f"apenet: {now - self._began:.0f} s: {show_time(virtual_us)} of virtual time, {count} messages"
        self._console.print(f"{text}, {rate:.0f} a second", markup=False)
