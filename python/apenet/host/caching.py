"""The user's cache folder: compiled programs, and measurements that take long."""

from __future__ import annotations

import os
from pathlib import Path

from apenet.base.errors import HostError


def cached(name: str) -> Path:
    """The path of a file in the cache, which may not exist."""
    return _folder() / name


def make_cache() -> None:
    """Makes the folder if there is none. Raises HostError if it cannot be written."""
    cache = _folder()
    reason = "" if cache.is_absolute() else "this user has no home folder"
    try:
        if not reason:
            cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        reason = f"{error.strerror}"
    if not reason and not os.access(cache, os.W_OK):
        reason = "cannot be written"
    if reason:
        raise HostError(f"{cache}: {reason}: a cache is kept there; name another folder by XDG_CACHE_HOME")


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path(os.path.expanduser("~")) / ".cache") / "apenet"  # noqa: PTH111
