"""The numbers of a page as pandas frames."""

from __future__ import annotations

from typing import Any

from apenet.base.frames import pandas_for


def frames(content: dict[str, Any]) -> dict[str, Any]:
    """Frames of what `explain` returns: alternatives, waits, path, pairs, links, calls, ranks; those that are known.

    Raises InputError if pandas is not installed.
    """
    pd = pandas_for("frames")
    found = {
        "ranks": pd.DataFrame(content["rank_times"]).rename_axis("rank"),
        "links": pd.DataFrame(content["links"], columns=["link", "utilisation", "wire_bytes", "packets"]),
    }
    if "replay" not in content:
        return found
    pairs = ["sender", "receiver", "messages", "bytes", "hops"]
    rows = content["pairs"]
    return {
        **found,
        "alternatives": pd.DataFrame([_flat(one) for one in content["alternatives"]]),
        "waits": pd.DataFrame(content["waits"]["calls"], columns=["call", "cause", "us"]),
        "path": pd.DataFrame(content["path"]["composition"], columns=["kind", "us"]),
        "pairs": pd.DataFrame(rows, columns=pairs[: len(rows[0])] if rows else pairs[:4]),
        "calls": pd.DataFrame(content["calls"], columns=["call", "operations", "waiting_us", "software_us"]),
    }


def _flat(one: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in one.items() if key not in ("settings", "nodes")}
