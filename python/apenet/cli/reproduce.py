"""apenet reproduce: compares published results with simulated ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from apenet.cli.common import JsonOption, messages, path_of, print_json, print_tables, progress_bar
from apenet.reproduce import Plan, Reproduction, Row, Task, plan
from apenet.reproduce import reproduce as measure_all
from apenet.reproduce.report import Report


def reproduce(
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="KEY", help="A machine, or the key of a published result; repeatable."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            parser=path_of("out", "a folder"),
            help="Folder for report/: index.html, report.json and figures.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Simulate the published measurements, and compare with the published values.

    The status is 1 if a hard target is missed.
    """
    planned = plan(only or (), with_figures=out is not None)
    if out is None:
        reproduction = _measured(planned)
        _print(reproduction, as_json)
    else:
        with Report(out / "report", planned.figures) as report:
            reproduction = _measured(planned)
            _print(reproduction, as_json)
            messages().print("wrote " + " and ".join(map(str, report.keep(reproduction))), markup=False)
    raise typer.Exit(0 if reproduction.agrees else 1)


def _measured(planned: Plan) -> Reproduction:
    with progress_bar("reproducing", len(planned.tasks)) as progress:
        bar = progress.task_ids[0]

        def one_done(task: Task) -> None:
            progress.update(bar, description=f"done: {task.label}", advance=1)

        return measure_all(planned, one_done)


def _print(reproduction: Reproduction, as_json: bool) -> None:
    if as_json:
        print_json(reproduction.to_json())
    else:
        print_tables(_table(reproduction))


def _table(reproduction: Reproduction) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("key", "machine"):
        table.add_column(column, no_wrap=True)
    for column in ("published", "simulated", "error"):
        table.add_column(column, justify="right", no_wrap=True)
    for column in ("target", "class", "verdict"):
        table.add_column(column, no_wrap=True)
    for row in reproduction.rows:
        size = "" if row.size_bytes is None else f" @{row.size_bytes}"
        table.add_row(
            f"{row.key}{size}",
            row.machine,
            _published(row),
            "" if row.simulated is None else f"{row.simulated:.4g} {row.unit}",
            "" if row.error_percent is None else f"{row.error_percent:+.1f} %",
            row.target,
            row.role or "",
            {"pass": "[green]pass[/]", "miss": "[red]miss[/]", "n/a": "n/a"}[row.verdict],
        )
    return table


def _published(row: Row) -> str:
    if isinstance(row.published, str):
        return row.published
    bound = {"upper": "< ", "lower": "> ", None: ""}[row.bound]
    return f"{bound}{row.published:g} {row.unit}"
