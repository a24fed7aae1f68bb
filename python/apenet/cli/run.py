"""apenet run: a program on a simulated machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, cast

import typer

from apenet.cli.common import (
    EngineOption,
    FaultOption,
    MachineOption,
    MapOption,
    PinOption,
    RanksPerNodeOption,
    RunFolderOption,
    SeedOption,
    SetOption,
    TraceOption,
    messages,
)
from apenet.machine import machine as read_machine
from apenet.running import run as run_program
from apenet.running import summary
from apenet.toolchain import MpiChoice


def add_to(app: typer.Typer) -> None:
    """Registers the command. What follows the program's name is the program's."""
    app.command("run", context_settings={"allow_interspersed_args": False})(run)


def run(
    command: Annotated[list[str], typer.Argument(metavar="-- PROGRAM [ARGS]...", help="What every rank runs.")],
    n: Annotated[int, typer.Option("-n", metavar="RANKS", help="Number of ranks.")],
    machine: MachineOption = "ape16",
    settings: SetOption = None,
    faults: FaultOption = None,
    ranks_per_node: RanksPerNodeOption = 1,
    mapping: MapOption = "linear",
    compute: Annotated[
        str,
        typer.Option(
            "--compute",
            metavar="none|measured[:X]",
            help="Virtual time of the work between MPI calls: none, or the CPU time times X.",
        ),
    ] = "none",
    engine: EngineOption = "packet",
    mpi: Annotated[str, typer.Option("--mpi", metavar="auto|mpich|openmpi", help="MPI of the program.")] = "auto",
    out: RunFolderOption = None,
    record: Annotated[
        Path | None, typer.Option("--record", metavar="FILE", help="Write the run as a GOAL trace, for apenet replay.")
    ] = None,
    trace: TraceOption = None,
    pin: PinOption = True,
    seed: SeedOption = 1,
) -> None:
    """Run a program on a simulated machine, in virtual time. Ends with the program's own exit status."""
    result = run_program(
        command,
        n=n,
        machine=read_machine(machine, settings or (), faults or ()),
        ranks_per_node=ranks_per_node,
        mapping=mapping,
        compute=compute,
        engine=engine,
        mpi=cast(MpiChoice, mpi),
        out=out,
        record=record,
        trace=trace,
        pin=pin,
        seed=seed,
    )
    report = summary(result)
    if report:
        messages().print(report, markup=False)
    raise typer.Exit(result.exit_status)
