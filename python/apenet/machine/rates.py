"""Settings of rates, `network.link.rate=10GB/s`: the clock that gives the rate at the width in the file."""

from __future__ import annotations

from apenet.base.errors import InputError
from apenet.base.rates import parse_rate
from apenet.machine.schema import RawTable

_OF_LINK = ("clock_mhz", "word_bytes", "word_cycles")
_CLOCKS = {
    "bus.rate": ("clock_mhz", "width_bytes", None),
    "router.port_rate": ("port_clock_mhz", "port_word_bytes", None),
}

RATE_KEYS = ("network.link.rate", *_CLOCKS)
"""The keys of rates; those of single links, such as network.link.x.rate, as well."""


def is_rate(path: tuple[str, ...]) -> bool:
    """Whether the key of a setting is a rate, which no file has: it has clocks and widths."""
    return ".".join(path) in _CLOCKS or (path[0] == "network" and path[1] in ("link", "links") and path[-1] == "rate")


def clock_of(table: RawTable, path: tuple[str, ...], text: str, setting: str) -> tuple[tuple[str, ...], float]:
    """The key of the clock and its value in MHz. A link without a width of its own has that of `network.link`."""
    rate = parse_rate(f"--set {'.'.join(path)}", text)
    clock, width, cycles = _CLOCKS.get(".".join(path), _OF_LINK)
    sections = [path[:-1], ("network", "link")] if path[0] == "network" else [path[:-1]]
    word_bytes = _number(table, sections, width)
    word_cycles = 1 if cycles is None else _number(table, sections, cycles)
    if word_bytes is None or word_cycles is None:
        needed = f"{'.'.join(sections[-1])}.{width}"
        raise InputError("--set", setting, f"a key of a machine with {needed}, at which a clock gives the rate")
    return (*path[:-1], clock), round(rate * word_cycles / word_bytes) / 1e6


def _number(table: RawTable, sections: list[tuple[str, ...]], key: str) -> float | None:
    """The first of the sections that has the key."""
    for section in sections:
        found: object = table
        for step in (*section, key):
            found = found.get(step) if isinstance(found, dict) else None
        value = found.get("value") if isinstance(found, dict) else None
        if isinstance(value, int | float) and value > 0:
            return value
    return None
