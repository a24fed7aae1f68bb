"""Records a run as a GOAL trace: collects what the ranks write, and makes the trace from it."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO, BinaryIO

from apenet import _core
from apenet.base.errors import NotWrittenError
from apenet.base.outfiles import Held, OutFile, begins_with
from apenet.base.packing import is_packed, pack, packed

LACKS = "recording: the trace has MPI's messages alone: it lacks those of "
"""Begins the warning of a run whose recording is not the whole run; the names of the other libraries follow."""


class Recording(Held):
    """A recording while it is made, in a file without a name: whatever happens, nothing of it is left behind.

    The trace is compressed by gzip if its name ends in .gz.
    Raises InputError if the trace cannot be written at its path.
    """

    def __init__(self, trace: Path) -> None:
        self._failure: NotWrittenError | None = None
        self._is_written = False
        with ExitStack() as stack:
            packs = is_packed("record", trace)
            is_ours = begins_with(b"// apenet ")
            self._trace = stack.enter_context(OutFile("record", trace, packed(is_ours) if packs else is_ours))
            # In the folder of the trace, which has room for it. If the trace goes to a device, the system's temporary
            # folder.
            folder = None if self._trace.is_stream else trace.parent
            self._file = stack.enter_context(tempfile.TemporaryFile(dir=folder))
            self._text: BinaryIO | None = stack.enter_context(tempfile.TemporaryFile(dir=folder)) if packs else None
            self._closing = stack.pop_all()

    @property
    def file(self) -> IO[bytes]:
        """What the ranks have written."""
        return self._file

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which the ranks find the file."""
        return {"APENET_RECORD": _core.descriptor_path(self._file.fileno())}

    def write(self, ranks: int, heading: str, *, is_complete: bool) -> tuple[str, ...]:
        """Makes the trace that `keep` puts at its path. Returns what the trace cannot express, one sentence each.

        The trace of a run that is not complete has what each rank had begun when it was stopped.
        """
        try:
            summary = _core.write_goal(self._file.fileno(), ranks, f"apenet {heading}", self._writable)
            if self._text is not None:
                pack(self._text, self._trace.writable)
        except (RuntimeError, OSError) as error:
            os.ftruncate(self._file.fileno(), 0)  # a full disk has room for the other results then
            # The core's system_error has a text that begins with the file.
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self._failure = self._trace.failed(reason.removeprefix(f"{self._writable}: "))
            return ()
        self._is_written = True
        lacking = (LACKS + ", ".join(summary.unrecorded),) if summary.unrecorded else ()
        if not is_complete:
            return ("recording: the run did not complete: the trace ends where it was stopped", *lacking)
        warnings = (
            (summary.puts, "remote writes were recorded as messages for which no operation waits"),
            (summary.gets, "remote reads were recorded as a request and an answer"),
            (summary.unreceived, "messages were never received: the trace has receives for which no operation waits"),
            (summary.unclosed, "ranks did not close their endpoint: their last operations may be missing"),
        )
        return (*(f"recording: {count} {text}" for count, text in warnings if count), *lacking)

    @property
    def _writable(self) -> str:
        """A path under which the core writes the trace."""
        return self._trace.writable if self._text is None else f"/proc/self/fd/{self._text.fileno()}"

    def keep(self) -> None:
        """Puts the trace at its path, if one was made. Raises NotWrittenError."""
        if self._failure is not None:
            raise self._failure
        if self._is_written:
            self._trace.keep()
