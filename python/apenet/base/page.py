"""Self-contained pages: a template with style, scripts and data in it, which loads nothing and sends nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

_SHARED = "apenet.base"


def page(
    package: str,
    template: str,
    title: str,
    scripts: Sequence[str],
    content: dict[str, Any],
    libraries: dict[str, str] | None = None,
) -> str:
    """The page that a package has in its folder `page`: its template, filled.

    Marks in the template: /*HEAD*/ (base/page/head.html), /*SCRIPT*/, /*DATA*/, and one for each of `libraries`.
    Scripts that the package does not have are those that all pages share (base/page). The package may add an extra.css.
    """
    text = _read(package, template).replace("/*HEAD*/\n", _read(_SHARED, "head.html"), 1)
    # "</" would end the script element with the data, and "<!--" would hide its end.
    data = json.dumps(content, allow_nan=False).replace("<", "\\u003c")
    script = "\n".join(_read(package, name) for name in ("common.js", *scripts))
    style = _read(_SHARED, "style.css")
    extra = resources.files(package).joinpath("page", "extra.css")
    if extra.is_file():
        style += extra.read_text(encoding="utf-8")
    marks = {"TITLE": title, "STYLE": style, "SCRIPT": script, **(libraries or {}), "DATA": data}
    parts = []
    while marks:
        places = [(text.find(f"/*{name}*/"), name) for name in marks]
        at, name = min((place for place in places if place[0] >= 0), default=(-1, ""))
        if at < 0:
            break
        parts += [text[:at], marks.pop(name)]
        text = text[at + len(name) + 4 :]
    return "".join([*parts, text])


def _read(package: str, name: str) -> str:
    own = resources.files(package).joinpath("page", name)
    chosen = own if own.is_file() else resources.files(_SHARED).joinpath("page", name)
    return chosen.read_text(encoding="utf-8")
