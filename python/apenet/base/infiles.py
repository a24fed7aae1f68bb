"""Reads the files that users name: completely, up to a size limit, and without blocking for ever."""

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
    """The contents of a file, or of a pipe with a writer. Raises UnreadableError, also beyond `most_bytes`."""
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
    """The contents of a text file in UTF-8. Raises UnreadableError."""
    try:
        return read_bytes(path, most_bytes).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableError("not a text") from error


@contextmanager
def opened_file(path: Path) -> Iterator[str]:
    """A name under which an opened regular file can be read again. Raises UnreadableError, also for a pipe."""
    try:
        file = _opened(path)
    except OSError as error:
        raise UnreadableError(error.strerror or str(error)) from error
    with file:
        if not stat.S_ISREG(_mode(file)):
            raise UnreadableError("it is a pipe")
        yield f"/proc/self/fd/{file.fileno()}"


def other_kind(path: Path) -> str | None:
    """The kind of the object at this path if it is not a file; None for a file, or if nothing exists."""
    try:
        return {**_KINDS, stat.S_IFIFO: "a pipe"}.get(stat.S_IFMT(path.stat().st_mode))
    except OSError:
        return None


def printable(path: Path) -> str:
    """A path as text for messages; bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _opened(path: Path) -> BinaryIO:
    """Opens a file or a pipe without waiting for a pipe's writer. Raises UnreadableError for anything else."""
    if not str(path) or "\0" in str(path):
        raise UnreadableError("its name is no name")
    found = _KINDS.get(stat.S_IFMT(path.stat().st_mode))
    if found is not None:
        raise UnreadableError(f"it is {found}")
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb")


def _mode(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_mode


def _first_part(file: BinaryIO) -> bytes:
    """The first bytes of a file; for a pipe, waits until its writer has written."""
    number = file.fileno()
    if not stat.S_ISFIFO(_mode(file)):
        return os.read(number, _STEP_BYTES)
    ready = select.poll()
    ready.register(number, select.POLLIN)
    ready.poll(_WRITER_WAIT_MS)
    try:
        part = os.read(number, _STEP_BYTES)
    except BlockingIOError:  # the pipe has a slow writer
        os.set_blocking(number, True)
        return os.read(number, _STEP_BYTES)
    if not part:
        raise UnreadableError("it is a pipe that nobody writes to")
    os.set_blocking(number, True)
    return part


def _size(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 2**20 else f"{count} bytes"
