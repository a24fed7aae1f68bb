"""apenet machines, apenet machine show, check and keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from apenet.base.errors import InputError
from apenet.base.escape import escape_line
from apenet.cli.commands import HelpfulCommand
from apenet.cli.common import JsonOption, RailOption, SetOption, output, path_of, print_json, print_tables
from apenet.fit.data_sheet import BASES, Sheet, new_machine, stream_gb_s
from apenet.machine import Machine, machines
from apenet.machine import machine as read_machine
from apenet.machine.keys import Key, keys, sections
from apenet.machine.quantity import quantities
from apenet.slurm.topology import read_topology, topology_conf, topology_yaml

app = typer.Typer(help="Show, check or write one machine.", no_args_is_help=True)

SLURM_FORMS = {"yaml": topology_yaml, "conf": topology_conf}


def _traits(machine: Machine) -> dict[str, Any]:
    return {
        "name": machine.name,
        "title": machine.file.machine.title,
        "summary": machine.file.machine.summary,
        "topology": machine.file.network.topology.value,
        "dims": list(machine.dims),
        "nodes": machine.node_count,
        "card": machine.file.card.kind,
    }


def list_machines(as_json: JsonOption = False) -> None:
    """List the machines that come with the package."""
    if as_json:
        print_json({"machines": [_traits(machine) for machine in machines()]})
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("name", "nodes", "card", "summary"):
        table.add_column(column, no_wrap=column != "summary")
    for machine in machines():
        table.add_row(machine.name, machine.shape, machine.file.card.kind, machine.file.machine.summary)
    print_tables(table)


def _arrangement(machine: Machine) -> Iterator[str]:
    """Lines on topology and routing; none without a network."""
    traits = machine.arrangement()
    if traits is None:
        return
    network = machine.file.network
    size = f"{machine.shape} " if machine.dims else ""
    counts = (
        f"{traits.nodes} nodes, {traits.routers} routers of {traits.ports_per_router} ports, {traits.cables} cables"
    )
    yield f"topology: {size}{network.topology.value}, {counts}"
    routing = machine.description().base_units()["network.routing"]
    classes = "1 class" if traits.channel_classes == 1 else f"{traits.channel_classes} classes"
    yield f"routing: {routing}, {classes} of virtual channels"
    yield f"deadlock: {'free of it' if traits.is_free_of_deadlock else 'possible'}, {traits.proof}"


@app.command(cls=HelpfulCommand)
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a machine, or the path of a file.")],
    settings: SetOption = None,
    rail: RailOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a machine file with all parameters. Prints each with its class and source.

    Comments at the top give topology, routing, and the result of the deadlock check.
    """
    machine = read_machine(name, settings or (), rail=rail)
    if as_json:
        print_json(machine.file.model_dump(mode="json", by_alias=True, exclude_none=True))
    else:
        for line in _arrangement(machine):
            output().print(f"# {line}", markup=False, highlight=False)
        output().print(machine.to_toml(), markup=False, end="")


@app.command(cls=HelpfulCommand)
def export(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a machine, or the path of a file.")],
    slurm: Annotated[
        str,
        typer.Option("--slurm", metavar="yaml|conf", help="The topology, as Slurm's topology.yaml or topology.conf."),
    ],
    settings: SetOption = None,
) -> None:
    """Print what other programs read of a machine: its topology for Slurm."""
    if slurm not in SLURM_FORMS:
        raise InputError("slurm", slurm, " or ".join(SLURM_FORMS))
    output().print(SLURM_FORMS[slurm](read_machine(name, settings or ())), markup=False, end="", soft_wrap=True)


