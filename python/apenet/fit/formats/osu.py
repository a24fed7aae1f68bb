"""OSU micro-benchmarks: osu_latency, osu_bw, osu_bibw, osu_mbw_mr and similar programs. MB there is 10^6 bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from apenet.fit.formats.table import PassedOver, columns, is_row, marked, titled
from apenet.fit.measurement import PINGPONG, Point, Rejected, Section
from apenet.fit.text import Line, Quoted, positive, printed_resolution, whole

FORM = "OSU"
_TITLE = re.compile(r"#\s*OSU\s+(?P<name>.*?Test)\b", re.IGNORECASE)
_PAIRS = re.compile(r"#\s*\[\s*pairs:\s*([0-9]+)\s*\]")
_HEADER = re.compile(r"#\s*Size\b\s*(?P<columns>.*)", re.IGNORECASE)
_COLUMN = re.compile(r"MB/s|Messages/s|[^()]*\([^)]*\)|\S+")
_BYTES_PER_MB = 10**6


class _Test(NamedTuple):
    title: re.Pattern[str]
    program: str
    test: str
    directions: int


_KNOWN = (
    _Test(re.compile(r"Multiple Bandwidth / Message Rate Test"), "osu_mbw_mr", "unidirectional", 1),
    _Test(re.compile(r"Bi-Directional Bandwidth Test"), "osu_bibw", "bidirectional", 2),
    _Test(re.compile(r"MPI(-\w+)? Bandwidth Test"), "osu_bw", "unidirectional", 1),
    _Test(re.compile(r"MPI(-\w+)? Latency Test"), "osu_latency", PINGPONG, 1),
    _Test(re.compile(r"Multi-process Latency Test"), "osu_latency_mp", PINGPONG, 1),
    _Test(re.compile(r"Multi-threaded Latency Test"), "osu_latency_mt", PINGPONG, 1),
    _Test(re.compile(r"Multi Latency Test"), "osu_multi_lat", PINGPONG, 1),
)


def recognises(lines: Sequence[Line]) -> bool:
    """Whether these lines are output of this suite."""
    return any(_TITLE.match(line.text.strip()) for line in lines)


def read(lines: Sequence[Line]) -> list[Section]:
    """One section for each title."""
    return [_section(part) for part in titled(lines, _TITLE)]


def _section(lines: Sequence[Line]) -> Section:
    title = lines[0]
    known = _known(title)
    pairs = 1
    header: Line | None = None
    points: list[Point] = []
    passed = PassedOver()
    for line in lines[1:]:
        text = line.text.strip()
        if (found := _PAIRS.match(text)) is not None:
            pairs = int(found[1])
        elif _HEADER.match(text) is not None:
            header = line
        elif is_row(text):
            if header is None:
                raise line.error(text, 'a line "# Size ..." with the units of the columns above the first row')
            failed = _failed(line, header)
            if failed is not None:
                passed.rejected.append(failed)
            else:
                points.append(_point(line, header, known, pairs))
        elif text and not text.startswith("#"):
            passed.add(line)
    valid = passed.without_failed(points)
    notes = tuple(passed.notes())
    return Section(known.program, FORM, known.test, valid, title, notes, rejected=tuple(passed.rejected))


def _failed(line: Line, header: Line) -> Rejected | None:
    """The row if OSU's check of the received data (-c) has failed."""
    words = line.text.split()
    if re.search(r"\bValidation\s*$", header.text, re.IGNORECASE) and words[-1].lower() not in ("pass", "fail"):
        raise line.error(words[-1], '"Pass" or "Fail" in the column Validation')
    found = marked(line, words[1:])
    return found and Rejected(line, f"Validation {found.reason}")


def _known(title: Line) -> _Test:
    for known in _KNOWN:
        if known.title.search(title.text):
            return known
    programs = ", ".join(known.program for known in _KNOWN)
    raise title.error(Quoted(f'"{title.text.strip()}"'), f"the output of one of {programs}")


def _point(line: Line, header: Line, known: _Test, pairs: int) -> Point:
    unit = header.text.split("Size", 1)[-1].strip()
    words = columns(line, 1 + len(_COLUMN.findall(unit)), header)
    size = whole(line, words[0], "a size in bytes")
    if re.match(r"(Avg\s+)?Latency\s*\(us\)", unit):
        time = positive(line, words[1], "a latency in us")
        return Point(size, time, line, 1, printed_resolution(words[1]))
    if not re.match(r"(Bandwidth\s*\(MB/s\)|MB/s)", unit):
        raise header.error(header.text.strip(), 'a first column "Latency (us)", "Bandwidth (MB/s)" or "MB/s"')
    if size == 0:
        raise line.error(words[0], "a size above zero for a bandwidth")
    if re.search(r"\bMessages/s\b", unit) and len(words) > 2:  # noqa: PLR2004 (size, MB/s, and this one: more digits)
        messages = positive(line, words[2], "a rate of messages")
        time = pairs / messages * 1e6
        return Point(size, time, line, pairs, time * printed_resolution(words[2]) / messages)
    rate = positive(line, words[1], "a bandwidth in MB/s")
    time = known.directions * pairs * size / rate / _BYTES_PER_MB * 1e6
    return Point(size, time, line, pairs, time * printed_resolution(words[1]) / rate)
