"""apenet bench: the published tests and whole-machine workloads over message sizes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, cast

import typer

from apenet import bench as benchmarks
from apenet.base.errors import InputError
from apenet.base.sizes import parse_size, parse_sizes
from apenet.bench.card import ENDS, MEMORIES, PATHS
from apenet.bench.lqcd_scaling import DEFAULT_LATTICE
from apenet.bench.lqcd_scaling import TEST as LQCD
from apenet.cli import lqcd
from apenet.cli.common import (
    EngineOption,
    FaultOption,
    JsonOption,
    PinOption,
    RailOption,
    SeedOption,
    SetOption,
    output,
    path_of,
    print_json,
    progress_bar,
)
from apenet.host.mpi_library import MpiChoice
from apenet.machine import machine as read_machine


def bench(
    context: typer.Context,
    test: Annotated[str, typer.Argument(metavar="TEST", help=", ".join((*benchmarks.TESTS, LQCD)))],
    machine: Annotated[
        str,
        typer.Option(
            "--machine", "-m", metavar="NAME", help="Name of a machine, or a machine file; lqcd: several, as A,B."
        ),
    ] = "ape16",
    settings: SetOption = None,
    rail: RailOption = None,
    faults: FaultOption = None,
    sizes: Annotated[
        str | None,
        typer.Option(
            "--sizes",
            metavar="MIN:MAX",
            help="Message sizes; they double from MIN to MAX.  [default: 16:1M; randomaccess: 8K]",
        ),
    ] = None,
    nodes: Annotated[
        str | None, typer.Option("--nodes", metavar="A,B", help="Numbers of the nodes that communicate.")
    ] = None,
    count: Annotated[
        int | None, typer.Option("-n", metavar="COUNT", help="Workloads: use only the first COUNT nodes.")
    ] = None,
    channels: Annotated[
        str,
        typer.Option("--channels", metavar="K", help="Messages at once, one per hardware queue; or 1:8, or 1,2,4,8."),
    ] = "1",
    window: Annotated[
        int | None,
        typer.Option("--window", help="unidirectional, bidirectional, rate: messages at once; 1 is blocking."),
    ] = None,
    memory: Annotated[
        str,
        typer.Option(
            "--memory",
            metavar="KIND[,KIND]",
            help=f"Location of the buffers, for both nodes or for each: {', '.join(MEMORIES)}.",
        ),
    ] = "host",
    path: Annotated[
        str, typer.Option("--path", metavar="|".join(PATHS), help="Operation of the card that carries messages.")
    ] = "auto",
    until: Annotated[
        str,
        typer.Option(
            "--until", metavar="|".join(ENDS), help="oneway: ends with a closing reply, or with all completions."
        ),
    ] = "reply",
    region: Annotated[
        str | None,
        typer.Option("--region", metavar="SIZE", help="Memory that each channel moves through, instead of one buffer."),
    ] = None,
    layer: Annotated[
        str | None,
        typer.Option("--layer", metavar="card|apelib|mpi|...", help="Where to measure.  [default: card; fanout: mpi]"),
    ] = None,
    neighbors: Annotated[
        str | None,
        typer.Option("--neighbors", metavar="K", help="fanout: receivers; or 1:6, or 1,2,6.  [default: 1 to all]"),
    ] = None,
    iterations: Annotated[
        int | None,
        typer.Option("--iterations", help="Repetitions of each size; randomaccess: updates of a process."),
    ] = None,
    algorithm: Annotated[
        str | None,
        typer.Option(
            "--algorithm", metavar="|".join(benchmarks.ALGORITHMS), help="Algorithm of allreduce; default ring."
        ),
    ] = None,
    partitions: Annotated[
        str | None,
        typer.Option(
            "--partitions", metavar="MIN:MAX", help="Workloads: one size on machines of MIN to MAX nodes, doubling."
        ),
    ] = None,
    lattice: Annotated[
        str | None,
        typer.Option(
            "--lattice",
            metavar="XxYxZxT",
            help="halo, halo4d: messages are the surfaces of this lattice; lqcd: the lattice.",
        ),
    ] = None,
    site_bytes: Annotated[
        int, typer.Option("--site-bytes", help="Bytes per site of the lattice; half-spinors have 24, 48 or 96.")
    ] = benchmarks.DEFAULT_SITE_BYTES,
    look_ahead: Annotated[
        int | None,
        typer.Option("--look-ahead", help="randomaccess: updates that a process may hold back.  [default: 1024]"),
    ] = None,
    ranks_per_node: Annotated[int, typer.Option("--ranks-per-node", help="randomaccess: processes on a node.")] = 1,
    active_messages: Annotated[
        str | None,
        typer.Option("--active-messages", metavar="improved|first", help="Implementation of layers gasnet and upc."),
    ] = None,
    conduit: Annotated[
        str | None,
        typer.Option(
            "--conduit",
            metavar="|".join(benchmarks.CONDUITS),
            help="Network of layers gasnet and upc.  [default: that of the machine's card]",
        ),
    ] = None,
    caches: Annotated[
        str,
        typer.Option(
            "--caches", metavar="|".join(benchmarks.CACHES), help="off: software without the processors' caches."
        ),
    ] = "on",
    ranks: Annotated[
        str, typer.Option("--ranks", metavar="MIN:MAX", help="lqcd: numbers of ranks, doubling; or 1,8,64.")
    ] = "1:16",
    scaling: Annotated[
        str,
        typer.Option("--scaling", metavar="strong|weak", help="lqcd: the lattice is the whole one, or each rank's."),
    ] = "strong",
    precision: Annotated[
        str, typer.Option("--precision", metavar="double|single", help="lqcd: of the numbers, and so of the halos.")
    ] = "double",
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure",
            metavar="FILE",
            parser=path_of("--figure", "a file"),
            help="lqcd: draw efficiency and share of communication: .png, .svg or .pdf.",
        ),
    ] = None,
    mpi: Annotated[str, typer.Option("--mpi", metavar="auto|mpich|openmpi|intel", help="MPI of --layer mpi.")] = "auto",
    engine: EngineOption = "packet",
    pin: PinOption = None,
    seed: SeedOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Measure a simulated machine: time and bandwidth over message sizes, or the scaling of lattice QCD."""
    lqcd.check_options(context, test)
    if test == LQCD:
        lqcd.run(
            machine,
            settings or (),
            faults or (),
            rail,
            lattice=DEFAULT_LATTICE if lattice is None else lattice,
            ranks=_parse_counts("ranks", ranks),
            scaling=scaling,
            layer=layer or "mpi",
            precision=precision,
            iterations=iterations,
            engine=engine,
            seed=seed,
            pin=pin,
            mpi_library=cast(MpiChoice, mpi),
            figure=figure,
            as_json=as_json,
        )
        return
    checked = None if sizes is None else parse_sizes(sizes)
    all_channels = _parse_counts("channels", channels)
    chosen = read_machine(machine, settings or (), faults or (), rail)
    grown_to = None if partitions is None else _parse_counts("partitions", partitions)
    steps = len(grown_to or checked) * len(all_channels) if checked and layer in {None, "card"} else None
    with progress_bar(f"{test} on {chosen.name}{'' if layer is None else f', layer {layer}'}", steps) as progress:
        task = progress.task_ids[0]
        progress.update(task, completed=-1)  # progress is called before each measurement

        def next_size(_size_bytes: int) -> None:
            progress.advance(task)

        result = benchmarks.measure(
            test,
            chosen,
            sizes=checked,
            nodes=_parse_nodes(nodes),
            channels=all_channels,
            layer=layer,
            neighbors=None if neighbors is None else _parse_neighbors(neighbors),
            window=window,
            memory=memory,
            path=path,
            until=until,
            region=None if region is None else parse_size(region),
            count=count,
            iterations=iterations,
            algorithm=algorithm,
            partitions=grown_to,
            lattice=lattice,
            site_bytes=site_bytes,
            look_ahead=look_ahead,
            ranks_per_node=ranks_per_node,
            active_messages=active_messages,
            conduit=conduit,
            caches=caches,
            engine=engine,
            seed=seed,
            mpi_library=cast(MpiChoice, mpi),
            pin=pin,
            progress=next_size,
        )
    if as_json:
        print_json(result.to_json())
    else:
        output().print(result.to_table(), markup=False)


