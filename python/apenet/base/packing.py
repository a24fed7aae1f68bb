"""Output files packed by gzip because their names end in .gz, with the same bytes each time."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import BinaryIO

from apenet.base.errors import InputError
from apenet.base.outfiles import IsOurs

_OTHERS = (".zst", ".xz", ".bz2", ".zip")
_GZIP = b"\x1f\x8b"
_LEVEL = 6


def is_packed(option: str, path: Path) -> bool:
    """Whether the file of this name is to be packed. Raises InputError for the ending of another packer."""
    if path.suffix in _OTHERS:
        raise InputError(option, path, "a name that ends in .gz for a compressed file, or without such an ending")
    return path.suffix == ".gz"


def packed(is_ours: IsOurs) -> IsOurs:
    """Recognises packed files by what is in them."""

    def unpacks_to_ours(file: BinaryIO) -> bool:
        if file.read(len(_GZIP)) != _GZIP:
            return False
        file.seek(0)
        try:
            return is_ours(gzip.GzipFile(fileobj=file))  # type: ignore[arg-type]
        except (OSError, EOFError):
            return False

    return unpacks_to_ours


def pack(content: BinaryIO, path: str) -> None:
    """Packs a file, from its beginning, into another one. Raises OSError."""
    content.seek(0)
    with Path(path).open("wb") as raw, gzip.GzipFile("", "wb", _LEVEL, raw, mtime=0) as target:
        shutil.copyfileobj(content, target)
