"""Writes all files of this package's users.

An existing file is replaced only if this package wrote it, and nothing is written through a symbolic link. A file has
no name until it is complete and then gets its name atomically. A full disk, a failure or a kill therefore leaves the
previous file unchanged, and no temporary file.
"""

from __future__ import annotations

import errno
import fcntl
import io
import json
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

from apenet.base.errors import InputError, NotWrittenError

IsOurs = Callable[[BinaryIO], bool]
"""Whether a file of this content was written by this package."""

_STREAM = re.compile(r"/dev/(?:stdout|stderr)|/(?:dev|proc/self)/fd/[0-9]+")
_NO_UNNAMED_FILES = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)
_NO_LINKS = (errno.ENOENT, errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP)
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.EBADF, errno.EINVAL, errno.ENOSYS)
_NEW = os.O_RDWR | os.O_CLOEXEC
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MOST_SEARCHED_BYTES = 2**26
_PART_BYTES = 2**20
_PROBE_BYTES = 2**16  # more than the rest of a file system block


def begins_with(heading: bytes) -> IsOurs:
    """Recognises files by their first line."""
    return lambda file: file.read(len(heading)) == heading


def contains(mark: bytes) -> IsOurs:
    """Recognises files by a mark anywhere in them."""
    return lambda file: mark in file.read(_MOST_SEARCHED_BYTES)


def holds_json(is_known: Callable[[AbstractSet[str]], bool]) -> IsOurs:
    """Recognises JSON files by the keys of their object."""

    def is_ours(file: BinaryIO) -> bool:
        try:
            content = json.loads(file.read(_MOST_SEARCHED_BYTES))
        except (ValueError, RecursionError):
            return False
        return isinstance(content, dict) and is_known(content.keys())

    return is_ours


Named = tuple[str, Path | None]
"""The name of an option in errors, and its path."""


def keep_apart(outputs: Iterable[Named], others: Iterable[Named]) -> None:
    """Checks that no output is also an input or another output, in any spelling. Raises InputError."""
    seen: dict[object, str] = {}
    for name, path in others:
        for key in _identities(path):
            seen.setdefault(key, name)
    for name, path in outputs:
        for key in _identities(path):
            other = seen.setdefault(key, name)
            if other != name:
                raise InputError(name, path, f"another file than that of {other}")


def _identities(path: Path | None) -> list[object]:
    """A key that is equal for all spellings of one file; None for devices and pipes, which may be shared."""
    if path is None or not str(path):
        return []
    try:
        status = path.stat()
    except OSError:
        return [os.path.realpath(path)]
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return []
    return [os.path.realpath(path), (status.st_dev, status.st_ino)]


