"""What the commands share: their options, their two consoles, and progress that only a person sees."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

MachineOption = Annotated[
    str,
    typer.Option("--machine", "-m", help="Name of a machine, or the path of a machine file.", show_default=True),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY.PATH=VALUE", help="Change one parameter; any number of times."),
]
FaultOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fault", metavar="SPEC", help="A link or node dies: 'link (0,0,0)+x down @10us up @2ms'; any number of times."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of the simulation.")]
TraceOption = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE", help="Write a trace of the run that ui.perfetto.dev opens."),
]
RanksPerNodeOption = Annotated[int, typer.Option("--ranks-per-node", help="Ranks that share a node's card.")]
MapOption = Annotated[
    str, typer.Option("--map", metavar="FILE|linear|random:SEED", help="Which rank runs on which node.")
]
EngineOption = Annotated[str, typer.Option("--engine", metavar="packet|flit", help="Engine of the network.")]
RunFolderOption = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Folder for the run's files.")]
PinOption = Annotated[bool, typer.Option("--pin/--no-pin", help="Run on one core: faster; the results are the same.")]


FILE_WIDTH = 160  # of a table that goes into a file or a pipe, where nothing wraps it


def output() -> Console:
    """Standard output."""
    return Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else FILE_WIDTH)


def messages() -> Console:
    """Standard error: everything that is not the result."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def print_json(content: dict[str, Any] | list[Any]) -> None:
    """One object, for programs."""
    sys.stdout.write(json.dumps(content) + "\n")


@contextmanager
def progress_bar(label: str, total: int | None) -> Iterator[Progress]:
    """A bar on standard error, if that is a terminal; its one task counts to total, or spins without one."""
    console = messages()
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        *([BarColumn()] if total else []),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        progress.add_task(label, total=total)
        yield progress
