"""Every file that a user names to be read: whole, up to a limit, and never for ever."""

from __future__ import annotations

import os
import select
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_STEP_BYTES = 2**20
_WRITER_WAIT_MS = 1000
"""A pipe's writer may come a moment later than its reader."""


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


class UnreadableError(Exception):
    """Why a file cannot be read, in a few words."""


def read_bytes(path: Path, most_bytes: int) -> bytes:
    """The contents of a file, or of a pipe that somebody writes to. Raises UnreadableError, and for more than that."""
    parts: list[bytes] = []
    length = 0
    try:
        with _opened(path) as file:
            part = _first_part(file)
            while part:
                parts.append(part)
                length += len(part)
                if length > most_bytes:
                    raise UnreadableError(f"more than {_size(most_bytes)}")
                part = os.read(file.fileno(), _STEP_BYTES)
    except OSError as error:
        raise UnreadableError(error.strerror or str(error)) from error
    return b"".join(parts)


def read_text(path: Path, most_bytes: int) -> str:
    """The same of a text in UTF-8."""
    try:
        return read_bytes(path, most_bytes).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableError("not a text") from error


@contextmanager
def opened_file(path: Path) -> Iterator[str]:
    """Another name of a file, for readers that need one that is open and no pipe. Raises UnreadableError."""
    try:
        file = _opened(path)
    except OSError as error:
        raise UnreadableError(error.strerror or str(error)) from error
    with file:
        if not stat.S_ISREG(_mode(file)):
            raise UnreadableError("it is a pipe")
        yield f"/proc/self/fd/{file.fileno()}"


def other_kind(path: Path) -> str | None:
    """What is there instead of a file; None when it is one, or nothing is there."""
    try:
        return {**_KINDS, stat.S_IFIFO: "a pipe"}.get(stat.S_IFMT(path.stat().st_mode))
    except OSError:
        return None


def printable(path: Path) -> str:
    """A path as text for messages, whatever its bytes are."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _opened(path: Path) -> BinaryIO:
    """A file that is opened at once, where opening a pipe waits for its writer. Refuses all but files and pipes."""
    if not str(path) or "\0" in str(path):
        raise UnreadableError("its name is no name")
    found = _KINDS.get(stat.S_IFMT(path.stat().st_mode))
    if found is not None:
        raise UnreadableError(f"it is {found}")
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb")


def _mode(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_mode


def _first_part(file: BinaryIO) -> bytes:
    """The beginning of a file; of a pipe, when its writer has said something."""
    number = file.fileno()
    if not stat.S_ISFIFO(_mode(file)):
        return os.read(number, _STEP_BYTES)
    ready = select.poll()
    ready.register(number, select.POLLIN)
    ready.poll(_WRITER_WAIT_MS)
    try:
        part = os.read(number, _STEP_BYTES)
    except BlockingIOError:  # there is a writer, and it is slow
        os.set_blocking(number, True)
        return os.read(number, _STEP_BYTES)
    if not part:
        raise UnreadableError("it is a pipe that nobody writes to")
    os.set_blocking(number, True)
    return part


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 2**20 else f"{count} bytes"
