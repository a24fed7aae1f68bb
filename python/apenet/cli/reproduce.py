"""apenet reproduce: compares published results with simulated ones."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from apenet.base.errors import InputError
from apenet.cli.common import JsonOption, messages, path_of, print_json, print_tables, progress_bar
from apenet.machine import machine
from apenet.machine.published import Role
from apenet.machine.quantity import Origin
from apenet.reproduce import Plan, Reproduction, Row, Task, plan
from apenet.reproduce import reproduce as measure_all
from apenet.reproduce.random_access import measure_rates
from apenet.reproduce.report import Report
from apenet.reproduce.sensitivity import SAMPLES, Sensitivity, Swing, holds_percent, sensitivity


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
    with_sensitivity: Annotated[
        bool,
        typer.Option(
            "--sensitivity",
            help="Vary each assumed number over its range: which results depend on one? Takes 30 minutes.",
        ),
    ] = False,
    samples: Annotated[
        int, typer.Option("--samples", min=1, max=4096, help="With --sensitivity: machines to draw from all ranges.")
    ] = SAMPLES,
    with_random_access: Annotated[
        bool,
        typer.Option(
            "--random-access",
            help="Measure the rates of RandomAccess, 16 to 1024 processes, anew. Takes 15 minutes.",
        ),
    ] = False,
) -> None:
    """Compare published with simulated results.

    The status is 1 if a hard target is missed or not measured, and with --sensitivity if a result has another class
    than its machine file says.
    """
    if with_random_access:
        _measure_random_access(as_json, excluded=[only, out, with_sensitivity])
        return
    if with_sensitivity:
        if out is not None:
            raise InputError("out", str(out), "no folder with --sensitivity: --json prints all")
        varied = _varied(plan(only or ()), set(only or ()), samples)
        if as_json:
            print_json(varied.to_json())
        else:
            print_tables(_sensitivity_table(varied))
        raise typer.Exit(0 if varied.agrees else 1)
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


def _varied(planned: Plan, only: set[str], samples: int) -> Sensitivity:
    names = dict.fromkeys(name for name, _, _ in planned.results)
    with progress_bar("varying", 1) as progress:
        bar = progress.task_ids[0]

        def one_done(task: Task) -> None:
            progress.update(bar, description=f"done: {task.label}", advance=1)

        def begin(count: int) -> None:
            progress.update(bar, total=count)

        return sensitivity([machine(name) for name in names], only, samples, begin, one_done)


def _measure_random_access(as_json: bool, excluded: list[object]) -> None:
    if any(excluded):
        raise InputError("random-access", "with --only, --out or --sensitivity", "alone or with --json")
    with progress_bar("measuring", 1) as progress:
        bar = progress.task_ids[0]
        found = measure_rates(
            lambda count: progress.update(bar, total=count),
            lambda run, _rate: progress.update(bar, description=f"done: {run.label}", advance=1),
        )
    if as_json:
        print_json(found)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("machine", "layer", "placement", "processes", "million updates/s"):
        table.add_column(column, justify="right" if column not in ("machine", "layer", "placement") else "left")
    for row in found["rates"]:
        rate = f"{row['updates_per_s'] * 1e-6:.1f}"
        table.add_row(row["machine"], row["layer"], row["placement"], str(row["processes"]), rate)
    print_tables(table)


def _print(reproduction: Reproduction, as_json: bool) -> None:
    if as_json:
        print_json(reproduction.to_json())
        return
    hard, soft, outside = (reproduction.count(target) for target in ("hard", "soft", "outside"))
    shown = [row for row in reproduction.rows if row.target == "outside"]
    print_tables(
        Group(
            *_lines([row for row in reproduction.rows if row.target != "outside"]),
            "",
            *(_outside_lines(shown) if shown else []),
            _numbers_table(reproduction),
            "",
            _targets_table(reproduction),
            "",
            *_wrapped(
                f"hard targets: {hard.met} met, {hard.missed} missed, {hard.unmeasured} not measured; "
                f"soft: {soft.met} met, {soft.missed} missed, {soft.unmeasured} not measured; "
                f"outside: {outside.met} met, {outside.missed} missed, {outside.unmeasured} not measured"
            ),
        )
    )


WIDTH = 80  # width of a usual terminal

_HEADER = ("bytes", "published", "simulated", "error", "target", "class", "holds", "")
_JUSTIFIED = (">", ">", ">", ">", "<", "<", ">", "<")


def _lines(rows: Sequence[Row]) -> list[Text]:
    """A heading for each key, because keys are long, and below it a line for each of its rows."""
    cells = [_cells(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(_HEADER, *cells, strict=True)]

    def line(texts: Sequence[str]) -> Text:
        aligned = zip(texts, _JUSTIFIED, widths, strict=True)
        return Text("  ".join(f"{text:{side}{width}}" for text, side, width in aligned).rstrip())

    lines = [Text("key (machine)", style="bold"), line(_HEADER)]
    lines[1].stylize("bold")
    before = None
    for row, texts in zip(rows, cells, strict=True):
        if row.key != before:
            heading = row.key if row.machine == "-" else f"{row.key} ({row.machine})"
            heading += f", not counted: it repeats {row.repeats}" if row.repeats else ""
            statement = f": {row.published}" if isinstance(row.published, str) else ""
            lines.extend(map(Text, _wrapped(heading + statement)))
            before = row.key
        lines.append(line(texts))
        lines[-1].highlight_words(["pass"], "green")
        lines[-1].highlight_words(["miss"], "red")
    return lines


def _outside_lines(rows: Sequence[Row]) -> list[Text]:
    """The section of results that were published elsewhere: below each key, how it is measured or why it is not."""
    lines = [Text("outside: published elsewhere, and not fitted to unless the class says so", style="bold")]
    for key in dict.fromkeys(row.key for row in rows):
        mine = [row for row in rows if row.key == key]
        how = [text for text in (mine[0].command, mine[0].reason) if text]
        lines += [*_lines(mine)[1:], *(Text(line) for text in how for line in _wrapped("  " + text))]
    return [*lines, Text("")]


def _cells(row: Row) -> tuple[str, ...]:
    return (
        "" if row.size_bytes is None else str(row.size_bytes),
        "" if isinstance(row.published, str) else _published(row.published, row),
        "" if row.simulated is None else f"{row.simulated:.4g} {row.unit}",
        "" if row.error_percent is None else f"{row.error_percent:+.1f} %",
        row.target,
        row.role or "",
        _share(holds_percent(row.key, row.size_bytes)),
        row.verdict,
    )


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


_VERDICTS = {"pass": "[green]pass[/]", "miss": "[red]miss[/]", "n/a": "n/a"}


def _share(percent: float | None) -> str:
    return "" if percent is None else f"{percent:.0f} %"


def _numbers_table(reproduction: Reproduction) -> Table:
    """The evidence for each machine."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("numbers of", no_wrap=True)
    for origin in get_args(Origin)[:-1]:
        table.add_column(origin, justify="right", no_wrap=True)
    for standing in reproduction.standings:
        table.add_row(standing.machine, *map(str, standing.numbers.values()))
    return table


