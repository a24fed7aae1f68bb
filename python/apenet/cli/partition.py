"""apenet partition list, check, draw and filter."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from apenet.base.infiles import printable
from apenet.base.pictures import check_picture_file, write_picture
from apenet.cli.commands import HelpfulCommand
from apenet.cli.common import (
    FaultOption,
    JsonOption,
    MachineOption,
    RailOption,
    SetOption,
    messages,
    output,
    path_of,
    print_json,
    print_tables,
)
from apenet.machine import machine as read_machine
from apenet.machine.partition_links import PartitionCheck, check_partitions, chosen_partitions
from apenet.machine.partition_picture import drawn_partitions
from apenet.machine.submit_filter import filtered

app = typer.Typer(help="Divide a machine into partitions.", no_args_is_help=True)

_MOST_SHOWN = 4

FileArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]",
        parser=path_of("partitions", "a file"),
        help="TOML with [partition]; without it, the machine's own.",
    ),
]
SplitOption = Annotated[
    str | None,
    typer.Option("--split", metavar="BOX", help="Divide a torus or mesh into boxes of these extents."),
]


@app.command("list", cls=HelpfulCommand)
def list_partitions(
    file: FileArgument = None,
    machine: MachineOption = "ape16",
    settings: SetOption = None,
    box: SplitOption = None,
    as_json: JsonOption = False,
) -> None:
    """List partitions with their nodes: those of the machine's file, of FILE, or of --split."""
    chosen = read_machine(machine, settings or ())
    partitions = chosen_partitions(chosen, file, box)
    if as_json:
        rows = [{"name": one.given, "partition": one.text, "nodes": list(one.nodes)} for one in partitions]
        print_json({"machine": chosen.name, "partitions": rows})
        return
    table = Table(box=None, pad_edge=False)
    for title in ("name", "partition", "nodes", "first node", "last node"):
        table.add_column(title, justify="right" if "node" in title else "left")
    for one in partitions:
        table.add_row(one.given, one.text, *map(str, (len(one.nodes), min(one.nodes), max(one.nodes))))
    print_tables(table)


@app.command(cls=HelpfulCommand)
def check(
    file: FileArgument = None,
    machine: MachineOption = "ape16",
    settings: SetOption = None,
    rail: RailOption = None,
    faults: FaultOption = None,
    box: SplitOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say which links partitions share, which routes leave their partition, and which faults touch it."""
    chosen = read_machine(machine, settings or (), faults or (), rail)
    checked = check_partitions(chosen, chosen_partitions(chosen, file, box))
    if as_json:
        print_json(checked.to_json())
    else:
        output().print("\n".join(_lines(checked)), markup=False)


def _lines(checked: PartitionCheck) -> list[str]:
    lines = []
    names = [one.partition.given for one in checked.partitions]
    for one in checked.partitions:
        what = f"{one.partition.given}: {one.partition.shape}, {len(one.partition.nodes)} nodes, {len(one.links)} links"
        if one.partition.extents:
            what += f", {len(one.leaving)} of them outside: {_some(one.leaving)}" if one.leaving else ", none outside"
        lines += [what, *(f"{one.partition.given}: fault {fault}" for fault in one.faults)]
    for (first, second), links in checked.shared.items():
        lines.append(f"{names[first]} and {names[second]} share {len(links)} links: {_some(links)}")
    if not checked.shared:
        lines.append("no two partitions share a link")
    return lines


def _some(links: tuple[str, ...]) -> str:
    more = len(links) - _MOST_SHOWN
    return ", ".join(links[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")


@app.command(cls=HelpfulCommand)
def draw(
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FILE", parser=path_of("--out", "a file"), help="The picture: png, svg or pdf."),
    ],
    file: FileArgument = None,
    machine: MachineOption = "ape16",
    settings: SetOption = None,
    box: SplitOption = None,
) -> None:
    """Draw the machine with its partitions in colours, and the links that partitions share in red."""
    check_picture_file("--out", out)
    chosen = read_machine(machine, settings or ())
    partitions = chosen_partitions(chosen, file, box)
    checked = check_partitions(chosen, partitions)
    write_picture("--out", out, lambda plt: drawn_partitions(checked, plt))
    messages().print(f"wrote {printable(out)}", markup=False)


@app.command("filter", cls=HelpfulCommand)
def filter_script(machine: MachineOption = "ape16", settings: SetOption = None) -> None:
    """Torque's submit filter: replace -l partition= of a job script on standard input by the nodes."""
    script = sys.stdin.buffer.read().decode(errors="surrogateescape")
    changed = filtered(script, read_machine(machine, settings or ()))
    sys.stdout.buffer.write(changed.encode(errors="surrogateescape"))
