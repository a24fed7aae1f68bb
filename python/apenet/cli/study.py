"""apenet study: what the file of a sweep tells."""

from __future__ import annotations

import csv
import io
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from apenet.base.errors import InputError
from apenet.base.infiles import printable
from apenet.base.outfiles import OutFile, begins_with
from apenet.base.pictures import FIGURE, check_picture_file
from apenet.cli.commands import HelpfulCommand
from apenet.cli.common import JsonOption, messages, output, path_of, print_json, print_tables
from apenet.study.plan import DRAW, ENDS
from apenet.study.plots import write_figure
from apenet.study.queries import query_rows
from apenet.study.rows import Row, columns, default_value, varying
from apenet.study.study import State, Study
from apenet.study.summary import compared, intervals, measured_columns, size_columns, swings_of, without_effect

app = typer.Typer(no_args_is_help=True, help="What the file of a sweep tells.")

MOST_ROWS = 40
_CSV_MARK = b"machine,"

StudyArgument = Annotated[
    Path, typer.Argument(metavar="STUDY", parser=path_of("STUDY", "the file of a study"), help="The file of a sweep.")
]
ValueOption = Annotated[str | None, typer.Option("--value", metavar="COLUMN", help="The result; by default the time.")]


@app.command("show", cls=HelpfulCommand)
def show(
    file: StudyArgument,
    state: Annotated[
        str | None, typer.Option("--state", metavar="STATE", help="List the points in this state, and why.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the results: one row a point, or the interval of its draws."""
    with Study(file) as study:
        if state is not None:
            if state not in list(State):
                raise InputError("--state", state, " or ".join(State))
            for axes, reason in study.reasons(State(state), -1):
                output().print(f"{axes}: {reason}" if reason else axes, markup=False)
        elif as_json:
            print_json(list(study.rows()))
        else:
            print_study(study, list(study.rows()))


@app.command("query", cls=HelpfulCommand)
def query(
    file: StudyArgument,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="A SELECT; the table is `rows`.")],
    as_json: JsonOption = False,
) -> None:
    """Ask the results in SQL: SELECT machine, min(time_us) FROM rows GROUP BY machine."""
    with Study(file) as study:
        try:
            names, found = query_rows(list(study.rows()), sql)
        except sqlite3.Error as error:
            raise InputError("SQL", sql, f"a SELECT over the table rows: {error}") from error
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in found])
        return
    _print_rows([dict(enumerate(row)) for row in found], list(range(len(names))), names)


@app.command("compare", cls=HelpfulCommand)
def compare(
    first: StudyArgument, second: StudyArgument, value: ValueOption = None, as_json: JsonOption = False
) -> None:
    """Put the same points of two studies beside each other."""
    with Study(first) as one, Study(second) as other:
        rows, others = list(one.rows()), list(other.rows())
        by = [name for name in one.axis_names if name in other.axis_names]
        by += size_columns(rows, by)
        chosen = chosen_value(rows, value)
        table = compared(rows, others, by, chosen)
    if not table:
        raise InputError("STUDY", second, f"a study with points of {first}, which have the same {', '.join(by)}")
    if as_json:
        print_json(table)
        return
    output().print(f"# {chosen}: {first} and {second}", markup=False)
    _print_rows(table, columns(table), columns(table))


@app.command("plot", cls=HelpfulCommand)
def plot(
    file: StudyArgument,
    figure: Annotated[
        Path, typer.Option(FIGURE, metavar="FILE", parser=path_of(FIGURE, "a file"), help="A .png, .svg or .pdf.")
    ],
    value: ValueOption = None,
    over: Annotated[
        str | None, typer.Option("--over", metavar="COLUMN", help="The horizontal axis; by default it is chosen.")
    ] = None,
) -> None:
    """Draw the results: lines over one number, a map over two, a tornado chart of what was drawn."""
    check_picture_file(FIGURE, figure)
    with Study(file) as study:
        rows = list(study.rows())
        write_figure(study, rows, chosen_value(rows, value), over, figure)
    messages().print(f"wrote {figure}", markup=False)


