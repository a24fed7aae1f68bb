"""Reads the files that users name: completely, up to a size limit, and without blocking for ever.

A file that gzip has packed is read as what is in it, within the same limit. Formats of other programs are refused with
their names (foreign.py).
"""

from __future__ import annotations

import json
import os
import select
import stat
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from apenet.base.escape import escape_line
from apenet.base.foreign import HEAD_BYTES, recognise_bytes, recognise_markup

_STEP_BYTES = 2**20
_GZIP = b"\x1f\x8b"
_GZIP_FORM = 31  # zlib's form with gzip's header and checksum
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


class TooLargeError(UnreadableError):
    """The file is larger than the limit of its kind."""


def read_bytes(path: Path, most_bytes: int) -> bytes:
    """The contents of a file, or of a pipe with a writer. Raises UnreadableError, also beyond `most_bytes`."""
    try:
        with _opened(path) as file:
            parts = _parts(file, most_bytes)
            head = next(parts, b"")
            if head.startswith(_GZIP):
                return b"".join(_unpacked(_chain(head, parts), most_bytes))
            _refuse_foreign(head)
            return b"".join(_chain(head, parts))
    except OSError as error:
        raise UnreadableError(error.strerror or str(error)) from error


def read_text(path: Path, most_bytes: int) -> str:
    """The contents of a text file in UTF-8, without a byte-order mark. Raises UnreadableError."""
    content = read_bytes(path, most_bytes)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        raise UnreadableError(f"not a text in UTF-8: line {line} has the byte 0x{byte:02x}") from error
    if "\0" in text:
        raise UnreadableError("not a text: it has bytes of zero")
    found = recognise_markup(text)
    if found is not None:
        raise UnreadableError(str(found))
    return text


def read_json(path: Path, most_bytes: int) -> Any:  # noqa: ANN401 (whatever the file holds)
    """What a JSON file holds. Raises UnreadableError."""
    text = read_text(path, most_bytes)
    try:
        return json.loads(text)
    except ValueError as error:
        raise UnreadableError(f"it is no complete JSON: {error}") from error
    except RecursionError as error:
        raise UnreadableError("its brackets are too deep for JSON") from error


@contextmanager
def opened_file(path: Path, most_unpacked_bytes: int) -> Iterator[str]:
    """A name under which an opened regular file can be read again. Raises UnreadableError, also for a pipe.

    What gzip has packed is unpacked to a temporary file first, up to `most_unpacked_bytes`.
    """
    with ExitStack() as stack:
        try:
            file = stack.enter_context(_opened(path))
            if not stat.S_ISREG(_mode(file)):
                raise UnreadableError("it is a pipe")
            head = os.pread(file.fileno(), HEAD_BYTES, 0)
            if head.startswith(_GZIP):
                unpacked = stack.enter_context(tempfile.TemporaryFile())
                for part in _unpacked(iter(lambda: os.read(file.fileno(), _STEP_BYTES), b""), most_unpacked_bytes):
                    unpacked.write(part)
                unpacked.flush()
                file, head = unpacked, os.pread(unpacked.fileno(), HEAD_BYTES, 0)
            _refuse_foreign(head)
        except OSError as error:
            raise UnreadableError(error.strerror or str(error)) from error
        yield f"/proc/self/fd/{file.fileno()}"


def other_kind(path: Path) -> str | None:
    """The kind of the object at this path if it is not a file; None for a file, or if nothing exists."""
    try:
        return {**_KINDS, stat.S_IFIFO: "a pipe"}.get(stat.S_IFMT(path.stat().st_mode))
    except OSError:
        return None


def printable(path: Path) -> str:
    """A path as text for messages; control characters and bytes that are not UTF-8 are escaped."""
    return escape_line(str(path))


def _opened(path: Path) -> BinaryIO:
    """Opens a file or a pipe without waiting for a pipe's writer. Raises UnreadableError for anything else."""
    if not str(path) or "\0" in str(path):
        raise UnreadableError("its name is no name")
    found = _KINDS.get(stat.S_IFMT(path.stat().st_mode))
    if found is not None:
        raise UnreadableError(f"it is {found}")
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC), "rb")


def _parts(file: BinaryIO, most_bytes: int) -> Iterator[bytes]:
    """The contents of an opened file in pieces, the first of at least HEAD_BYTES if the file has as many."""
    part = _first_part(file)
    length = 0
    while part:
        length += len(part)
        if length > most_bytes:
            raise TooLargeError(f"more than {_size(most_bytes)}")
        if length == len(part):
            while len(part) < HEAD_BYTES and (more := os.read(file.fileno(), _STEP_BYTES)):
                part += more
                length += len(more)
        yield part
        part = os.read(file.fileno(), _STEP_BYTES)


def _chain(head: bytes, rest: Iterable[bytes]) -> Iterator[bytes]:
    yield head
    yield from rest


def _unpacked(parts: Iterable[bytes], most_bytes: int) -> Iterator[bytes]:
    """The unpacked content of these gzip bytes, in pieces. Raises UnreadableError, also beyond the limit."""
    unpacker = zlib.decompressobj(wbits=_GZIP_FORM)
    length = 0
    try:
        for part in parts:
            left, is_full = part, False
            while left or is_full:
                if unpacker.eof:  # several packed files, one after another
                    unpacker = zlib.decompressobj(wbits=_GZIP_FORM)
                piece = unpacker.decompress(left, _STEP_BYTES)
                is_full = len(piece) == _STEP_BYTES and not unpacker.eof
                left = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
                if not length:
                    _refuse_foreign(piece)
                length += len(piece)
                if length > most_bytes:
                    raise TooLargeError(f"packed by gzip, and more than {_size(most_bytes)} unpacked")
                yield piece
    except zlib.error as error:
        raise UnreadableError(f"packed by gzip, and damaged ({error})") from error
    if not unpacker.eof:
        raise UnreadableError("packed by gzip, and cut off")


def _refuse_foreign(head: bytes) -> None:
    found = recognise_bytes(head)
    if found is not None:
        raise UnreadableError(str(found))


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
