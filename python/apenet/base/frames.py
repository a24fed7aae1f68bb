"""pandas, which apenet does without: only those who ask for a frame need it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from apenet.base.errors import InputError


def pandas_for(asked: str) -> Any:  # noqa: ANN401 (pandas is not a dependency)
    """The module. Raises InputError, which names what was asked for, if it is not installed."""
    try:
        return import_module("pandas")
    except ImportError as error:
        raise InputError(asked, "pandas", "an installed pandas: pip install pandas") from error
