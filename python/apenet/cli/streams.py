"""The command's standard streams, which may be closed or full."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from apenet.base.errors import ApenetError
from apenet.base.escape import escape_text

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_BROKEN_PIPE_STATUS = 141
_LOST_STATUS = 2


class StreamError(ApenetError):
    """The result could not be printed."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output: {error.strerror}")
        # A reader that closes the pipe wants no further output, and no message.
        self.is_to_be_said = error.errno != errno.EPIPE
        self.status = _LOST_STATUS if self.is_to_be_said else _BROKEN_PIPE_STATUS


class _Output(io.FileIO):
    def write(self, content: ReadableBuffer, /) -> int:
        try:
            return super().write(content)
        except OSError as error:
            raise StreamError(error) from error


class _Messages(io.FileIO):
    """Ignores errors: a message that cannot be written is dropped, and only the status tells of the failure."""

    def write(self, content: ReadableBuffer, /) -> int:
        try:
            return super().write(content)
        except OSError:
            return len(memoryview(content))


def prepare() -> None:
    """Opens closed standard streams, so that no other file gets their descriptors, and wraps the output streams.

    Input is then empty, and printing fails as on a closed stream.
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
        errors="backslashreplace",  # file names may be any bytes
        line_buffering=raw.isatty() or raw.fileno() == 2,  # noqa: PLR2004 (standard error)
    )


@contextmanager
def programs_on_errors() -> Iterator[None]:
    """Standard output goes to standard error meanwhile: that of a program, when the result is to stand alone."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        _put(kept, 1)


def flush() -> None:
    """Flushes standard output. Raises StreamError."""
    sys.stdout.flush()


def give_up() -> None:
    """Redirects the rest to /dev/null, so that it does not fail again when the interpreter exits."""
    _put(os.open(os.devnull, os.O_WRONLY), 1)


def say(text: str) -> None:
    """Writes lines to standard error, control characters escaped."""
    for line in escape_text(text).rstrip("\n").split("\n"):
        sys.stderr.write(f"apenet: {line}\n")


def _put(descriptor: int, number: int) -> None:
    if descriptor != number:
        os.dup2(descriptor, number)
        os.close(descriptor)
