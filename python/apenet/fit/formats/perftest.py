"""perftest: ib_send_lat, ib_write_bw and others. MB and MiB there are both 2^20 bytes, Gb is 10^9 bits."""

from __future__ import annotations

import re
from collections.abc import Sequence

from apenet.fit.formats.table import PassedOver, columns, is_row, marked
from apenet.fit.measurement import PINGPONG, Point, Section
from apenet.fit.text import Line, positive, printed_resolution, whole

FORM = "perftest"
_TITLE = re.compile(r"\s*(RDMA_Write|RDMA_Read|Send|Atomic|Raw Ethernet)\b.*\b(BW|Latency)\s+Test")
_HEADER = re.compile(r"#bytes\s+#iterations")
_SIDE = re.compile(r"\s*(Local|Remote) results:")
"""Titles of --report-both: after the table of both directions, one table per side counts what that side sent."""
_COLUMN = re.compile(
    r"#\w+|(?:BW|MsgRate)(?: ?\w+)?\s*\[[^\]]*\]|[0-9.]+% percentile\s*\[\w+\]|t_\w+\s*\[\w+\]|tps average"
)
_UNITS = {"MB/sec": 2**20, "MiB/sec": 2**20, "Gb/sec": 10**9 / 8}


def recognises(lines: Sequence[Line]) -> bool:
    """Whether these lines are output of this suite."""
    return any(_HEADER.search(line.text) for line in lines)


def read(lines: Sequence[Line]) -> list[Section]:
    """One section for each header of columns; its title is the nearest above it."""
    sections: list[Section] = []
    title: Line | None = None
    header: Line | None = None
    side: str | None = None
    points: list[Point] = []
    passed = PassedOver()
    for line in lines:
        if (side_line := _SIDE.match(line.text)) is not None or _TITLE.match(line.text) is not None:
            if header is not None:
                sections.append(_finished(title, side, header, points, passed))
                header = None
            if side_line is not None:
                side = side_line[1].lower()
            else:
                title, side = line, None
        elif _HEADER.search(line.text) is not None:
            if header is not None:
                sections.append(_finished(title, side, header, points, passed))
            header, points, passed = line, [], PassedOver()
        elif header is not None and is_row(line.text):
            failed = marked(line, line.text.split())
            if failed is not None:
                passed.rejected.append(failed)
            else:
                points.append(_point(line, header, _directions(title) if side is None else 1))
        elif header is not None and line.text.strip() and not set(line.text.strip()) <= {"-"}:
            passed.add(line)
    if header is not None:
        sections.append(_finished(title, side, header, points, passed))
    return sections


def _directions(title: Line | None) -> int:
    return 2 if title is not None and "Bidirectional" in title.text else 1


def _finished(title: Line | None, side: str | None, header: Line, points: list[Point], passed: PassedOver) -> Section:
    name = title.text.strip() if title is not None else "perftest"
    notes = list(passed.notes())
    valid = passed.without_failed(points)
    rejected = tuple(passed.rejected)
    if title is None:
        # The columns do not distinguish a bidirectional test from a unidirectional one, or a read from a write.
        return Section(name, FORM, None, valid, header, tuple(notes), rejected=rejected)
    if "Latency" in name:
        # The program halves round trips, except for reads and atomics, which are one request and one answer.
        test = "read" if name.startswith(("RDMA_Read", "Atomic")) else PINGPONG
    else:
        test = "bidirectional" if _directions(title) > 1 else "unidirectional"
        notes.append("MB is 2^20 bytes, as perftest counts")
    if side is not None:
        return Section(f"{name}, {side} results", FORM, test, valid, header, tuple(notes), rejected=rejected)
    return Section(name, FORM, test, valid, title, tuple(notes), rejected=rejected)


def _point(line: Line, header: Line, directions: int) -> Point:
    names = [re.sub(r"\s+", " ", name) for name in _COLUMN.findall(header.text)]
    words = columns(line, len(names), header)
    row = dict(zip(names, words, strict=False))
    size = whole(line, row["#bytes"], "a size in bytes", least=1)
    for column in ("t_typical[usec]", "t_avg[usec]"):
        if column in row:
            time = positive(line, row[column], f"{column}, a time in us")
            return Point(size, time, line, 1, printed_resolution(row[column]))
    for column, text in row.items():
        if column.startswith("BW average"):
            unit = column.partition("[")[2].rstrip("]")
            if unit not in _UNITS:
                raise header.error(column, "BW average in " + ", ".join(_UNITS))
            rate = positive(line, text, f"{column}, a bandwidth")
            time = directions * size / (rate * _UNITS[unit]) * 1e6
            return Point(size, time, line, 1, time * printed_resolution(text) / rate)
    raise header.error(header.text.strip(), "a column t_typical[usec], t_avg[usec] or BW average with its unit")
