"""apenet ip up and down: the nodes of a machine as network namespaces of this host."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from apenet.cli.commands import HelpfulCommand
from apenet.cli.common import MachineOption, SetOption, messages, path_of
from apenet.gateway import namespaces
from apenet.machine import machine as read_machine

app = typer.Typer(help="Join network namespaces of this host by a simulated network.", no_args_is_help=True)

DirOption = Annotated[
    Path,
    typer.Option("--dir", metavar="DIR", parser=path_of("dir", "a folder"), help="Folder of the network's state."),
]
_FOLDER = Path(namespaces.FOLDER)


@app.command(cls=HelpfulCommand)
def up(
    machine: MachineOption = "ape16",
    settings: SetOption = None,
    nodes: Annotated[int | None, typer.Option("--nodes", min=1, help="Only the first nodes of the machine.")] = None,
    pcap: Annotated[
        Path | None,
        typer.Option(
            "--pcap",
            metavar="FILE",
            parser=path_of("pcap", "a file"),
            help="Write all packets, for Wireshark and tcpdump.",
        ),
    ] = None,
    folder: DirOption = _FOLDER,
) -> None:
    """Make a network namespace for each node, joined by the simulated network in real time. Needs root."""
    network = namespaces.up(read_machine(machine, settings or ()), folder, nodes, pcap)
    first, *_, last = [*network.addresses(), *network.addresses()]
    names = f"{len(network.nodes)} nodes, {first[0]} ({first[1]}) to {last[0]} ({last[1]})"
    messages().print(f"{network.machine}: {names}. A shell there: ip netns exec {last[0]} sh", markup=False)
    messages().print("In real time: it does not repeat, and the host's delays are in all times.", markup=False)


@app.command(cls=HelpfulCommand)
def down(folder: DirOption = _FOLDER) -> None:
    """End the network, and remove all of it."""
    ended = namespaces.down(folder)
    if ended:
        messages().print(f"ended the processes in its namespaces: {' '.join(map(str, ended))}", markup=False)


@app.command(hidden=True)
def serve(
    folder: DirOption = _FOLDER,
    pcap: Annotated[str, typer.Option("--pcap", metavar="FILE", help="Write all packets.")] = "",
) -> None:
    """Carry the packets of a network: the process that apenet ip up starts."""
    namespaces.serve(folder, pcap)
