"""A machine file that says only how it differs from another: `machine.base`.

Plain dictionaries in and out, and nothing of this package imported: the build of the C++ tests uses it too.
"""

from __future__ import annotations

from typing import Any

Table = dict[str, Any]


def base_of(table: Table) -> object:
    """What the file names as its base, None without one."""
    about = table.get("machine")
    return about.get("base") if isinstance(about, dict) else None


def merged(own: Table, base: Table) -> Table:
    """The tables of a file over those of its base: what it does not state is as there.

    Each machine has its own name and its own published results. Another topology replaces all of [network], another
    kind of card all of [card].
    """
    under = {key: value for key, value in base.items() if key not in ("machine", "results")}
    for name, key in (("network", "topology"), ("card", "kind")):
        kind = _bare(_section(own, name).get(key))
        if kind is not None and kind != _bare(_section(base, name).get(key)):
            under.pop(name, None)
    about = {key: value for key, value in _section(own, "machine").items() if key != "base"}
    return _over({**own, "machine": about}, under)


def _section(table: Table, key: str) -> Table:
    found = table.get(key)
    return found if isinstance(found, dict) else {}


def _bare(entry: object) -> object:
    return entry.get("value") if isinstance(entry, dict) else entry


def _is_parameter(entry: object) -> bool:
    return isinstance(entry, dict) and "value" in entry


def _over(own: Table, under: Table) -> Table:
    """Sections are merged; a parameter is replaced whole, with its class and source."""
    found = {**under, **own}
    for key, entry in own.items():
        below = under.get(key)
        if isinstance(entry, dict) and isinstance(below, dict) and not (_is_parameter(entry) or _is_parameter(below)):
            found[key] = _over(entry, below)
    return found
