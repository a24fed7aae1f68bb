"""apenet traffic: synthetic traffic on a network; latency over load."""

from __future__ import annotations

from typing import Annotated

import typer

from apenet.cli.common import (
    AllowLongOption,
    EngineOption,
    FaultOption,
    JsonOption,
    MachineOption,
    MeasurementReportOption,
    PartitionOption,
    RailOption,
    SeedOption,
    SetOption,
    output,
    print_json,
    progress_bar,
)
from apenet.cli.measured import MeasurementPage
from apenet.machine import machine as read_machine
from apenet.run.traffic import DRAIN_CYCLES, MEASURE_CYCLES, PATTERNS, WARMUP_CYCLES, most_load, parse_loads
from apenet.run.traffic import traffic as measure_traffic


def traffic(
    machine: MachineOption = "ape16",
    settings: SetOption = None,
    rail: RailOption = None,
    partition: PartitionOption = None,
    faults: FaultOption = None,
    pattern: Annotated[str, typer.Option("--pattern", metavar="NAME", help=", ".join(PATTERNS) + ".")] = "uniform",
    load: Annotated[
        str,
        typer.Option(
            "--load",
            metavar="LOAD|FIRST:LAST:STEP",
            help="Flits that a node offers per flit time of a link; several separated by commas.",
        ),
    ] = "0.1:0.9:0.1",
    packet_flits: Annotated[int, typer.Option("--packet-flits", metavar="N", help="Flits per packet.")] = 1,
    engine: EngineOption = "packet",
    warmup: Annotated[
        int, typer.Option("--warmup", metavar="CYCLES", help="Cycles before the measurement window.")
    ] = WARMUP_CYCLES,
    measure: Annotated[
        int,
        typer.Option("--measure", metavar="CYCLES", help="Length of the window: packets generated in it are measured."),
    ] = MEASURE_CYCLES,
    drain: Annotated[
        int,
        typer.Option("--drain", metavar="CYCLES", help="Maximum of cycles to wait until these packets have arrived."),
    ] = DRAIN_CYCLES,
    measure_queued: Annotated[
        bool,
        typer.Option(
            "--measure-queued",
            help="Also measure packets generated before the window that are then still queued, as BookSim2 does.",
        ),
    ] = False,
    seed: SeedOption = 1,
    allow_long: AllowLongOption = False,
    report: MeasurementReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a network under synthetic traffic. Prints throughput and latency over load."""
    chosen = read_machine(machine, settings or (), faults or (), rail, partition)
    loads = parse_loads(load, most_load(chosen))
    with MeasurementPage(report) as shown:
        with progress_bar(f"{pattern} traffic on {chosen.name}, engine {engine}", len(loads)) as progress:
            task = progress.task_ids[0]
            result = measure_traffic(
                chosen,
                loads=loads,
                pattern=pattern,
                packet_flits=packet_flits,
                engine=engine,
                seed=seed,
                warmup_cycles=warmup,
                measure_cycles=measure,
                drain_cycles=drain,
                measure_queued=measure_queued,
                allow_long=allow_long,
                progress=lambda done: progress.update(task, completed=done),
            )
        if as_json:
            print_json(result.to_json())
        else:
            output().print(result.to_table(), markup=False)
        shown.keep(result.to_json())
