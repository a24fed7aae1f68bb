"""Columns of CSV and JSON: the meaning of names such as `time_us` or `Bandwidth (MB/s)`, and rows of such columns."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apenet.fit.measurement import PINGPONG, Point
from apenet.fit.text import Line, Quoted, positive, printed_resolution, whole

SIZE, TIME, BANDWIDTH, CHANNELS = "size", "time", "bandwidth", "channels"

_TIME_UNITS = {"s": 1e6, "sec": 1e6, "ms": 1e3, "us": 1.0, "usec": 1.0, "µs": 1.0, "μs": 1.0, "ns": 1e-3, "ps": 1e-6}
_SIZE_UNITS = {"b": 1, "byte": 1, "bytes": 1, "kib": 2**10, "mib": 2**20}
_RATE_UNITS = {  # bytes per second; lower-case b is a bit
    "B/s": 1.0,
    "kB/s": 1e3,
    "KB/s": 1e3,
    "MB/s": 1e6,
    "GB/s": 1e9,
    "KiB/s": 2.0**10,
    "MiB/s": 2.0**20,
    "GiB/s": 2.0**30,
    "Mb/s": 1e6 / 8,
    "Gb/s": 1e9 / 8,
    "Mbit/s": 1e6 / 8,
    "Gbit/s": 1e9 / 8,
}
# Units in keys such as bandwidth_mib_s. `mb` is a megabyte there; a megabit is written mbit.
_RATE_KEYS = {
    "b_s": 1.0,
    "bytes_s": 1.0,
    "kb_s": 1e3,
    "mb_s": 1e6,
    "gb_s": 1e9,
    "kib_s": 2.0**10,
    "mib_s": 2.0**20,
    "gib_s": 2.0**30,
    "mbit_s": 1e6 / 8,
    "gbit_s": 1e9 / 8,
}
_NAMES = {
    "size": SIZE,
    "message_size": SIZE,
    "msg_size": SIZE,
    "n": SIZE,
    "time": TIME,
    "t": TIME,
    "latency": TIME,
    "avg_latency": TIME,
    "half_round_trip": TIME,
    "half_rtt": TIME,
    "round_trip": TIME,
    "roundtrip": TIME,
    "rtt": TIME,
    "gap": TIME,
    "bandwidth": BANDWIDTH,
    "bw": BANDWIDTH,
    "throughput": BANDWIDTH,
    "channels": CHANNELS,
    "nvc": CHANNELS,
}
# The test that a name implies. `time` and `bandwidth` imply none.
_TESTS = {
    "latency": PINGPONG,
    "avg_latency": PINGPONG,
    "half_round_trip": PINGPONG,
    "half_rtt": PINGPONG,
    "round_trip": PINGPONG,
    "roundtrip": PINGPONG,
    "rtt": PINGPONG,
    "gap": "oneway",
}
MOST_COLUMNS = 1000
EXAMPLE = "size_bytes,time_us or size_bytes,bandwidth_mib_s"
MIB_OVER_MB = 2**20 / 10**6
_AGREES = 0.03
_MIXES = 0.012


@dataclass(frozen=True)
class Column:
    """The content of a column. `factor` converts times to us, sizes to bytes, bandwidths to bytes per second."""

    name: str
    quantity: str
    factor: float
    unit: str
    test: str | None = None
    index: int = 0


def column(header: Line, name: str, index: int = 0) -> Column | None:
    """The meaning of a column's name; None for a column that is not used, such as `iterations`.

    Raises MeasurementError if the name is known but its unit is missing or unknown.
    """
    text = name.strip().strip('"').strip()
    bracketed = re.fullmatch(r"(.*?)\s*[(\[]\s*([^()\[\]]+?)\s*[)\]]", text)
    if bracketed is not None:
        stem, unit = _key(bracketed[1]), bracketed[2].replace("sec", "s") if "/" in bracketed[2] else bracketed[2]
    else:
        stem, unit = _split_key(_key(text))
    quantity = _NAMES.get(stem)
    if quantity is None:
        return None
    if quantity == CHANNELS:
        return Column(text, CHANNELS, 1, "", None, index)
    tables: dict[str, dict[str, float]] = {
        SIZE: {unit: float(value) for unit, value in _SIZE_UNITS.items()},
        TIME: _TIME_UNITS,
        BANDWIDTH: _RATE_UNITS if bracketed is not None else _RATE_KEYS,
    }
    table = tables[quantity]
    looked_up = unit if quantity == BANDWIDTH and bracketed is not None else unit.lower()
    if not unit:
        raise header.error(text, f"a name with its unit, such as {EXAMPLE}; units of a {quantity}: {', '.join(table)}")
    if looked_up not in table:
        raise header.error(text, f"a unit of a {quantity}: {', '.join(table)}")
    factor = table[looked_up]
    if stem in ("round_trip", "roundtrip", "rtt"):
        factor /= 2
    return Column(text, quantity, factor, unit, _TESTS.get(stem), index)


def has_quantity(name: str) -> bool:
    """Whether a column's name is that of a size, a time, a bandwidth or a number of channels."""
    return _split_key(_key(name.strip().strip('"')))[0] in _NAMES


def _key(text: str) -> str:
    return re.sub(r"[\s.\-]+", "_", text.strip().lower())


