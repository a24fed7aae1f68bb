"""A file that the core writes while a run lasts, and that is complete if its end stands in it."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from apenet.base.outfiles import Held, OutFile, begins_with
from apenet.base.packing import is_packed, pack, packed


class CoreFile(Held):
    """The core writes to `writable`, and `keep` puts the file at its place.

    It is compressed by gzip if its name ends in .gz, with the same bytes each time. A file that does not begin with
    `heading` is of other origin, and is not overwritten.
    """

    def __init__(self, option: str, path: Path, heading: bytes, end: bytes) -> None:
        packs = is_packed(option, path)
        is_ours = begins_with(heading)
        self._end = end
        with ExitStack() as stack:
            self._file = stack.enter_context(OutFile(option, path, packed(is_ours) if packs else is_ours))
            self._plain: BinaryIO | None = stack.enter_context(tempfile.TemporaryFile()) if packs else None
            self._closing = stack.pop_all()

    @property
    def writable(self) -> str:
        """A path under which it can be written, by this process."""
        return self._file.writable if self._plain is None else f"/proc/{os.getpid()}/fd/{self._plain.fileno()}"

    def keep(self) -> None:
        """Puts the file at its path if it is complete. Raises NotWrittenError."""
        if self._plain is None:
            self._file.keep(self._end)
            return
        size = self._plain.seek(0, 2)
        self._plain.seek(max(0, size - len(self._end)))
        if self._plain.read() != self._end:
            raise self._file.failed("it ends too early")
        try:
            pack(self._plain, self._file.writable)
        except OSError as error:
            raise self._file.failed(error.strerror or str(error)) from error
        self._file.keep()
