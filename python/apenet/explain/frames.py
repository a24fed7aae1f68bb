"""The numbers of a page as pandas frames."""

from __future__ import annotations

from typing import Any

from apenet.base.frames import pandas_for


def frames(content: dict[str, Any]) -> dict[str, Any]:
    """Frames of what `explain` returns, as far as it is known.

    Alternatives, waits, stages, path, pairs, links, ports, calls, ranks.

    Raises InputError if pandas is not installed.
    """
    pd = pandas_for("frames")
    found = {
        "ranks": pd.DataFrame(content["rank_times"]).rename_axis("rank"),
        "links": pd.DataFrame(content["links"], columns=["link", "utilisation", "wire_bytes", "packets"]),
        "ports": pd.DataFrame(content["ports"]),
    }
    if "replay" not in content:
        return found
    pairs = ["sender", "receiver", "messages", "bytes", "hops"]
    rows = content["pairs"]
    return {
        **found,
        "alternatives": pd.DataFrame([_flat(one) for one in content["alternatives"]]),
        "waits": pd.DataFrame(content["waits"]["calls"], columns=["call", "place", "cause", "us"]),
        "stages": pd.DataFrame(content["waits"]["stages"], columns=["cause", "stage", "us"]),
        "path": pd.DataFrame(content["path"]["composition"], columns=["kind", "us"]),
        "pairs": pd.DataFrame(rows, columns=pairs[: len(rows[0])] if rows else pairs[:4]),
        "calls": pd.DataFrame(content["calls"], columns=["call", "place", "operations", "waiting_us", "software_us"]),
    }


def _flat(one: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in one.items() if key not in ("settings", "nodes")}
