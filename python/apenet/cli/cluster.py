"""apenet cluster run: several jobs on one machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from apenet.base.pictures import FIGURE, check_picture_file, write_picture
from apenet.cli import slurm
from apenet.cli.commands import HelpfulCommand
from apenet.cli.common import (
    AllowLongOption,
    JsonOption,
    messages,
    output,
    path_of,
    print_json,
    print_tables,
    progress_bar,
)
from apenet.cluster import ClusterResult, run_file
from apenet.machine.partition_picture import drawn_partitions
from apenet.run.results import show_time

app = typer.Typer(help="Run several jobs on one machine.", no_args_is_help=True)
app.command(cls=HelpfulCommand)(slurm.up)
app.command(cls=HelpfulCommand)(slurm.down)
app.command(context_settings={"allow_interspersed_args": False})(slurm.step)


@app.callback()
def cluster() -> None:
    """Run several jobs on one machine."""


@app.command(cls=HelpfulCommand)
def run(
    file: Annotated[
        Path,
        typer.Argument(metavar="JOBS.toml", parser=path_of("JOBS.toml", "a file"), help="The machine and its jobs."),
    ],
    matrix: Annotated[
        bool,
        typer.Option("--matrix/--no-matrix", help="Simulate each pair of jobs, too.", show_default=False),
    ] = True,
    figure: Annotated[
        Path | None,
        typer.Option(
            FIGURE, metavar="FILE", parser=path_of(FIGURE, "a file"), help="Draw the machine by job: png, svg or pdf."
        ),
    ] = None,
    allow_long: AllowLongOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run the programs of several jobs, or replay their traces, together, and say what they cost each other."""
    if figure is not None:
        check_picture_file(FIGURE, figure)
    with progress_bar(str(file), None) as progress:
        result = run_file(
            file,
            matrix=matrix,
            allow_long=allow_long,
            progress=lambda step: progress.update(progress.task_ids[0], description=step),
        )
    for job in result.jobs:
        sys.stderr.buffer.write(job.stderr)
        (sys.stderr if as_json else sys.stdout).buffer.write(job.stdout)
        sys.stderr.flush()
        sys.stdout.flush()
    if as_json:
        print_json(result.to_json())
    else:
        _print(result)
    if figure is not None:
        write_picture(FIGURE, figure, lambda plt: drawn_partitions(result.check(), plt, "jobs"))
        messages().print(f"wrote {figure}", markup=False)
    if any(job.outcome != "completed" for job in result.jobs):
        raise typer.Exit(1)


def _print(result: ClusterResult) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("job", "ranks", "start", "time", "alone", "slowdown", "shares links with"):
        table.add_column(title, justify="left" if title in ("job", "shares links with") else "right")
    for job in result.jobs:
        shared = ", ".join(f"{name} ({len(links)})" for name, links in job.shared.items())
        times = [_shown(job.time_us, job.outcome), _shown(job.alone_us, "-"), _factor(job.slowdown)]
        table.add_row(job.name, str(len(job.nodes)), show_time(job.start_us), *times, shared or "none")
    print_tables(table)
    lines = [f"job {job.name}: {job.outcome}: {job.message}" for job in result.jobs if job.outcome != "completed"]
    lines += [f"warning: job {job.name}: {text}" for job in result.jobs for text in job.warnings]
    lines += [f"warning: {text}" for text in result.warnings]
    if lines:
        output().print("\n".join(lines), markup=False)
    if result.interference is not None and len(result.jobs) > 1:
        output().print("slowdown of a row's job beside a column's alone:", markup=False)
        matrix = Table(box=None, pad_edge=False)
        for title in ("", *(job.name for job in result.jobs)):
            matrix.add_column(title, justify="right" if title else "left")
        for job, row in zip(result.jobs, result.interference, strict=True):
            matrix.add_row(job.name, *map(_factor, row))
        print_tables(matrix)
    output().print(
        f"{result.machine}: {show_time(result.virtual_time_us)} of virtual time, {result.messages} messages; "
        f"{result.busiest_text}; {result.wall_time_s:.2f} s of wall time",
        markup=False,
    )


def _shown(time_us: float | None, otherwise: str) -> str:
    return otherwise if time_us is None else show_time(time_us)


def _factor(slowdown: float | None) -> str:
    return "-" if slowdown is None else f"{slowdown:.4f}"
