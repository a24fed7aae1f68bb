"""What several test processes of one run share: programs that are compiled once."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def shared_folder(factory: pytest.TempPathFactory, name: str) -> Path:
    """A temporary folder of this test run, the same in all its processes."""
    own = factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / name
    folder.mkdir(exist_ok=True)
    return folder


def make_once(file: Path, make: Callable[[], object]) -> Path:
    """The file, which the first process that asks for it makes; the others wait."""
    with file.with_name(f"{file.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            make()
    return file
