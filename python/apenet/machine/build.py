"""The build of the package, which decides results with a machine's numbers."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from apenet import _core


@cache
def build_digest() -> str:
    """A digest of the compiled core and the libraries beside it."""
    digest = hashlib.sha256()
    for path in sorted(Path(_core.__file__).parent.rglob("*.so*")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
