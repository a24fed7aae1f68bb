"""apenet map: a better placement of ranks on nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from apenet.base.escape import escape_line
from apenet.base.outfiles import OutFile, begins_with
from apenet.base.pictures import FIGURE, check_picture_file
from apenet.cli.common import (
    JsonOption,
    MachineOption,
    MapOption,
    PartitionOption,
    RailOption,
    RanksPerNodeOption,
    SetOption,
    messages,
    output,
    path_of,
    print_json,
    print_tables,
    progress_bar,
)
from apenet.machine import machine as read_machine
from apenet.placing import PlacementResult, Score, optimise_placement
from apenet.placing.figure import write_figure
from apenet.run.results import show_size


def place(
    traffic: Annotated[
        Path,
        typer.Option(
            "--from",
            metavar="RUN.goal|MATRIX",
            parser=path_of("--from", "a GOAL trace or a matrix of bytes"),
            help="What the ranks send: a trace of apenet run --record, or a square matrix of bytes.",
        ),
    ],
    machine: MachineOption = "ape16",
    settings: SetOption = None,
    rail: RailOption = None,
    partition: PartitionOption = None,
    ranks_per_node: RanksPerNodeOption = 1,
    start: MapOption = "linear",
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", parser=path_of("--out", "a file"), help="Write the map, for run --map."),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(FIGURE, metavar="FILE", parser=path_of(FIGURE, "a file"), help="Draw both placements."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the search.")] = 1,
    as_json: JsonOption = False,
) -> None:
    """Score and improve a placement of ranks. Reads what the ranks of a program send."""
    if figure is not None:
        check_picture_file(FIGURE, figure)
    file = None if out is None else OutFile("--out", out, begins_with(b"# map of "))
    with progress_bar(f"{traffic} on {machine}", None) as progress:
        result = optimise_placement(
            traffic,
            machine=read_machine(machine, settings or (), (), rail, partition),
            ranks_per_node=ranks_per_node,
            start=start,
            seed=seed,
            progress=lambda step: progress.update(progress.task_ids[0], description=step),
        )
    if as_json:
        print_json(result.to_json())
    else:
        _print(result)
    if file is not None:
        with file:
            file.write(result.map_file().encode())
            file.keep()
    if figure is not None:
        write_figure(result, figure)
        messages().print(f"wrote {figure}", markup=False)


def _print(result: PlacementResult) -> None:
    allocation = result.machine.allocation
    shape = "" if allocation.shape in allocation.name else f", {allocation.shape}"
    output().print(
        f"# {escape_line(result.traffic.source)}: {result.traffic.ranks} ranks on {allocation.name}{shape}",
        markup=False,
    )
    table = Table(box=None, pad_edge=False)
    for title in ("", "hop-bytes", "mean dilation", "largest", "to non-neighbours", "busiest link", ""):
        table.add_column(title, justify="right" if title else "left")
    for name, score in ((result.start, result.before), ("found", result.after)):
        table.add_row(name, *_cells(score))
    print_tables(table)


def _cells(score: Score) -> list[str]:
    return [
        show_size(round(score.hop_bytes)),
        f"{score.mean_dilation:.3f}",
        f"{score.largest_dilation:g}",
        show_size(score.non_neighbour_bytes),
        show_size(round(score.largest_link_bytes)),
        score.busiest,
    ]
