"""apenet run: a program on a simulated machine."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, cast

import typer

from apenet.base.errors import NotWrittenError
from apenet.cli.common import (
    CheckSettingsOption,
    EngineOrBothOption,
    FaultOption,
    MachineOption,
    MapOption,
    PartitionOption,
    PinOption,
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
    messages,
    path_of,
    print_json,
    unkept,
)
from apenet.cli.run_progress import RunProgress
from apenet.cli.streams import programs_on_errors, say
from apenet.explain.report import Reporting
from apenet.host.client_server import is_client_server, note
from apenet.host.mpi_library import MpiChoice
from apenet.machine import Machine
from apenet.machine import machine as read_machine
from apenet.run.program import run as run_program
from apenet.run.program_request import STALL_TIMEOUT_S
from apenet.run.program_result import RunResult, summary

_LEAST_BUSY = 0.1
"""Share of the run in which the busiest link is busy; below it, placement hardly matters."""


def run(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="-- PROGRAM [ARGS]...",
            help="Program of every rank, and its arguments; further programs with `: -n RANKS PROGRAM [ARGS]...`.",
        ),
    ],
    n: Annotated[int, typer.Option("-n", metavar="RANKS", help="Number of ranks.")],
    machine: MachineOption = "ape16",
    settings: SetOption = None,
    rail: RailOption = None,
    partition: PartitionOption = None,
    faults: FaultOption = None,
    ranks_per_node: RanksPerNodeOption = 1,
    mapping: MapOption = "linear",
    compute: Annotated[
        str,
        typer.Option(
            "--compute",
            metavar="none|measured[:X]|record:FILE|FILE[:X]",
            help="Virtual time of computation between MPI calls: none, its CPU time, the same and recorded to a "
            "profile FILE, or what a profile says; times X.",
        ),
    ] = "none",
    size: Annotated[
        str | None,
        typer.Option(
            "--size",
            metavar="SITES|LATTICE/GRID",
            help="Size of a rank's part of the problem, for profiles: its sites, or 16x16x16x32/2x2x2x2.",
        ),
    ] = None,
    engine: EngineOrBothOption = "packet",
    mpi: Annotated[str, typer.Option("--mpi", metavar="auto|mpich|openmpi|intel", help="MPI of the program.")] = "auto",
    out: RunFolderOption = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="FILE",
            parser=path_of("record", "a file"),
            help="Write the run as a GOAL trace, for apenet replay; compressed if its name ends in .gz.",
        ),
    ] = None,
    trace: TraceOption = None,
    trace_ranks: TraceRanksOption = None,
    trace_from: TraceFromOption = None,
    trace_to: TraceToOption = None,
    trace_least: TraceLeastOption = None,
    report: ReportOption = None,
    tag_output: Annotated[
        bool, typer.Option("--tag-output", help="Put the rank in front of each line of the program's output: [3] .")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="DIR",
            parser=path_of("output", "a folder"),
            help="Folder for the program's output, one file per rank and stream: rank-0003.out.",
        ),
    ] = None,
    pin: PinOption = None,
    trap_tsc: Annotated[
        bool,
        typer.Option("--trap-tsc", help="Show virtual time also in the cycle counter (rdtsc); slow."),
    ] = False,
    ip: Annotated[
        bool,
        typer.Option("--ip", help="Give the ranks sockets of the simulated nodes: TCP and UDP in virtual time."),
    ] = False,
    pcap: Annotated[
        Path | None,
        typer.Option(
            "--pcap",
            metavar="FILE",
            parser=path_of("pcap", "a file"),
            help="Write the packets of these sockets, for Wireshark and tcpdump; compressed if its name ends in .gz.",
        ),
    ] = None,
    pcap_node: Annotated[
        int | None,
        typer.Option(
            "--pcap-node",
            metavar="NODE",
            help="Only the packets that this node sends and receives, as tcpdump would.",
        ),
    ] = None,
    seed: SeedOption = 1,
    stall_timeout: Annotated[
        str,
        typer.Option("--stall-timeout", metavar="TIME", help="Report a deadlock after this time without progress."),
    ] = f"{STALL_TIMEOUT_S:g}s",
    limit_wall: Annotated[
        str | None,
        typer.Option(
            "--limit-wall",
            metavar="TIME",
            help="End the run after this wall time, such as 90s, and keep its results.",
        ),
    ] = None,
    limit_virtual: Annotated[
        str | None,
        typer.Option(
            "--limit-virtual",
            metavar="TIME",
            help="End the run once all ranks have reached this virtual time, such as 10ms.",
        ),
    ] = None,
    check_settings: CheckSettingsOption = True,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object; the program's output goes to standard error."),
    ] = False,
) -> None:
    """Run a program on a simulated machine, in virtual time. Ends with the program's own exit status."""
    failure: NotWrittenError | None = None
    said = ""
    if is_client_server(command[0], n):
        say(note(command[0]))
    try:
        with ExitStack() as stack:
            if as_json:
                stack.enter_context(programs_on_errors())
            reporting = None if report is None else stack.enter_context(Reporting(report, out, record))
            if reporting is not None:
                out, record = reporting.out, reporting.record
            chosen = read_machine(machine, settings or (), faults or (), rail, partition)
            result = run_program(
                command,
                n=n,
                machine=chosen.with_settings_checked(check_settings),
                ranks_per_node=ranks_per_node,
                map=mapping,
                compute=compute,
                size=size,
                engine=engine,
                mpi=cast(MpiChoice, mpi),
                out=out,
                record=record,
                trace=trace,
                trace_ranks=trace_ranks,
                trace_from=trace_from,
                trace_to=trace_to,
                trace_least=trace_least,
                tag_output=tag_output,
                output=output,
                pin=pin,
                trap_tsc=trap_tsc,
                ip=ip,
                pcap=pcap,
                pcap_node=pcap_node,
                seed=seed,
                stall_timeout=stall_timeout,
                limit_wall=limit_wall,
                limit_virtual=limit_virtual,
                check=False,
                progress=RunProgress(),
            )
            if reporting is not None:
                said = "\n".join(f"apenet: {line}" for line in reporting.keep(result).splitlines())
    except NotWrittenError as error:
        result, failure = unkept(error, RunResult), error
    if as_json:
        print_json(result.to_json())
    else:
        gain = "" if said else _placement_gain(result, chosen, ranks_per_node)  # a report has measured it
        text = "\n".join(part for part in (summary(result, gain), said) if part)
        if text:
            messages().print(text, markup=False)
    if failure is not None:
        if result.ok:
            raise failure
        say(str(failure))  # the exit status is the program's own
    raise typer.Exit(result.exit_status)


def _placement_gain(result: RunResult, machine: Machine, ranks_per_node: int) -> str:
    """What another placement would change on the links; "" if placement hardly matters."""
    if not result.ok or result.busiest_link is None or result.busiest_link.utilisation < _LEAST_BUSY:
        return ""
    from apenet.placing import placement_gain  # noqa: PLC0415 (imports numpy, which most runs spare)

    return placement_gain(result, machine, ranks_per_node)
