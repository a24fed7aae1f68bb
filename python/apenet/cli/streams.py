"""The standard streams of the command, which may be closed or full."""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from apenet.base.errors import ApenetError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_BROKEN_PIPE_STATUS = 141
_LOST_STATUS = 2


class StreamError(ApenetError):
    """The result could not be printed."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output: {error.strerror}")
        # Whoever closes a pipe wants no more, and no message either.
        self.is_to_be_said = error.errno != errno.EPIPE
        self.status = _LOST_STATUS if self.is_to_be_said else _BROKEN_PIPE_STATUS


class _Output(io.FileIO):
    def write(self, content: ReadableBuffer, /) -> int:
        try:
            return super().write(content)
        except OSError as error:
            raise StreamError(error) from error


class _Messages(io.FileIO):
    """What cannot be said is not said: the status says it."""

    def write(self, content: ReadableBuffer, /) -> int:
        try:
            return super().write(content)
        except OSError:
            return len(memoryview(content))


def prepare() -> None:
    """Opens streams that are closed, so that no file of this command takes their numbers, and watches over them.

    Input is then empty, and what is printed fails as on a closed stream.
    """
    for number, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            _put(os.open(os.devnull, mode), number)
    sys.stdout = _watched(sys.stdout, _Output(1, "wb", closefd=False))
    sys.stderr = _watched(sys.stderr, _Messages(2, "wb", closefd=False))


def _watched(given: TextIO | None, raw: io.FileIO) -> TextIO:
    if given is not None:
        given.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=given.encoding if given is not None else "utf-8",
        errors="backslashreplace",  # names of files are any bytes
        line_buffering=raw.isatty() or raw.fileno() == 2,  # noqa: PLR2004 (standard error)
    )


def flush() -> None:
    """Prints what is left. Raises StreamError."""
    sys.stdout.flush()


def give_up() -> None:
    """What is left goes nowhere, instead of failing once more when the interpreter ends."""
    _put(os.open(os.devnull, os.O_WRONLY), 1)


def say(text: str) -> None:
    """Lines on standard error."""
    for line in text.splitlines():
        sys.stderr.write(f"apenet: {line}\n")


def _put(descriptor: int, number: int) -> None:
    if descriptor != number:
        os.dup2(descriptor, number)
        os.close(descriptor)
