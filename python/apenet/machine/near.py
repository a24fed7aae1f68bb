"""The keys that a user may have meant by a text which is none."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from apenet.machine.schema import RawTable

MOST_NAMED = 4
_ALSO = {"bandwidth": ("network", "link", "clock_mhz")}
"""What a link has under another name."""


def near_keys(text: str, table: RawTable) -> list[str]:
    """The keys of a machine's table that the text may mean, `link.clock` for `network.link.clock_mhz`; best first."""
    wanted = text.lower().replace("-", "_").strip("_").split(".")
    keys = list(_keys(table, ()))
    found = [key for key in keys if _matches(wanted, key) or key == _ALSO.get(wanted[-1])]
    if not found:
        last = {key[-1] for key in keys}
        close = difflib.get_close_matches(wanted[-1], last, n=1, cutoff=0.7)
        found = [key for key in keys if key[-1] in close]
    return [".".join(key) for key in sorted(found, key=lambda key: (len(key), len(key[-1])))[:MOST_NAMED]]


def did_you_mean(keys: list[str]) -> str:
    """The end of a message that names them."""
    return f"did you mean {' or '.join(keys)}?"


def _matches(wanted: list[str], key: tuple[str, ...]) -> bool:
    """Whether the last steps of the key begin as the text's steps do, or the last one has the text's in it."""
    steps = key[-len(wanted) :]
    if len(steps) < len(wanted) or not all(wanted):
        return False
    *sections, last = zip(wanted, steps, strict=True)
    return all(step.startswith(part) for part, step in sections) and last[0] in last[1]


def _keys(table: RawTable, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for name, entry in table.items():
        if not isinstance(entry, dict) or "value" in entry:
            if path and path[0] not in ("machine", "results", "rail"):
                yield (*path, name)
        else:
            yield from _keys(entry, (*path, name))