class Held:
    """A context that holds files open. Closing it frees them; what was not kept is gone."""

    _closing: ExitStack

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Frees what is held."""
        self._closing.close()


class OutFile(Held):
    """A file that is to be written: its place is checked at once, and filled by `keep`.

    Writers write to the path `writable`. `option` is its name in errors, `is_ours` recognises files that may be
    replaced. Devices and standard streams (/dev/null, /dev/stdout) are written when the content is complete.
    """

    def __init__(self, option: str, path: Path, is_ours: IsOurs) -> None:
        self._option = option
        self._path = path
        self._is_ours = is_ours
        self._closing = ExitStack()
        self.is_stream = False
        if not path.name:
            raise self._refused("the name of a file")
        try:
            self._folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            raise self._refused("a file that can be written, in a folder that exists") from None
        except OSError as error:
            raise self._refused(_writable(error)) from error
        self._closing.callback(os.close, self._folder)
        try:
            self.is_stream = _STREAM.fullmatch(str(path)) is not None or self._check_way()
            self._file = self._closing.enter_context(
                tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (closed with the rest)
                if self.is_stream
                else _unnamed(path.parent, self._folder)
            )
        except OSError as error:
            self.close()
            raise self._refused(_writable(error)) from error
        except InputError:
            self.close()
            raise

    @property
    def writable(self) -> str:
        """A path under which the file can be opened for writing until it is kept, by this process and its children."""
        return f"/proc/{os.getpid()}/fd/{self._file.fileno()}"

    def write(self, content: bytes) -> None:
        """Writes the whole content, for a file that is made in memory. Raises NotWrittenError."""
        try:
            _write(self._file, content)
        except OSError as error:
            raise self.failed(reason_of(error)) from error

    def keep(self, ending: bytes = b"") -> None:
        """Puts the file at its path if it ends with `ending`. Raises NotWrittenError."""
        try:
            self._check_end(ending)
            if self.is_stream:
                self._copy_to_stream()
            else:
                self._check_way()
                _place(self._file, self._folder, self._path.name)
        except OSError as error:
            raise self.failed(reason_of(error)) from error

    def failed(self, reason: str) -> NotWrittenError:
        """The error for a file that could not be written."""
        return NotWrittenError(self._option, self._path, reason)

    def _check_end(self, ending: bytes) -> None:
        """Raises OSError if the file is incomplete, with the reason why it cannot grow."""
        number = self._file.fileno()
        size = os.fstat(number).st_size
        if size >= len(ending) and os.pread(number, len(ending), size - len(ending)) == ending:
            return
        os.pwrite(number, bytes(_PROBE_BYTES), size)
        raise OSError(errno.EIO, "it ends too early")

    def _refused(self, expected: str) -> InputError:
        return InputError(self._option, self._path, expected)

    def _check_way(self) -> bool:
        """Raises InputError for an existing file that must be kept. Returns whether the path is a device."""
        mode = _mode(self._path.name, self._folder)
        if mode is not None and stat.S_ISCHR(mode):
            return True
        kind = _not_a_file(mode)
        if kind is not None:
            raise self._refused(f"a file, not {kind}")
        if mode is not None:
            if not os.access(self._path.name, os.W_OK, dir_fd=self._folder):
                raise self._refused("a file that can be written (Permission denied)")
            if not _may_replace(self._path.name, self._folder, self._is_ours):
                raise self._refused("a new file, or one that apenet wrote: this one is not apenet's, and is kept")
        return False

    def _copy_to_stream(self) -> None:
        sys.stdout.flush()
        self._file.seek(0)
        # Duplicates the descriptor: opening the path again would write a file from its beginning.
        number = {"/dev/stdout": "1", "/dev/stderr": "2"}.get(str(self._path), self._path.name)
        if _STREAM.fullmatch(str(self._path)):
            descriptor = os.dup(int(number))
        else:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "wb", buffering=0) as stream:
            while part := self._file.read(_PART_BYTES):
                _write(stream, part)


@dataclass(frozen=True)
class FolderKind:
    """Recognises a folder that apenet has written: by a marker file, or, without a marker, by each file itself."""

    marker: str | None
    is_ours: IsOurs
    described: str
    """The kind of result in error messages, such as `run`."""


class OutFolder(Held):
    """A folder that is filled by this process alone as long as this is open: another one is refused.

    `names` are the files that may be written. Raises InputError if one of them exists in a folder without our marker,
    or is not a regular file. Files with other names are not touched.
    """

    def __init__(self, option: str, path: Path, kind: FolderKind, names: Iterable[str]) -> None:
        self._option = option
        self.path = path
        self._closing = ExitStack()
        self._descriptor = self._open()
        self._closing.callback(os.close, self._descriptor)
        try:
            self._lock()
            self._check_way(kind, names)
            _unnamed(path, self._descriptor).close()  # checks that files can be created
        except OSError as error:
            self.close()
            raise self._refused(f"a folder that can be written ({error.strerror})") from error
        except InputError:
            self.close()
            raise

    def remove(self, names: Sequence[str]) -> None:
        """Removes files that this package wrote."""
        for name in names:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._descriptor)

    def keep(self, contents: Mapping[str, bytes]) -> None:
        """Writes files, all of them or none. Raises NotWrittenError."""
        placed: list[str] = []
        with ExitStack() as stack:
            try:
                files = {}
                for name, content in contents.items():
                    files[name] = stack.enter_context(_unnamed(self.path, self._descriptor))
                    _write(files[name], content)
                for name, file in files.items():
                    _place(file, self._descriptor, name)
                    placed.append(name)
            except OSError as error:
                self.remove(placed)
                raise NotWrittenError(self._option, self.path, reason_of(error)) from error

    def check_room(self, lost: str) -> None:
        """Raises NotWrittenError, with what is `lost`, if files in the folder cannot grow."""
        try:
            with _unnamed(self.path, self._descriptor) as file:
                _write(file, bytes(_PROBE_BYTES))
        except OSError as error:
            raise NotWrittenError(self._option, self.path, f"{lost}: {reason_of(error)}") from error

    def _refused(self, expected: str) -> InputError:
        return InputError(self._option, self.path, expected)

    def _open(self) -> int:
        # pathlib does not distinguish an empty path from ".": callers check for an empty option before.
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            return os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if os.path.islink(self.path):  # noqa: PTH114 (which raises for names that are too long)
                raise self._refused("a folder itself, not a symbolic link") from error
            reason = "it is a file" if isinstance(error, FileExistsError) else error.strerror
            raise self._refused(f"a folder that can be written ({reason})") from error

    def _lock(self) -> None:
        """Locks the folder itself: the lock ends with this process and leaves no file."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._refused("a folder that no other command writes to now: one does") from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:  # file systems without locks, such as some network file systems
                raise

    def _check_way(self, kind: FolderKind, names: Iterable[str]) -> None:
        markers = [] if kind.marker is None else [kind.marker]
        modes = {name: _mode(name, self._descriptor) for name in (*markers, *names)}
        for name, mode in modes.items():
            found = _not_a_file(mode)
            if found is not None:
                raise self._refused(f"a folder of files: {name} in it is {found}")
        marker = kind.marker
        if marker is not None and modes[marker] is not None and _is_ours(marker, self._descriptor, kind.is_ours):
            return
        for name, mode in modes.items():
            is_ours = kind.is_ours if marker is None else _never
            if mode is not None and not _may_replace(name, self._descriptor, is_ours):
                raise self._refused(f"a folder of {kind.described}s: {name} is there, and of no {kind.described}")


