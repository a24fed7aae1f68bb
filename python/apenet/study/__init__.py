"""Sweeps: a command over many machines and settings, its results in one file, and what that file tells."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from apenet.study.study import Study

__all__ = ["study"]


def study(path: str | Path) -> Study:
    """Opens the file that `apenet sweep` has written. `.frame()` gives its results as a pandas frame.

    Raises InputError for a file that is no study, or one of another format.
    """
    from apenet.study.study import Study  # noqa: PLC0415 (slow import: SQLite)

    return Study(path)