def _split_key(key: str) -> tuple[str, str]:
    """('bandwidth', 'mib_s') for 'bandwidth_mib_s'; the unit is empty if the name has none."""
    units = sorted({*_TIME_UNITS, *_SIZE_UNITS, *_RATE_KEYS}, key=len, reverse=True)
    for unit in units:
        if key.endswith(f"_{unit}") and key[: -len(unit) - 1] in _NAMES:
            return key[: -len(unit) - 1], unit
    for stem in sorted(_NAMES, key=len, reverse=True):
        if len(stem) > 1 and key.startswith(f"{stem}_"):  # n_errors has no unit of a size
            return stem, key[len(stem) + 1 :]
    if key == "bytes":
        return "size", "bytes"
    return key, ""


@dataclass(frozen=True)
class Columns:
    """The columns of one table that are used."""

    header: Line
    size: Column
    time: Column | None
    bandwidth: Column | None
    channels: Column | None

    @property
    def test(self) -> str | None:
        """The test that the names imply, if any."""
        return self.time.test if self.time is not None else None


def choose(header: Line, names: Sequence[str]) -> Columns:
    """The columns of a table by name. Raises MeasurementError for a missing or duplicate column or a missing unit."""
    if len(names) > MOST_COLUMNS:
        raise header.error(Quoted(f"{len(names)} columns"), f"a table of at most {MOST_COLUMNS} columns")
    found = [known for index, name in enumerate(names) if (known := column(header, name, index)) is not None]
    by_quantity: dict[str, Column] = {}
    for known in found:
        if known.quantity in by_quantity:
            other = by_quantity[known.quantity]
            raise header.error(
                Quoted(f'columns "{other.name}" and "{known.name}"'), f"one column with a {known.quantity}"
            )
        by_quantity[known.quantity] = known
    shown = ", ".join(name.strip() for name in names)
    understood = {known.index for known in found}
    hint = _hint(name for index, name in enumerate(names) if index not in understood)
    if SIZE not in by_quantity:
        raise header.error(shown, f"a header that names its columns with their units, such as {EXAMPLE}{hint}")
    if TIME not in by_quantity and BANDWIDTH not in by_quantity:
        raise header.error(shown, f"a column with a time or a bandwidth and its unit, such as {EXAMPLE}{hint}")
    return Columns(
        header, by_quantity[SIZE], by_quantity.get(TIME), by_quantity.get(BANDWIDTH), by_quantity.get(CHANNELS)
    )


def _hint(names: Iterable[str]) -> str:
    known = ["size_bytes", "time_us", "latency_us", "bandwidth_mib_s"]
    for name in names:
        close = difflib.get_close_matches(_key(name), known, n=1, cutoff=0.6)
        if close:
            return f'; "{name.strip()}" may be "{close[0]}"'
    return ""


def point(line: Line, columns: Columns, cells: Sequence[str], channels: int = 1) -> Point:
    """One row. The time is that of the column, or follows from the bandwidth."""
    size_text = cells[columns.size.index]
    size = whole(line, size_text, columns.size.name) * int(columns.size.factor)
    if columns.channels is not None:
        channels = whole(line, cells[columns.channels.index], columns.channels.name, least=1)
    from_rate: float | None = None
    if columns.bandwidth is not None and (columns.time is None or size > 0):
        if size == 0:
            raise line.error(size_text, "a size above zero for a bandwidth")
        rate_text = cells[columns.bandwidth.index]
        rate = positive(line, rate_text, columns.bandwidth.name)
        from_rate = channels * size / (rate * columns.bandwidth.factor) * 1e6
        if columns.time is None:
            return Point(size, from_rate, line, channels, from_rate * printed_resolution(rate_text) / rate)
    assert columns.time is not None  # noqa: S101 (choose() ensures it)
    text = cells[columns.time.index]
    time = positive(line, text, columns.time.name) * columns.time.factor
    return Point(size, time, line, channels, printed_resolution(text) * columns.time.factor)


def check_units(columns: Columns, rows: Sequence[tuple[Line, Sequence[str], Point]]) -> None:
    """Checks that time and bandwidth, if both are given, belong to one measurement, and that MB are not MiB.

    A bandwidth of both directions together, or of a round trip, is twice size over time, so any small whole multiple
    agrees. The check uses the median of all rows.
    """
    if columns.time is None or columns.bandwidth is None:
        return
    ratios = []
    for line, cells, point in rows:
        if point.size_bytes > 0:
            rate = positive(line, cells[columns.bandwidth.index], columns.bandwidth.name) * columns.bandwidth.factor
            ratios.append(rate * point.time_us * 1e-6 / (point.size_bytes * point.channels))
    if not ratios:
        return
    ratio = sorted(ratios)[len(ratios) // 2]
    if any(abs(ratio / whole_ratio - 1) < _AGREES for whole_ratio in (0.5, 1, 2)):
        return
    for whole_ratio in (0.5, 1, 2):
        for factor, meant in ((1 / MIB_OVER_MB, "MiB (2^20 bytes)"), (MIB_OVER_MB, "MB (10^6 bytes)")):
            if abs(ratio / (whole_ratio * factor) - 1) < _MIXES:
                raise columns.header.error(
                    columns.bandwidth.name,
                    f"the bandwidth in its own unit: with {columns.time.name} its numbers are {meant}, MB and MiB are "
                    "mixed",
                )
    raise columns.header.error(
        Quoted(f'columns "{columns.time.name}" and "{columns.bandwidth.name}"'),
        f"columns of one measurement: the bandwidth is {ratio:.3g} times size over time",
    )
