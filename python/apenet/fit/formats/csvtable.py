"""CSV with a header that names its columns and their units: commas, semicolons, tabs or blanks between them."""

from __future__ import annotations

import csv
from collections.abc import Sequence

from apenet.fit.formats import marks, quantities
from apenet.fit.formats.table import failure_note
from apenet.fit.measurement import Section
from apenet.fit.text import Line

FORM = "CSV"


def read(lines: Sequence[Line]) -> list[Section]:
    """Reads one section."""
    rows = [line for line in lines if line.text.strip() and not line.text.lstrip().startswith("#")]
    if not rows:
        raise lines[0].error(lines[0].text.strip(), f"a header such as {quantities.EXAMPLE}, and rows below it")
    header = rows[0]
    delimiter = next((mark for mark in ("\t", ";", ",") if mark in header.text), None)
    names = _cells(header, delimiter)
    columns = quantities.choose(header, names)
    marking = marks.marks(names)
    read_rows, rejected = [], []
    for line in rows[1:]:
        cells = _cells(line, delimiter)
        if len(cells) != len(names):
            hint = ": a comma is between columns, never inside a number" if delimiter == "," else ""
            raise line.error(line.text.strip(), f"{len(names)} columns as in the header, not {len(cells)}{hint}")
        found = marks.first_mark(marking, line, cells)
        if found is not None:
            rejected.append(found)
        else:
            read_rows.append((line, cells, quantities.point(line, columns, cells)))
    quantities.check_units(columns, read_rows)
    points = tuple(row[2] for row in read_rows)
    comments = [line for line in lines if line.text.lstrip().startswith("#")]
    placed = [(f"{line.file}:{line.number}", dict(zip(names, cells, strict=True))) for line, cells, _ in read_rows]
    notes = (*failure_note(comments), *marks.notes_on_unread("column", placed, header.file))
    return [Section("table", FORM, columns.test, points, header, notes, rejected=tuple(rejected))]


def _cells(line: Line, delimiter: str | None) -> list[str]:
    if delimiter is None:
        return line.text.split()
    try:
        (cells,) = csv.reader([line.text], delimiter=delimiter, strict=True)
    except (csv.Error, ValueError) as error:
        raise line.error(line.text.strip(), f"one row of CSV: {error}") from error
    return [cell.strip() for cell in cells]