def _parse_counts(name: str, text: str) -> list[int]:
    doubling = re.fullmatch(r"([1-9]\d{0,6}):([1-9]\d{0,6})", text)
    if doubling is not None and int(doubling[1]) <= int(doubling[2]):
        first, last = int(doubling[1]), int(doubling[2])
        return [first << step for step in range((last // first).bit_length())]
    if not re.fullmatch(r"[1-9]\d{0,6}(,[1-9]\d{0,6})*", text):
        raise InputError(name, text, "a number such as 8, numbers such as 1,2,4,8, or 1:8 (doubling)")
    return [int(part) for part in text.split(",")]


def _parse_neighbors(text: str) -> list[int]:
    every = re.fullmatch(r"([1-9]\d{0,6}):([1-9]\d{0,6})", text)
    if every is not None and int(every[1]) <= int(every[2]):
        return list(range(int(every[1]), int(every[2]) + 1))
    if not re.fullmatch(r"[1-9]\d{0,6}(,[1-9]\d{0,6})*", text):
        raise InputError("neighbors", text, "a number such as 6, numbers such as 1,2,6, or 1:6 (every one)")
    return [int(part) for part in text.split(",")]


def _parse_nodes(text: str | None) -> list[int] | None:
    if text is None:
        return None
    if not re.fullmatch(r"\d+(,\d+)*", text):
        raise InputError("nodes", text, "node numbers such as 0,1")
    return [int(part) for part in text.split(",")]
