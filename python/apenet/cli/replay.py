"""apenet replay: a trace on a simulated machine."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from apenet.base.errors import NotWrittenError
from apenet.cli.common import (
    AllowLongOption,
    CheckSettingsOption,
    EngineOrBothOption,
    FaultOption,
    JsonOption,
    MachineOption,
    MapOption,
    PartitionOption,
    RailOption,
    RanksPerNodeOption,
    ReportOption,
    RunFolderOption,
    SeedOption,
    SetOption,
    TraceFromOption,
    TraceLeastOption,
    TraceOption,
    TraceRanksOption,
    TraceToOption,
    output,
    path_of,
    print_json,
    progress_bar,
    unkept,
)
from apenet.explain.report import Reporting
from apenet.machine import machine as read_machine
from apenet.run.replay import ReplayResult, summary
from apenet.run.replay import replay as replay_trace


def replay(
    trace: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            parser=path_of("trace", "a trace"),
            help="A trace: GOAL, OTF2 (its anchor file), or Chakra (the file of a rank, NAME.0.et).",
        ),
    ],
    machine: MachineOption = "ape16",
    settings: SetOption = None,
    rail: RailOption = None,
    partition: PartitionOption = None,
    faults: FaultOption = None,
    ranks_per_node: RanksPerNodeOption = 1,
    mapping: MapOption = "linear",
    engine: EngineOrBothOption = "packet",
    out: RunFolderOption = None,
    trace_out: TraceOption = None,
    trace_ranks: TraceRanksOption = None,
    trace_from: TraceFromOption = None,
    trace_to: TraceToOption = None,
    trace_least: TraceLeastOption = None,
    report: ReportOption = None,
    seed: SeedOption = 1,
    allow_long: AllowLongOption = False,
    check_settings: CheckSettingsOption = True,
    as_json: JsonOption = False,
) -> None:
    """Replay a trace on a simulated machine.

    The trace is one of apenet run --record or any in the GOAL format, or an OTF2 or Chakra trace of a real machine.
    """
    failure: NotWrittenError | None = None
    said = ""
    with progress_bar(f"{trace} on {machine}", None), ExitStack() as stack:
        reporting = None if report is None else stack.enter_context(Reporting(report, out, None))
        if reporting is not None:
            out = reporting.out
        try:
            result = replay_trace(
                trace,
                machine=read_machine(machine, settings or (), faults or (), rail, partition).with_settings_checked(
                    check_settings
                ),
                ranks_per_node=ranks_per_node,
                map=mapping,
                engine=engine,
                out=out,
                trace_out=trace_out,
                trace_ranks=trace_ranks,
                trace_from=trace_from,
                trace_to=trace_to,
                trace_least=trace_least,
                seed=seed,
                allow_long=allow_long,
            )
            said = "" if reporting is None else reporting.keep(result)
        except NotWrittenError as error:
            result, failure = unkept(error, ReplayResult), error
    if as_json:
        print_json(result.to_json())
    else:
        output().print("\n".join(part for part in (summary(result), said) if part), markup=False)
    if failure is not None:
        raise failure
