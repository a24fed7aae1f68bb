"""apenet reproduce: published results beside simulated ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from apenet.cli.common import JsonOption, messages, output, print_json, progress_bar
from apenet.reproduce import Comparison, Reproduction, Sweep, plan, plot
from apenet.reproduce import reproduce as measure_all
from apenet.runfolder import prepare


def add_to(app: typer.Typer) -> None:
    """Registers the command."""
    app.command("reproduce")(reproduce)


def reproduce(
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="KEY", help="A machine, or MACHINE.RESULT; repeatable."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Folder for results.json and plot.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure what was published, and print it beside the published values. Status 1 if a tolerance is exceeded."""
    if out is not None:
        prepare(out)
    sweeps = plan(only or ())
    with progress_bar("reproducing", len(sweeps)) as progress:
        task = progress.task_ids[0]

        def next_sweep(sweep: Sweep) -> None:
            label = f"{sweep.machine.name}: {sweep.test}, layer {sweep.layer}"
            progress.update(task, description=label, completed=sweeps.index(sweep))

        reproduction = measure_all(sweeps, next_sweep)
    if as_json:
        print_json(reproduction.to_json())
    else:
        output().print(_table(reproduction))
    if out is not None:
        (out / "results.json").write_text(json.dumps(reproduction.to_json(), indent=2) + "\n", encoding="utf-8")
        plot(reproduction, out / "results.png")
        messages().print(f"wrote {out / 'results.json'} and {out / 'results.png'}", markup=False)
    raise typer.Exit(0 if reproduction.agrees else 1)


def _table(reproduction: Reproduction) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("machine")
    table.add_column("quantity")
    for column in ("published", "simulated", "error"):
        table.add_column(column, justify="right")
    table.add_column("role")
    table.add_column("")
    for comparison in reproduction.comparisons:
        published = comparison.published
        unit = "us" if published.quantity == "time_us" else "MiB/s"
        bound = "< " if published.bound == "below" else ""
        table.add_row(
            comparison.machine,
            f"{comparison.key.replace('_', ' ')} ({published.layer})",
            f"{bound}{published.value:g} {unit}",
            f"{comparison.simulated:.4g} {unit}",
            "" if comparison.error_percent is None else f"{comparison.error_percent:+.1f} %",
            published.role,
            _verdict(comparison),
        )
    return table


def _verdict(comparison: Comparison) -> str:
    if comparison.agrees is None:
        return ""
    if comparison.agrees:
        return "[green]agrees[/]"
    tolerance = comparison.published.tolerance_percent
    return "[red]outside[/]" + (f" {tolerance:g} %" if tolerance is not None else "")
