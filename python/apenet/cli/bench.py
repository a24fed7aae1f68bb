"""apenet bench: the published tests and whole-machine workloads over message sizes."""

from __future__ import annotations

import re
from typing import Annotated, cast

import typer

from apenet import bench as benchmarks
from apenet.cli.common import (
    FaultOption,
    JsonOption,
    MachineOption,
    PinOption,
    SeedOption,
    SetOption,
    output,
    print_json,
    progress_bar,
)
from apenet.errors import InputError
from apenet.machine import machine as read_machine
from apenet.sizes import parse_sizes
from apenet.toolchain import MpiChoice


def add_to(app: typer.Typer) -> None:
    """Registers the command."""
    app.command("bench")(bench)


def bench(
    test: Annotated[str, typer.Argument(metavar="TEST", help=", ".join(benchmarks.TESTS))],
    machine: MachineOption = "ape16",
    settings: SetOption = None,
    faults: FaultOption = None,
    sizes: Annotated[
        str, typer.Option("--sizes", metavar="MIN:MAX", help="Message sizes; they double from MIN to MAX.")
    ] = benchmarks.DEFAULT_SIZES,
    nodes: Annotated[str | None, typer.Option("--nodes", metavar="A,B", help="The nodes that talk.")] = None,
    count: Annotated[
        int | None, typer.Option("-n", metavar="COUNT", help="Workloads: the first so many nodes, not all.")
    ] = None,
    channels: Annotated[int, typer.Option("--channels", help="Messages at once, a hardware queue each.")] = 1,
    layer: Annotated[str, typer.Option("--layer", metavar="card|mpi", help="Where to measure.")] = "card",
    iterations: Annotated[int | None, typer.Option("--iterations", help="Repetitions of each size.")] = None,
    algorithm: Annotated[
        str | None,
        typer.Option("--algorithm", metavar="|".join(benchmarks.ALGORITHMS), help="Of allreduce; ring by default."),
    ] = None,
    mpi: Annotated[str, typer.Option("--mpi", metavar="auto|mpich|openmpi", help="MPI of --layer mpi.")] = "auto",
    pin: PinOption = True,
    seed: SeedOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Measure a simulated machine: time and bandwidth over message sizes."""
    checked = parse_sizes(sizes)
    chosen = read_machine(machine, settings or (), faults or ())
    steps = len(checked) if layer == "card" else None
    with progress_bar(f"{test} on {chosen.name}, layer {layer}", steps) as progress:
        task = progress.task_ids[0]

        def next_size(size_bytes: int) -> None:
            progress.update(task, completed=checked.index(size_bytes))

        result = benchmarks.measure(
            test,
            chosen,
            sizes=checked,
            nodes=_parse_nodes(nodes),
            channels=channels,
            layer=layer,
            count=count,
            iterations=iterations,
            algorithm=algorithm,
            seed=seed,
            mpi_library=cast(MpiChoice, mpi),
            pin=pin,
            progress=next_size,
        )
    if as_json:
        print_json(result.to_json())
    else:
        output().print(result.to_table(), markup=False)


def _parse_nodes(text: str | None) -> list[int] | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d+(,\d+)*", text):
        raise InputError("nodes", text, "node numbers such as 0,1")
    return [int(part) for part in text.split(",")]