def _mode(name: str, folder: int) -> int | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def _not_a_file(mode: int | None) -> str | None:
    """The kind of object if it is not a regular file, otherwise None."""
    if mode is None or stat.S_ISREG(mode):
        return None
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    if stat.S_ISDIR(mode):
        return "a folder"
    return "a named pipe" if stat.S_ISFIFO(mode) else "a device or a socket"


def _may_replace(name: str, folder: int, is_ours: IsOurs) -> bool:
    """Whether this file is empty or was written by this package."""
    return os.stat(name, dir_fd=folder).st_size == 0 or _is_ours(name, folder, is_ours)


def _is_ours(name: str, folder: int, is_ours: IsOurs) -> bool:
    """Whether this package wrote the file; False if the file cannot be read."""
    try:
        descriptor = os.open(name, _LOOK, dir_fd=folder)
    except OSError:
        return False
    with os.fdopen(descriptor, "rb") as file:
        return is_ours(file)


def _never(_file: BinaryIO) -> bool:
    return False


def _write(file: io.RawIOBase, content: bytes) -> None:
    """Writes all of it. The file is unbuffered, because a buffer would fail again when it is closed."""
    left = memoryview(content)
    while left:
        left = left[file.write(left) or 0 :]


def _unnamed(folder: Path, descriptor: int) -> io.RawIOBase:
    """A new file in this folder without a name, which therefore ends with this process."""
    try:
        return os.fdopen(os.open(".", _NEW | os.O_TMPFILE, 0o666, dir_fd=descriptor), "w+b", buffering=0)
    except OSError as error:
        if error.errno not in _NO_UNNAMED_FILES:
            raise
        return tempfile.TemporaryFile(dir=folder, buffering=0)


def _place(file: io.RawIOBase, folder: int, name: str) -> None:
    """Gives an unnamed file its name, replacing an existing file."""
    beside = f".apenet-{secrets.token_hex(8)}"
    source = f"/proc/self/fd/{file.fileno()}"
    try:
        try:
            os.link(source, name, dst_dir_fd=folder)
            return
        except FileExistsError:
            os.link(source, beside, dst_dir_fd=folder)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _copy(file, folder, beside)
    try:
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(beside, dir_fd=folder)
        raise


def _copy(file: io.RawIOBase, folder: int, name: str) -> None:
    """Copies instead, on file systems that cannot give an unnamed file a name."""
    copy = os.open(name, _NEW | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666, dir_fd=folder)
    try:
        file.seek(0)
        with os.fdopen(copy, "wb") as target:
            shutil.copyfileobj(file, target)
    except OSError:
        os.unlink(name, dir_fd=folder)
        raise


def reason_of(error: OSError) -> str:
    """The system's reason for the error."""
    return error.strerror or str(error)


def _writable(error: OSError) -> str:
    return f"a file that can be written ({reason_of(error)})"


def given_path(option: str, path: str | Path | None, expected: str) -> Path | None:
    """A path given as an option or argument. Raises InputError for an empty one, which pathlib would take for "."."""
    if path is None:
        return None
    text = os.fspath(path)
    if not text or "\0" in text:
        raise InputError(option, text, expected)
    return Path(text)
