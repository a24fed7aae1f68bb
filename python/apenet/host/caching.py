"""The user's cache folder: compiled programs, and measurements that take long."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

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


_MANIFEST = "digests.json"


def seal(file: Path) -> None:
    """Appends the digest of a program or library, which the system ignores there, so that `is_whole` can check it."""
    content = file.read_bytes()
    with file.open("ab") as opened:
        opened.write(hashlib.sha256(content).digest())


def is_whole(file: Path) -> bool:
    """Whether the file ends with its digest: it was built completely, and nothing has changed it since."""
    try:
        content = file.read_bytes()
    except OSError:
        return False
    size = hashlib.sha256().digest_size
    return len(content) > size and hashlib.sha256(content[:-size]).digest() == content[-size:]


def seal_folder(folder: Path) -> None:
    """Writes the digests of a folder's files into a file beside them."""
    (folder / _MANIFEST).write_text(json.dumps(_digests(folder)), encoding="utf-8")


def is_whole_folder(folder: Path) -> bool:
    """As `is_whole`, for the files of a folder."""
    try:
        known = json.loads((folder / _MANIFEST).read_bytes())
        return isinstance(known, dict) and known == _digests(folder)
    except (OSError, ValueError):
        return False


def _digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.iterdir() if path.name != _MANIFEST)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def write_sealed_json(file: Path, content: dict[str, Any]) -> None:
    """Replaces a file of values at once, with their digest."""
    text = json.dumps(content)
    sealed = {"digest": hashlib.sha256(text.encode()).hexdigest(), "content": content}
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    partial.write_text(json.dumps(sealed), encoding="utf-8")
    partial.replace(file)


def read_sealed_json(file: Path) -> dict[str, Any]:
    """The content that `write_sealed_json` wrote; nothing if there is no such file, or a damaged one."""
    try:
        sealed = json.loads(file.read_bytes())
        content = sealed["content"]
        is_same = hashlib.sha256(json.dumps(content).encode()).hexdigest() == sealed["digest"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return content if is_same and isinstance(content, dict) else {}


def _folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path(os.path.expanduser("~")) / ".cache") / "apenet"  # noqa: PTH111