def _targets_table(reproduction: Reproduction) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("targets met", no_wrap=True)
    for role in get_args(Role):
        table.add_column(role, justify="right", no_wrap=True)
    for standing in reproduction.standings:
        targets = [f"{met} of {known}" if known else "" for met, known in standing.targets.values()]
        table.add_row(standing.machine, *targets)
    return table


def _sensitivity_table(varied: Sensitivity) -> Group:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("key", no_wrap=True)
    table.add_column("simulated", justify="right", no_wrap=True)
    for column in ("verdict", "class"):
        table.add_column(column, no_wrap=True)
    table.add_column("holds for", justify="right", no_wrap=True)
    table.add_column("strongest assumptions: value at each end of the range (! another verdict)")
    for row in varied.rows:
        size = "" if row.size_bytes is None else f" @{row.size_bytes}"
        wrong = "" if row.role == row.found else f" [red](the file says {row.role})[/]"
        table.add_row(
            f"{row.key}{size}",
            _number(row.simulated),
            _VERDICTS[row.verdict],
            row.found + wrong,
            _share(row.holds_percent),
            "\n".join(map(_swing, _strongest(row.swings))),
        )
    drawn = [
        f"{name}: {count} assumed numbers, {valid} of {varied.samples} drawn machines can be built"
        for name, _, count, valid in varied.machines
    ]
    return Group(table, "", *drawn)


_MOST_SWINGS = 3


def _strongest(swings: tuple[Swing, ...]) -> list[Swing]:
    """The strongest, and each that changes the verdict."""
    return [swing for number, swing in enumerate(swings) if number < _MOST_SWINGS or swing.breaks]


def _swing(swing: Swing) -> str:
    mark = "! " if swing.breaks else ""
    low, high = _number(swing.at_low), _number(swing.at_high)
    return f"{mark}{swing.key}: {low} at {swing.low:g}, {high} at {swing.high:g}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _published(value: float, row: Row) -> str:
    bound = {"upper": "< ", "lower": "> ", None: ""}[row.bound]
    return f"{bound}{value:g} {row.unit}"
