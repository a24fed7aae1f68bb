"""A machine as Python shows it: some lines of text, or a table in a notebook."""

from __future__ import annotations

import html
from collections.abc import Sequence

from apenet.base.escape import escape_line

_MOST_LISTED = 2
_WIDTH = 100
Rows = Sequence[tuple[str, str]]


def text_of(name: str, rows: Rows) -> str:
    """A line for the name and one for each row, of at most 100 characters."""
    lines = [f"Machine {name}", *(f"  {key}: {escape_line(value)}" for key, value in rows)]
    return "\n".join(line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..." for line in lines)


def html_of(name: str, rows: Rows) -> str:
    """A table for notebooks. Names and texts of the file are escaped."""
    left = "style='text-align:left'"
    cells = "".join(
        f"<tr><th {left}>{html.escape(key)}</th><td {left}>{html.escape(escape_line(value))}</td></tr>"
        for key, value in rows
    )
    return f"<table><caption>Machine {html.escape(name)}</caption>{cells}</table>"


def listed(texts: Sequence[str]) -> str:
    """The first texts, and how many more there are."""
    more = len(texts) - _MOST_LISTED
    return "; ".join(texts[:_MOST_LISTED]) + (f"; and {more} more" if more > 0 else "")
