"""fabtests and fi_pingpong of libfabric. MB there is 10^6 bytes; sizes are printed as 64, 1.5k, 1m, powers of 1024.

A transfer is one message, and a ping-pong counts both of its messages, so usec/xfer is half a round trip.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from apenet.fit.formats.table import PassedOver, columns, marked
from apenet.fit.measurement import PINGPONG, Point, Rejected, Section
from apenet.fit.text import Line, positive, printed_resolution

FORM = "fabtests"
_HEADER = re.compile(r"\s*(?P<name>name\s+)?bytes\s+(?P<count>#sent\s+#ack|iters)\s+total\s+time\s+MB/sec\s+usec/xfer")
_SIZE = re.compile(r"([0-9]+(?:\.[0-9])?)([kmg]?)", re.IGNORECASE)
_SUFFIXES = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_TOLERATED = 0.1
"""Relative difference beyond rounding that is allowed between the two columns, because printed sizes are rounded."""


def recognises(lines: Sequence[Line]) -> bool:
    """Whether these lines are output of this suite."""
    return any(_HEADER.match(line.text) for line in lines)


def read(lines: Sequence[Line]) -> list[Section]:
    """One section for each header."""
    starts = [index for index, line in enumerate(lines) if _HEADER.match(line.text)]
    ends = [*starts[1:], len(lines)]
    return [_section(lines[start:end]) for start, end in zip(starts, ends, strict=True)]


def _section(lines: Sequence[Line]) -> Section:
    header = lines[0]
    names = header.text.split()
    # fi_pingpong, which counts acknowledged transfers, is a single test; all other programs print the same columns.
    is_pingpong = "#ack" in names
    points: list[Point] = []
    passed = PassedOver()
    first = names.index("bytes")
    for line in lines[1:]:
        words = line.text.split()
        if len(words) > first and re.match(r"[0-9+-]", words[first]):
            failed = marked(line, words) or _unacknowledged(line, dict(zip(names, words, strict=False)))
            if failed is not None:
                passed.rejected.append(failed)
            else:
                points.append(_point(line, header, names))
        elif words:
            passed.add(line)
    name = "fi_pingpong" if is_pingpong else "fabtests"
    test = PINGPONG if is_pingpong else None
    valid = passed.without_failed(points)
    return Section(name, FORM, test, valid, header, tuple(passed.notes()), rejected=tuple(passed.rejected))


def _unacknowledged(line: Line, row: dict[str, str]) -> Rejected | None:
    """A row of which not all transfers have arrived: fi_pingpong prints =N acknowledged ones of N sent."""
    sent, acknowledged = row.get("#sent"), row.get("#ack", "").removeprefix("=")
    if sent is None or not acknowledged or _size(line, sent) == _size(line, acknowledged):
        return None
    return Rejected(line, f"{acknowledged} of {sent} transfers acknowledged")


def _size(line: Line, text: str) -> int:
    found = _SIZE.fullmatch(text)
    if found is None:
        raise line.error(text, "a size such as 64, 1.5k or 1m")
    return round(float(found[1]) * _SUFFIXES[found[2].lower()])


def _point(line: Line, header: Line, names: list[str]) -> Point:
    row = dict(zip(names, columns(line, len(names), header), strict=False))
    size = _size(line, row["bytes"])
    time = positive(line, row["usec/xfer"], "usec/xfer, a time in us")
    resolution = printed_resolution(row["usec/xfer"])
    if size > 0 and row["MB/sec"] != "0.00":
        rate = positive(line, row["MB/sec"], "MB/sec, a bandwidth")
        derived = size / rate
        blur = derived * printed_resolution(row["MB/sec"]) / rate
        if abs(derived - time) > _TOLERATED * time + resolution + blur:
            raise line.error(
                f"{row['MB/sec']} MB/sec and {row['usec/xfer']} usec/xfer",
                f"the same of {size} bytes, with MB = 10^6 bytes: the columns contradict each other",
            )
        if blur < resolution and not re.search("[.kmg]", row["bytes"]):
            return Point(size, derived, line, 1, blur)
    return Point(size, time, line, 1, resolution)