@app.command("export", cls=HelpfulCommand)
def export(
    file: StudyArgument,
    out: Annotated[
        Path, typer.Argument(metavar="FILE", parser=path_of("FILE", "a file"), help="A .csv or .parquet to write.")
    ],
) -> None:
    """Write the results as a table for other tools."""
    suffix = out.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise InputError("FILE", out, "a file that ends in .csv or .parquet")
    place = OutFile("FILE", out, begins_with(_CSV_MARK if suffix == ".csv" else b"PAR1"))
    with place, Study(file) as study:
        place.write(_csv(list(study.rows())) if suffix == ".csv" else _parquet(study))
        place.keep()
    messages().print(f"wrote {printable(out)}", markup=False)


def _csv(rows: Sequence[Row]) -> bytes:
    written = io.StringIO()
    table = csv.DictWriter(written, columns(rows), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return written.getvalue().encode()


def _parquet(study: Study) -> bytes:
    written = io.BytesIO()
    frame = study.frame()
    try:
        frame.to_parquet(written)
    except ImportError as error:
        raise InputError("FILE", ".parquet", "an installed pyarrow: pip install pyarrow") from error
    return written.getvalue()


def chosen_value(rows: Sequence[Row], value: str | None) -> str:
    """The column that is asked for. Raises InputError for one that there is not."""
    known = columns(rows)
    if not rows:
        raise InputError("STUDY", "no results", "a study with points that are done")
    chosen = value or default_value(rows)
    if chosen is None or chosen not in known:
        raise InputError("--value", value or "", "one of " + ", ".join(known))
    return chosen


def print_study(study: Study, rows: Sequence[Row]) -> None:
    """A heading, and a table of the study's rows."""
    axes = study.axis_names
    counts = ", ".join(f"{number} {state}" for state, number in study.counts().items() if number)
    output().print(f"# apenet {' '.join(study.command)}: {counts or 'no points'}", markup=False)
    if not rows:
        return
    value = default_value(rows)
    if value is not None and study.draw_method == ENDS:
        _print_swings(study, rows, value)
    elif value is not None and study.draw_method is not None:
        _print_intervals(rows, axes, value)
    else:
        varied = [name for name in axes if name in varying(rows, axes)]
        measured = measured_columns(rows, axes)
        told = {value, *varying(rows, measured)}
        names = [*varied, *(name for name in measured if name in told)]
        _print_rows(rows, names, names)
    for axis, machines in without_effect(rows, [name for name in axes if name != DRAW]):
        output().print(f"{axis} changes no result on {', '.join(machines)}", markup=False)


def _print_swings(study: Study, rows: Sequence[Row], value: str) -> None:
    by = [name for name in study.axis_names if name != DRAW] + size_columns(rows, study.axis_names)
    found = swings_of(rows, by, study.drawn_values(), value)
    shown = varying([dict(zip(by, key, strict=True)) for key in found], by) if len(found) > 1 else []
    table = [
        {
            **dict(zip(by, key, strict=True)),
            "number": one.key,
            value: one.given,
            "at its least": one.at_low,
            "at its largest": one.at_high,
        }
        for key, swings in found.items()
        for one in swings
        if one.effect > 0
    ]
    names = [*shown, "number", value, "at its least", "at its largest"]
    _print_rows(table, names, names)


def _print_intervals(rows: Sequence[Row], axes: Sequence[str], value: str) -> None:
    by = [name for name in axes if name != DRAW] + size_columns(rows, axes)
    found = intervals(rows, by, value)
    shown = varying([dict(zip(by, key, strict=True)) for key in found], by)
    table = [
        {
            **dict(zip(by, key, strict=True)),
            value: one.given,
            "median": one.median,
            "5 %": one.low,
            "95 %": one.high,
            "draws": one.draws,
        }
        for key, one in found.items()
    ]
    names = [*shown, value, "median", "5 %", "95 %", "draws"]
    _print_rows(table, names, names)


def _print_rows(rows: Sequence[dict[Any, Any]], keys: Sequence[Any], titles: Sequence[str]) -> None:
    table = Table(box=None, pad_edge=False)
    for key, title in zip(keys, titles, strict=True):
        is_text = any(isinstance(row.get(key), str) for row in rows)
        table.add_column(title, justify="left" if is_text else "right")
    for row in rows[:MOST_ROWS]:
        table.add_row(*(shown_value(row.get(key)) for key in keys))
    print_tables(table)
    if len(rows) > MOST_ROWS:
        output().print(f"and {len(rows) - MOST_ROWS} more rows (apenet study export)", markup=False)


def shown_value(value: object) -> str:
    """A cell of a table."""
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
