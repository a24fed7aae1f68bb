"""Published results that `apenet reproduce` does not measure, and unpublished quantities: unmeasured.toml."""

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
            simulated=entry.get("simulated"),
            unit=entry.get("unit", ""),
            tolerance_percent=entry.get("tolerance_percent"),
            bound=entry.get("bound"),
            target=entry.get("target", "none"),
            role=entry.get("role"),
            source=entry["source"],
            reason=entry["reason"],
            command=entry.get("command", ""),
        )
        for entry in _content()["result"]
    ]


def shipped_digests() -> dict[str, str]:
    """For each key whose simulated value comes with the package: the digest of the machine that gave it."""
    return {entry["key"]: entry["machine_digest"] for entry in _content()["result"] if "simulated" in entry}


def unknown() -> dict[str, list[str]]:
    """Quantities that no publication states, by machine."""
    return dict(_content()["unknown"])


@cache
def _content() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("unmeasured.toml").read_text(encoding="utf-8"))
