"""The cards of a node: the one that a machine file describes, and those of its `[rail.NAME]` sections."""

from __future__ import annotations

from apenet.machine.inherit import RAIL_SECTIONS
from apenet.machine.schema import RawTable

FIRST_RAIL = "first"
"""The name of what a file describes without `[rail]`."""


def alone(table: RawTable, name: str) -> RawTable:
    """The tables of a machine whose nodes have this card alone. Published results are those of the first.

    Requires a table that has been checked.
    """
    if name == FIRST_RAIL:
        return {key: value for key, value in table.items() if key != "rail"}
    rail = table["rail"][name]
    shared = {"bus": table["bus"]} if rail["slot"]["value"] == "shared" and "bus" in table else {}
    own = {key: rail[key] for key in RAIL_SECTIONS if key in rail}
    return {"machine": table["machine"], "host": table["host"], **shared, **own}