@app.command(cls=HelpfulCommand)
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A machine file, or the name of a machine.")],
    settings: SetOption = None,
    rail: RailOption = None,
) -> None:
    """Check a machine file. This covers keys, units, ranges, partitions, wiring, and freedom from deadlock."""
    machine = read_machine(file, settings or (), rail=rail)
    partitions = machine.partitions
    machine.wire()
    traits = f"{machine.shape}, {machine.file.network.topology.value}, card {machine.file.card.kind}"
    if len(machine.rails) > 1:
        traits += f"; rails {', '.join(machine.rails)}"
    output().print(f"{escape_line(str(file))}: {machine.name} is a machine that can be run: {traits}", markup=False)
    for line in _arrangement(machine):
        output().print(line, markup=False, highlight=False)
    if partitions:
        listed = ", ".join(f"{one.given} {one.text}" for one in partitions)
        output().print(f"partitions: {listed}", markup=False, highlight=False)


@app.command(cls=HelpfulCommand)
def new(
    file: Annotated[
        Path, typer.Argument(metavar="NAME.toml", parser=path_of("FILE", "a file"), help="The file to write.")
    ],
    link: Annotated[
        str, typer.Option("--link", metavar="RATE", help="A link's rate in one direction: 200Gbit, 25GB/s.")
    ],
    nodes: Annotated[
        str | None, typer.Option("--nodes", metavar="N|XxYxZ", help="Number of nodes, or a torus's dimensions.")
    ] = None,
    topology: Annotated[
        str | None, typer.Option("--topology", metavar="|".join(BASES), help="How they are connected.")
    ] = None,
    slurm: Annotated[
        Path | None,
        typer.Option(
            "--slurm",
            metavar="topology.yaml",
            parser=path_of("slurm", "a file"),
            help="A file of Slurm that says both: a 3D torus, or a tree.",
        ),
    ] = None,
    latency: Annotated[
        str | None,
        typer.Option(
            "--latency", metavar="TIME", help="Half the round trip of 8 bytes between neighbours, without MPI."
        ),
    ] = None,
    bus: Annotated[
        str | None, typer.Option("--bus", metavar="pcieGxL", help="The card's bus, such as pcie4x16.")
    ] = None,
    leaf: Annotated[
        int | None, typer.Option("--leaf", metavar="N", help="Nodes on a leaf switch of a fat tree.")
    ] = None,
    uplinks: Annotated[
        int | None, typer.Option("--uplinks", metavar="N", help="Uplinks of a leaf switch; by default one a node.")
    ] = None,
) -> None:
    """Write a machine file from a data sheet. What the sheet does not say is assumed, and marked so."""
    if (slurm is None) == (nodes is None) or (nodes is None) != (topology is None):
        given = {"--nodes": nodes, "--topology": topology, "--slurm": slurm}
        named = " ".join(name for name, value in given.items() if value is not None) or "none of them"
        raise InputError("nodes, topology, slurm", named, "--nodes and --topology, or --slurm FILE")
    if slurm is not None:
        found = read_topology(slurm)
        nodes, topology, leaf = found.nodes, found.topology, found.leaf if leaf is None else leaf
    machine = new_machine(file, Sheet(nodes or "", topology or "", link, latency, bus, leaf, uplinks))
    classes = Counter(quantity.origin for _, quantity in quantities(machine.file))
    counts = ", ".join(f"{classes[name]} {name}" for name in ("derived", "fitted", "assumed") if classes[name])
    written = escape_line(str(file))
    output().print(f"{written}: {machine.shape}, {topology}; {counts} (apenet machine show {written})", markup=False)
    output().print(f"a stream between neighbours carries {stream_gb_s(machine):.4g} GB/s", markup=False)


@app.command("keys", cls=HelpfulCommand)
def show_keys(
    section: Annotated[str, typer.Argument(metavar="SECTION", help="bus, router, card hca ...; by default all.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Show the keys of machine files. Prints their values and units, defaults, meanings."""
    if section and section not in sections():
        raise InputError("section", section, "one of " + ", ".join(sections()))
    chosen = {name: list(keys(name)) for name in ([section] if section else sections())}
    if as_json:
        print_json({name: [key._asdict() for key in listed] for name, listed in chosen.items()})
        return
    for name, listed in chosen.items():
        output().print(f"[{name}]", markup=False, style="bold")
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in Key._fields:
            table.add_column(column, no_wrap=column == "key")
        for key in listed:
            table.add_row(*key)
        print_tables(table)
