"""Records a run as a trace in the GOAL format: the file that the ranks write to, and what becomes of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from apenet import _core
from apenet.errors import InputError


class Recording:
    """A recording while it is made, in a file without a name: whatever happens, nothing of it is left behind.

    Raises InputError when the trace could not be written where it is to go.
    """

    def __init__(self, trace: Path) -> None:
        self._trace = trace
        folder = trace.parent
        if trace.is_dir() or not folder.is_dir() or not os.access(trace if trace.exists() else folder, os.W_OK):
            raise InputError("record", str(trace), "a file that can be written, in a folder that exists")
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed when this is left)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._file.close()

    @property
    def environment(self) -> dict[str, str]:
        """By which the ranks find the file."""
        return {"APENET_RECORD": f"/proc/{os.getpid()}/fd/{self._file.fileno()}"}

    def write(self, ranks: int, heading: str) -> tuple[str, ...]:
        """Makes the trace of it. Returns what it could not say, one sentence each."""
        try:
            summary = _core.write_goal(self._file.fileno(), ranks, heading, str(self._trace))
        except RuntimeError as error:  # the core's system_error, which begins with the file
            reason = str(error).removeprefix(f"{self._trace}: ")
            raise InputError("record", str(self._trace), f"a file that can be written ({reason})") from error
        warnings = (
            (summary.puts, "remote writes were recorded as messages that nobody waits for"),
            (summary.gets, "remote reads were recorded as a request and an answer"),
            (summary.unreceived, "messages were never received: the trace has receives that nobody waits for"),
            (summary.unclosed, "ranks did not close their endpoint: what they did last may be missing"),
        )
        return tuple(f"recording: {count} {text}" for count, text in warnings if count)
