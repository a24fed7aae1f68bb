"""Pictures as files: what a later call may replace, and the same bytes for the same picture, as PNG and SVG."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apenet.base.errors import InputError
from apenet.base.outfiles import OutFile, contains

# The mark in a picture by which a later call recognises that it may replace it.
FORMATS: dict[str, tuple[dict[str, str | None], bytes]] = {
    ".png": ({"Software": "apenet"}, b"Software\0apenet"),
    ".svg": ({"Creator": "apenet", "Date": None}, b"<dc:title>apenet</dc:title>"),
    ".pdf": ({"Creator": "apenet", "CreationDate": None}, b"/Creator (apenet)"),
}
_DPI = 150
FIGURE = "--figure"
"""The option of commands that draw their result."""


def check_picture_file(option: str, path: Path) -> None:
    """Raises InputError for a file name to which no picture can be written, before any computation."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(option, path, "a file that ends in " + ", ".join(FORMATS))
    _place(option, path).close()


def write_picture(option: str, path: Path, draw: Callable[[Any], Any]) -> None:
    """Writes the figure that `draw` makes with matplotlib's pyplot. Raises NotWrittenError."""
    import matplotlib as mpl  # noqa: PLC0415 (slow import)

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    form = path.suffix.lower()
    with mpl.rc_context({"svg.hashsalt": "apenet", "font.size": 9}):
        figure = draw(plt)
        drawn = io.BytesIO()
        figure.savefig(drawn, format=form[1:], dpi=_DPI, metadata=FORMATS[form][0])
        plt.close(figure)
    with _place(option, path) as file:
        file.write(drawn.getvalue())
        file.keep()


def _place(option: str, path: Path) -> OutFile:
    return OutFile(option, path, contains(FORMATS[path.suffix.lower()][1]))
