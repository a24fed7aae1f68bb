"""Intel MPI Benchmarks: PingPong, PingPing, Sendrecv, Exchange, Uniband, Biband.

Times come from the columns with times or messages per second, never from Mbytes/sec.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from apenet.fit.formats.table import PassedOver, columns, is_row, marked, titled
from apenet.fit.measurement import PINGPONG, Point, Rejected, Section
from apenet.fit.text import Line, number, positive, printed_resolution, whole

FORM = "IMB"
END_MARK = "All processes entering MPI_Finalize"
_TITLE = re.compile(r"#\s*Benchmarking\s+(?P<name>\S+)")
_ERROR = re.compile(r"[0-9]+:\s*Error\b")
"""What a process prints whose check of the received data fails: "1: Error PingPong,size = 4096,sample #0"."""
_PROCESSES = re.compile(r"#\s*#processes\s*=\s*([0-9]+)")


class _Test(NamedTuple):
    test: str
    channels: int = 1
    messages_per_rate: int = 1
    """Messages that Msg/sec counts while each side sends one message."""


_KNOWN = {
    "PingPong": _Test(PINGPONG),
    "PingPongSpecificSource": _Test(PINGPONG),
    "PingPongAnySource": _Test(PINGPONG),
    "PingPing": _Test("pingping"),
    "PingPingSpecificSource": _Test("pingping"),
    "PingPingAnySource": _Test("pingping"),
    "Sendrecv": _Test("pingping"),
    "Exchange": _Test("pingping", channels=2),
    "Uniband": _Test("unidirectional"),
    "Biband": _Test("bidirectional", messages_per_rate=2),
}


def recognises(lines: Sequence[Line]) -> bool:
    """Whether these lines are output of this suite."""
    return any(_TITLE.match(line.text.strip()) for line in lines) and any("#repetitions" in line.text for line in lines)


def read(lines: Sequence[Line]) -> list[Section]:
    """One section for each benchmark and number of processes."""
    return [_section(part) for part in titled(lines, _TITLE)]


def _section(lines: Sequence[Line]) -> Section:
    title = lines[0]
    found = _TITLE.match(title.text.strip())
    name = found["name"] if found is not None else ""
    known = _KNOWN.get(name)
    section = name
    header: Line | None = None
    points: list[Point] = []
    passed = PassedOver()
    for line in lines[1:]:
        text = line.text.strip()
        if (processes := _PROCESSES.match(text)) is not None:
            section = f"{name}-{processes[1]}"
        elif "#repetitions" in text:
            header = line
        elif _ERROR.match(text) is not None:
            passed.add(line)
        elif is_row(text) and known is not None:
            if header is None:
                raise line.error(text, 'a line "#bytes #repetitions ..." above the first row')
            failed = _failed(line, header)
            if failed is not None:
                passed.rejected.append(failed)
            else:
                points.append(_point(line, header, known))
        elif text and not text.startswith("#"):
            passed.add(line)
    if known is None:
        return Section(section, FORM, None, (), title, (f"{name} is not a test between two processes",))
    valid = passed.without_failed(points)
    notes = tuple(passed.notes())
    return Section(section, FORM, known.test, valid, title, notes, rejected=tuple(passed.rejected))


def _failed(line: Line, header: Line) -> Rejected | None:
    """The row if IMB's check of the received data has found defects, or if IMB gave its size up."""
    words, names = line.text.split(), header.text.split()
    found = marked(line, words[1:])
    if found is not None or "defects" not in names:
        return found
    defects = dict(zip(names, columns(line, len(names), header), strict=False))["defects"]
    return Rejected(line, f"defects {defects}") if number(line, defects, "defects, a number") != 0 else None


def _point(line: Line, header: Line, known: _Test) -> Point:
    names = header.text.split()
    words = columns(line, len(names), header)
    if "#bytes" not in names:
        raise header.error(header.text.strip(), 'a column "#bytes"')
    row = dict(zip(names, words, strict=False))
    size = whole(line, row["#bytes"], "a size in bytes")
    # The slowest process's time: the one from which the suite itself computes bandwidths.
    for column in ("t[usec]", "t_max[usec]"):
        if column in row:
            time = positive(line, row[column], f"{column}, a time in us")
            return Point(size, time, line, known.channels, printed_resolution(row[column]))
    if "Msg/sec" not in row:
        raise header.error(header.text.strip(), 'a column "t[usec]", "t_max[usec]" or "Msg/sec"')
    number(line, row.get("Mbytes/sec", "0"), "Mbytes/sec")
    rate = positive(line, row["Msg/sec"], "Msg/sec, a rate of messages")
    time = known.messages_per_rate * 1e6 / rate
    return Point(size, time, line, known.channels, time * printed_resolution(row["Msg/sec"]) / rate)
