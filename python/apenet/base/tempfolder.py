"""Folders for temporary files that end with the process that made them, at the latest when the next one is made.

The maker locks its folder. The lock is free when the maker has ended, in any way, SIGKILL included; the folder is then
removed by the next process that makes or removes one.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NEW = "apenet-new-"
_NAME = "apenet-session-"
_FOUND = re.compile(f"{_NAME}[A-Za-z0-9_]+")


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder, which is removed with its content at the end."""
    remove_abandoned_folders()
    made = Path(tempfile.mkdtemp(prefix=_NEW))
    # It gets the name by which others find it once it is locked.
    lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            made = made.rename(made.with_name(_NAME + made.name.removeprefix(_NEW)))
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(lock)


def remove_abandoned_folders() -> None:
    """Removes the folders whose makers have ended without doing so."""
    with suppress(OSError):
        for entry in list(os.scandir(tempfile.gettempdir())):
            if _FOUND.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                _remove_abandoned(entry.path)


def _remove_abandoned(path: str) -> None:
    try:
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if os.fstat(lock).st_uid == os.geteuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
    except OSError:  # its maker lives
        pass
    finally:
        os.close(lock)
