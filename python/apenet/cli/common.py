"""Parts that the commands share: common options, the two consoles, and the progress bar."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console, ConsoleDimensions, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from apenet.base.errors import NotWrittenError
from apenet.base.escape import escape_line, escape_text
from apenet.base.outfiles import given_path
from apenet.run.long_runs import ALLOW_LONG

Result = TypeVar("Result")

MachineOption = Annotated[
    str,
    typer.Option("--machine", "-m", help="Name of a machine, or the path of a machine file.", show_default=True),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY.PATH=VALUE", help="Change one parameter; repeatable."),
]
FaultOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fault", metavar="SPEC", help="A link or node fails: 'link (0,0,0)+x down @10us up @2ms'; repeatable."
    ),
]
RailOption = Annotated[
    str | None,
    typer.Option("--rail", metavar="NAME", help="Use only this card, if nodes have several: first, ib ..."),
]
PartitionOption = Annotated[
    str | None,
    typer.Option(
        "--partition", metavar="NAME|BOX", help="Place ranks in this part of the machine: 1x4x4@3,0,0, nodes:0-3,8."
    ),
]
CheckSettingsOption = Annotated[
    bool,
    typer.Option(
        "--check-settings/--no-check-settings",
        help="Say which --set has no effect; costs a simulation for each.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
AllowLongOption = Annotated[bool, typer.Option("--allow-long", help=ALLOW_LONG)]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Seed of the simulation.")]


def path_of(option: str, expected: str) -> Callable[[str], Path]:
    """A parser for options that are paths. It refuses an empty path, which pathlib would take for `.`."""

    def parse(text: str | Path) -> Path:
        path = given_path(option, text, expected)
        return Path() if path is None else path

    return parse


TraceOption = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        metavar="FILE",
        parser=path_of("trace", "a file"),
        help="Write a timeline of the run, for ui.perfetto.dev; compressed if its name ends in .gz.",
    ),
]
TraceRanksOption = Annotated[
    str | None, typer.Option("--trace-ranks", metavar="0-3,8", help="Only the events of these ranks in the timeline.")
]
TraceFromOption = Annotated[
    str | None, typer.Option("--trace-from", metavar="TIME", help="Only events from this virtual time on, such as 2ms.")
]
TraceToOption = Annotated[
    str | None, typer.Option("--trace-to", metavar="TIME", help="Only events up to this virtual time.")
]
TraceLeastOption = Annotated[
    str | None, typer.Option("--trace-least", metavar="BYTES", help="Only messages of at least this size, such as 4K.")
]
ToMachineOption = Annotated[
    Path | None,
    typer.Option(
        "--to-machine",
        metavar="NAME.toml",
        parser=path_of("--to-machine", "a file such as my-fabric.toml"),
        help="Write a machine file with these times, and measure that machine.",
    ),
]
ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="[FILE]",
        parser=path_of("report", "a file"),
        help="Explain the run's time in a page, by default report.html (apenet explain).",
    ),
]
MeasurementReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="[FILE]",
        parser=path_of("report", "a file"),
        help="Show the results in a page, by default report.html.",
    ),
]
RanksPerNodeOption = Annotated[int, typer.Option("--ranks-per-node", help="Ranks that share a node's card.")]
MapOption = Annotated[
    str,
    typer.Option(
        "--map", metavar="FILE|linear|random:SEED|cart:PxQxRxS|cart:auto", help="Placement of ranks on nodes."
    ),
]
EngineOption = Annotated[str, typer.Option("--engine", metavar="packet|flit", help="Engine of the network.")]
EngineOrBothOption = Annotated[
    str,
    typer.Option(
        "--engine", metavar="packet|flit|both", help="Engine of the network; both: packet, and also the time with flit."
    ),
]
RunFolderOption = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", parser=path_of("out", "a folder"), help="Folder for the run's files."),
]
PinOption = Annotated[
    bool | None,
    typer.Option(
        "--pin/--no-pin",
        help="Run on one core, or on all. By default the run chooses: ranks that compute use all. Same results.",
        show_default=False,
    ),
]


def unkept(error: NotWrittenError, result: type[Result]) -> Result:
    """The result whose file could not be written, so that the caller can print it before it raises the error."""
    if not isinstance(error.result, result):
        raise error
    return error.result


FILE_WIDTH = 160  # for output to a file or a pipe, where lines are not wrapped; tables may be wider
_NATURAL = 10_000  # wider than any table


class SafeConsole(Console):
    """A console on which foreign text has no effect: control characters are escaped before styles are added."""

    def render_str(self, text: str, **options: Any) -> Text:  # noqa: ANN401 (those of Console)
        """As of Console, whose texts lose some control characters silently."""
        return super().render_str(escape_text(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """As of Console."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(escape_text(segment.text), segment.style)


def output() -> Console:
    """Standard output."""
    return SafeConsole(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else FILE_WIDTH)


def print_tables(content: RenderableType) -> None:
    """A table, or a group with tables.

    Names, keys and values are never cut. On a terminal, columns of text are folded, and a table whose words do not fit
    becomes a list: no row is broken.
    """
    console = output()
    parts = content.renderables if isinstance(content, Group) else [content]
    if console.is_terminal:
        parts = [_fitting(console, part) if isinstance(part, Table) else part for part in parts]
    else:
        widths = [_width(console, table) for table in parts if isinstance(table, Table)]
        console.size = ConsoleDimensions(max([console.width, *widths]), console.height)
    console.print(Group(*parts))


def _fitting(console: Console, table: Table) -> Table:
    """The table, or its rows as a list if it is too wide: the first cell, and below it a line for each other one."""
    for column in table.columns:
        column.overflow = "fold"
    if _width(console, table) <= console.width:
        return table
    rows = Table(box=None, show_header=False, pad_edge=False, title=table.title)
    rows.add_column(overflow="fold")
    for first, *others in zip(*(column.cells for column in table.columns), strict=True):
        rows.add_row(first)
        for column, cell in zip(table.columns[1:], others, strict=True):
            if cell != "":
                rows.add_row(Padding(_labelled(column.header, cell), (0, 0, 0, 2)))
    return rows


def _labelled(header: RenderableType, cell: RenderableType) -> RenderableType:
    """`header: cell`, where both are texts as they are in tables of columns."""
    if isinstance(header, str) and isinstance(cell, str):
        return f"{header}: {cell}" if header else cell
    return Group(header, cell)


def _width(console: Console, table: Table) -> int:
    """The minimum width of a table: on a terminal, a column of text needs the width of its longest word."""
    options = console.options.update(width=_NATURAL)
    needed = table.__rich_measure__(console, options).maximum
    if console.is_terminal:
        for column in table.columns:
            if not column.no_wrap:
                cells = [Measurement.get(console, options, cell) for cell in (column.header, *column.cells)]
                needed -= max(cell.maximum for cell in cells) - max(cell.minimum for cell in cells)
    return needed


def messages() -> Console:
    """Standard error: everything except the result."""
    return SafeConsole(stderr=True, highlight=False, soft_wrap=True)


def print_json(content: dict[str, Any] | list[Any]) -> None:
    """Prints one JSON object."""
    sys.stdout.write(json.dumps(content) + "\n")


@contextmanager
def progress_bar(label: str, total: int | None) -> Iterator[Progress]:
    """A progress bar on standard error if that is a terminal. Its task counts to `total`, or spins if None."""
    console = messages()
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        *([BarColumn()] if total else []),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        progress.add_task(escape_line(label), total=total)
        yield progress
