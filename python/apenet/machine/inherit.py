"""A machine file that says only how it differs from another: `machine.base`, and `base` of a rail.

Plain dictionaries in and out, and nothing of this package imported: the build of the C++ tests uses it too.
"""

from __future__ import annotations

from typing import Any

Table = dict[str, Any]

RAIL_SECTIONS = ("network", "router", "card", "bus", "software")
"""The sections of a machine that each rail has as its own."""


def base_of(table: Table) -> object:
    """The file's base by name, None without one."""
    about = table.get("machine")
    return about.get("base") if isinstance(about, dict) else None


def rail_bases(table: Table) -> dict[str, object]:
    """The bases of a file's rails, by the names of the rails that have one."""
    rails = _section(table, "rail")
    return {name: rail["base"] for name, rail in rails.items() if isinstance(rail, dict) and "base" in rail}


def merged(own: Table, base: Table) -> Table:
    """The tables of a file over those of its base: what it does not state is as there.

    Each machine has its own name and its own published results. Another topology replaces all of [network], another
    kind of card all of [card].
    """
    under = {key: value for key, value in base.items() if key not in ("machine", "results")}
    about = {key: value for key, value in _section(own, "machine").items() if key != "base"}
    found = _over_kinds({**own, "machine": about}, under)
    rails, rails_under = _section(own, "rail"), _section(under, "rail")
    if rails and rails_under:
        pairs = {name: (rails[name], rails_under[name]) for name in rails if name in rails_under}
        both = {name: _over_kinds(*pair) for name, pair in pairs.items() if isinstance(pair[0], dict)}
        found["rail"] = {**rails_under, **rails, **both}
    return found


def merged_rail(own: Table, base: Table) -> Table:
    """The same of a rail over the card and the network of a machine. A rail in a shared slot has no bus."""
    is_shared = _bare(own.get("slot")) == "shared"
    under = {key: base[key] for key in RAIL_SECTIONS if key in base and not (is_shared and key == "bus")}
    return _over_kinds({key: value for key, value in own.items() if key != "base"}, under)


def _over_kinds(own: Table, base: Table) -> Table:
    under = dict(base)
    for name, key in (("network", "topology"), ("card", "kind")):
        kind = _bare(_section(own, name).get(key))
        if kind is not None and kind != _bare(_section(base, name).get(key)):
            under.pop(name, None)
    return _over(own, under)


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
