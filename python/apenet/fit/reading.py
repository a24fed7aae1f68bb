"""Reads one measurement from a file: recognises the format and selects the section."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from apenet.base.errors import InputError
from apenet.fit.formats import csvtable, fabtests, imb, jsonfile, osu, perftest
from apenet.fit.formats.table import failure_note
from apenet.fit.measurement import Measurement, Section, checked
from apenet.fit.text import Line, MeasurementError, Quoted, lines_of, read_lines


class _Suite(NamedTuple):
    form: str
    recognises: Callable[[Sequence[Line]], bool]
    read: Callable[[Sequence[Line]], list[Section]]


_SUITES = tuple(_Suite(suite.FORM, suite.recognises, suite.read) for suite in (jsonfile, osu, imb, perftest, fabtests))


def read(file: Path | str, *, test: str | None = None, section: str | None = None) -> Measurement:
    """The measurement in a file of any known format.

    `section` is the name or number (from 1) of one of several tables in the file; `test` overrides the test that the
    file names. Raises InputError for an invalid file or option, MeasurementError for invalid contents.
    """
    return _chosen(str(file), read_lines(Path(file)), test, section)


def parse(name: str, content: bytes, *, test: str | None = None, section: str | None = None) -> Measurement:
    """As `read`, from the contents of a file; `name` is its name in errors."""
    return _chosen(name, lines_of(name, content), test, section)


def sections(lines: list[Line]) -> list[Section]:
    """Every table of a file."""
    suites = [suite for suite in _SUITES if suite.recognises(lines)]
    if len(suites) > 1:
        forms = " and ".join(suite.form for suite in suites)
        raise MeasurementError(lines[0].file, None, Quoted(f"output of {forms}"), "the output of one suite in a file")
    if suites:
        return _with_notes_of_ends(suites[0], lines)
    return csvtable.read(lines)


def _with_notes_of_ends(suite: _Suite, lines: list[Line]) -> list[Section]:
    """The tables of a suite's output, with notes of a failure told above the first, and of output that is cut off."""
    found = suite.read(lines)
    if not found or suite.form == jsonfile.FORM:
        return found
    above = tuple(failure_note(lines[: found[0].line.number - 1]))
    found = [replace(section, notes=(*above, *section.notes)) for section in found]
    note = None
    if lines[-1].text:
        note = f"the output ends within line {lines[-1].number}: its last row may be cut off"
    elif suite.form == imb.FORM and not any(imb.END_MARK in line.text for line in lines):
        note = f'the output does not end with IMB\'s line "# {imb.END_MARK}": rows may be missing'
    return found if note is None else [*found[:-1], replace(found[-1], notes=(*found[-1].notes, note))]


def _chosen(name: str, lines: list[Line], test: str | None, section: str | None) -> Measurement:
    found = sections(lines)
    if not found:
        raise MeasurementError(name, None, Quoted("no table"), "measured points")
    # Collectives that IMB prints in the same file as point-to-point tests are not considered.
    usable = [candidate for candidate in found if candidate.points]
    if section is not None:
        return checked(_named(name, found, section), test)
    if len(usable) > 1:
        raise MeasurementError(name, None, Quoted(f"{len(usable)} tables"), f"--section with one of {_listed(found)}")
    return checked(usable[0] if usable else found[0], test)


def _listed(found: list[Section]) -> str:
    return ", ".join(
        f"{number} ({candidate.name}, line {candidate.line.number})"
        for number, candidate in enumerate(found, start=1)
        if candidate.points
    )


def _named(name: str, found: list[Section], section: str) -> Section:
    if section.isascii() and section.isdigit() and 1 <= int(section) <= len(found):
        return found[int(section) - 1]
    matching = [candidate for candidate in found if candidate.name.lower() == section.lower()]
    # The beginning of a name suffices if only one table has it: IMB's PingPong is PingPong-2 here.
    begun = [candidate for candidate in found if section and candidate.name.lower().startswith(section.lower())]
    matching = matching or begun
    if len(matching) == 1:
        return matching[0]
    problem = "several of" if matching else "none of"
    raise InputError("--section", section, f"one of {_listed(found)}: it is {problem} {name}")
