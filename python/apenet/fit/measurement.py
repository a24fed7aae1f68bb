"""The content of a measurement file of any format: sizes and times of one test, with its definition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from apenet.base.errors import InputError
from apenet.base.escape import escape_line
from apenet.fit.text import Line, MeasurementError, Quoted

PINGPONG = "pingpong"
TESTS = {
    PINGPONG: "half the round trip of a message and a reply of the same size",
    "pingping": "both sides send one message at the same time; the time of one",
    "oneway": "messages one after another; the time from one to the next",
    "unidirectional": "windows of messages in one direction; the time of one",
    "bidirectional": "windows of messages in both directions at once; the time in which one goes each way",
    "read": "a read of the other side's memory, from the request to the data",
}
"""Definitions of the tests that a file can hold."""

STREAMS = ("oneway", "unidirectional")
"""Tests whose time is the gap between messages and not a latency."""

LARGEST_FALL = 4.0
"""A larger message may be faster by this factor, because protocols change; beyond it the file is refused."""

LARGEST_RISE = 20.0
"""A time may rise by this factor more than the size: beyond it a note says so."""


@dataclass(frozen=True)
class Point:
    """One row: the time of `channels` simultaneous messages of this size, and its line in the file."""

    size_bytes: int
    time_us: float
    line: Line
    channels: int = 1
    resolution_us: float = 0.0
    """The rounding error of the printed number."""


@dataclass(frozen=True)
class Rejected:
    """A row that the file itself marks as invalid, and its mark: `defects 12.00`."""

    line: Line
    reason: str


@dataclass(frozen=True)
class Section:
    """One table of a file. `test` is None if the file does not name it."""

    name: str
    form: str
    """The format: `OSU`, `IMB`, `perftest`, `fabtests`, `CSV`, `JSON`, `apenet bench`."""
    test: str | None
    points: tuple[Point, ...]
    line: Line
    notes: tuple[str, ...] = ()
    overheads_us: tuple[float, float] | None = None
    """CPU time of a send and of a receive, if they were measured."""
    rejected: tuple[Rejected, ...] = ()


@dataclass(frozen=True)
class Measurement:
    """One test as arrays of equal length, ordered by channels and then by size. Units: us, bytes."""

    file: str
    form: str
    section: str
    test: str
    sizes_bytes: NDArray[np.int64]
    times_us: NDArray[np.float64]
    channels: NDArray[np.int64]
    resolutions_us: NDArray[np.float64]
    notes: tuple[str, ...] = ()
    overheads_us: tuple[float, float] | None = None

    @property
    def definition(self) -> str:
        """The definition of the times."""
        return TESTS[self.test]

    def __len__(self) -> int:
        return len(self.sizes_bytes)

    def distinct_channels(self) -> list[int]:
        """The measured numbers of simultaneous messages, rising."""
        return [int(value) for value in np.unique(self.channels)]

    def error(self, problem: str, expected: str) -> MeasurementError:
        """An error in the file as a whole."""
        return MeasurementError(self.file, None, Quoted(problem), expected)

    def without(self, size_bytes: int) -> Measurement:
        """The measurement without one size."""
        return self.part(self.sizes_bytes != size_bytes)

    def part(self, kept: NDArray[np.bool_]) -> Measurement:
        """The measurement with only these points."""
        return replace(
            self,
            sizes_bytes=self.sizes_bytes[kept],
            times_us=self.times_us[kept],
            channels=self.channels[kept],
            resolutions_us=self.resolutions_us[kept],
        )


def checked(section: Section, test: str | None) -> Measurement:
    """The section as arrays. `test` overrides the test that the file names.

    Raises MeasurementError if the test is unknown, or if the points cannot belong to one test.
    """
    if test is not None and test not in TESTS:
        raise InputError("--test", test, "one of " + ", ".join(TESTS))
    chosen = test or section.test
    rejections = list(_rejections(section))
    if not section.points:
        said = (*rejections, *section.notes)
        reasons = f" ({'; '.join(said)})" if said else ""
        raise section.line.error(Quoted(f"no rows in {section.name}{reasons}"), "measured points of one test")
    if chosen is None:
        raise section.line.error(
            Quoted(f"{section.form} output that does not say which test it is of"),
            "--test with one of " + ", ".join(TESTS),
        )
    groups: dict[int, list[Point]] = {}
    for point in section.points:
        groups.setdefault(point.channels, []).append(point)
    notes = [*rejections, *section.notes]
    for points in groups.values():
        notes += _check_order(points)
        notes += _jumps(points)
    ordered = [point for count in sorted(groups) for point in groups[count]]
    notes += _resolution_note(ordered)
    return Measurement(
        file=section.line.file,
        form=section.form,
        section=section.name,
        test=chosen,
        sizes_bytes=np.array([point.size_bytes for point in ordered], dtype=np.int64),
        times_us=np.array([point.time_us for point in ordered], dtype=np.float64),
        channels=np.array([point.channels for point in ordered], dtype=np.int64),
        resolutions_us=np.array([point.resolution_us for point in ordered], dtype=np.float64),
        notes=tuple(escape_line(note) for note in notes),
        overheads_us=section.overheads_us,
    )


def _rejections(section: Section) -> Iterator[str]:
    """A note on the rows that the file marks as invalid. Refuses a table with more of them than valid rows."""
    if not section.rejected:
        return
    first = section.rejected[0]
    count, rows = len(section.rejected), len(section.rejected) + len(section.points)
    which = "" if count == 1 else "the first "
    place = f"{which}{first.line.file}:{first.line.number} ({first.reason})"
    if count > len(section.points):
        raise first.line.error(
            Quoted(f"{count} of {rows} rows of {section.name} are marked as invalid, {place}"),
            "a table whose rows are valid for the most part: measure again",
        )
    verb, them = ("is", "it") if count == 1 else ("are", "them")
    yield f"{count} of {rows} rows {verb} left out, because the file marks {them} as invalid: {place}"


def _jumps(points: list[Point]) -> Iterator[str]:
    """A note on times that rise far more than the size: another unit, or a disturbed measurement."""
    for before, point in pairwise(points):
        growth = max(point.size_bytes, 1) / max(before.size_bytes, 1)
        if point.time_us > LARGEST_RISE * growth * before.time_us:
            yield (
                f"{point.line.file}:{point.line.number}: {point.time_us:g} us for {point.size_bytes} bytes after "
                f"{before.time_us:g} us for {before.size_bytes}: a disturbed measurement, or another unit"
            )


def _check_order(points: list[Point]) -> Iterator[str]:
    """Refuses sizes that do not rise and times that collapse; returns notes on unusual but possible points."""
    slowest = points[0]
    faster: list[tuple[Point, Point]] = []
    for before, point in pairwise(points):
        if point.size_bytes <= before.size_bytes:
            raise point.line.error(
                Quoted(f"size {point.size_bytes} after size {before.size_bytes}"),
                "rising sizes, each once; one table per file, or --section",
            )
        if point.time_us * LARGEST_FALL < slowest.time_us:
            raise point.line.error(
                Quoted(
                    f"{point.time_us:g} us for {point.size_bytes} bytes, after {slowest.time_us:g} us for "
                    f"{slowest.size_bytes} (line {slowest.line.number})"
                ),
                f"times that rise with the size: a fall to less than 1/{LARGEST_FALL:g} is a disturbed measurement or "
                "another unit; measure again, or take the disturbed line out",
            )
        if point.time_us < slowest.time_us:
            faster.append((point, slowest))
        slowest = max(slowest, point, key=lambda candidate: candidate.time_us)
    if faster:
        point, slowest = max(faster, key=lambda pair: pair[1].time_us / pair[0].time_us)
        yield (
            f"{len(faster)} of {len(points)} sizes are faster than a smaller one, above all {point.size_bytes} bytes "
            f"with {point.time_us:g} us after {slowest.time_us:g} us: noise, or a change of protocol"
        )


def _resolution_note(points: list[Point]) -> Iterator[str]:
    coarsest = max(points, key=lambda point: point.resolution_us / point.time_us)
    percent = 100 * coarsest.resolution_us / coarsest.time_us
    if percent >= 1:
        yield (
            f"the file prints too few digits: {coarsest.time_us:g} us for {coarsest.size_bytes} bytes may be off by "
            f"{percent:.1f} %"
        )


def require_sizes(measurement: Measurement, least: int, reason: str) -> None:
    """Refuses a measurement with too few sizes."""
    count = len(np.unique(measurement.sizes_bytes))
    if count < least:
        raise measurement.error(f"{count} message {'size' if count == 1 else 'sizes'}", f"at least {least}: {reason}")
