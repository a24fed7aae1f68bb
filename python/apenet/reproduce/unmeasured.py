"""Published results without a simulated counterpart, and unpublished quantities: unmeasured.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any

from apenet.reproduce.rows import Row

NO_MACHINE = "-"
"""The machine name in rows of machines that are not modelled."""


def unmeasured_rows() -> list[Row]:
    """One row each, with the reason."""
    return [
        Row(
            key=entry["key"],
            machine=entry.get("machine", NO_MACHINE),
            test=entry["test"],
            published=entry["published"],
            simulated=None,
            unit=entry.get("unit", ""),
            tolerance_percent=None,
            bound=entry.get("bound"),
            target=entry.get("target", "none"),
            role=None,
            source=entry["source"],
            reason=entry["reason"],
        )
        for entry in _content()["result"]
    ]


def unknown() -> dict[str, list[str]]:
    """Quantities that no publication states, by machine."""
    return dict(_content()["unknown"])


@cache
def _content() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("unmeasured.toml").read_text(encoding="utf-8"))
