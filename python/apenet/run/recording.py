"""Records a run as a trace in the GOAL format: the file that the ranks write to, and what becomes of it."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

from apenet import _core
from apenet.base.errors import NotWrittenError
from apenet.base.outfiles import Held, OutFile, begins_with


class Recording(Held):
    """A recording while it is made, in a file without a name: whatever happens, nothing of it is left behind.

    Raises InputError when the trace could not be written where it is to go.
    """

    def __init__(self, trace: Path) -> None:
        self._failure: NotWrittenError | None = None
        self._is_written = False
        with ExitStack() as stack:
            self._trace = stack.enter_context(OutFile("record", trace, begins_with(b"// apenet ")))
            # In the folder of the trace, where there is room for it: a device's is the host's own.
            folder = None if self._trace.is_stream else trace.parent
            self._file = stack.enter_context(tempfile.TemporaryFile(dir=folder))
            self._closing = stack.pop_all()

    @property
    def environment(self) -> dict[str, str]:
        """By which the ranks find the file."""
        return {"APENET_RECORD": f"/proc/{os.getpid()}/fd/{self._file.fileno()}"}

    def write(self, ranks: int, heading: str) -> tuple[str, ...]:
        """Makes the trace, for `keep` to put in its place. Returns what it could not say, one sentence each."""
        try:
            summary = _core.write_goal(self._file.fileno(), ranks, f"apenet {heading}", self._trace.writable)
        except RuntimeError as error:  # the core's system_error, which begins with the file
            self._failure = self._trace.failed(str(error).removeprefix(f"{self._trace.writable}: "))
            return ()
        self._is_written = True
        warnings = (
            (summary.puts, "remote writes were recorded as messages that nobody waits for"),
            (summary.gets, "remote reads were recorded as a request and an answer"),
            (summary.unreceived, "messages were never received: the trace has receives that nobody waits for"),
            (summary.unclosed, "ranks did not close their endpoint: what they did last may be missing"),
        )
        return tuple(f"recording: {count} {text}" for count, text in warnings if count)

    def keep(self) -> None:
        """Puts the trace in its place, if one was made. Raises NotWrittenError."""
        if self._failure is not None:
            raise self._failure
        if self._is_written:
            self._trace.keep()
