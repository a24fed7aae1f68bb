"""apenet bench lqcd: the scaling of the lattice QCD program on one or several machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from apenet.base.errors import InputError
from apenet.base.pictures import FIGURE, check_picture_file
from apenet.bench import lqcd as measure
from apenet.bench.lqcd_figure import write_figure
from apenet.bench.lqcd_result import LqcdPoint
from apenet.bench.lqcd_scaling import TEST, PlannedRun
from apenet.bench.request import doubling_counts
from apenet.cli.common import messages, output, path_of, print_json, progress_bar
from apenet.cli.measured import MeasurementPage
from apenet.machine import machine as read_machine

MachinesOption = Annotated[
    str, typer.Option("--machine", "-m", metavar="NAME", help="A machine, or a file; or several, as A,B.")
]
FigureOption = Annotated[
    Path | None,
    typer.Option(
        FIGURE,
        metavar="FILE",
        parser=path_of(FIGURE, "a file"),
        help="Draw efficiency and share of communication: .png, .svg or .pdf.",
    ),
]
OPTIONS: dict[str, tuple[Any, Any]] = {"machine": (MachinesOption, "ape16"), "figure": (FigureOption, None)}
"""The command's options besides those of the request."""

MANY_PACKETS = 20_000_000
"""A study of so many packets says what it will cost, and each result as it comes: about a minute of a processor."""

PACKET_US = (1, 4)
"""Processor time of a packet in microseconds: on `ape128` and on `qpace`, measured with 16 ranks on a loaded host."""


def cost_of(runs: Sequence[PlannedRun]) -> str:
    """The numbers that decide how long a study takes, as text."""
    largest = max(runs, key=lambda run: run.packets)
    packets = sum(run.packets for run in runs)
    gib = sum(run.halo_bytes for run in runs) / 2**30
    minutes = [packets * us * 1e-6 / 60 for us in PACKET_US]
    return (
        f"{TEST}: {len(runs)} runs send {gib:.1f} GiB of halos in {packets / 1e6:.0f} million packets; the largest, "
        f"{largest.ranks} ranks on {largest.machine}, sends {largest.packets / 1e6:.0f} million. That takes some "
        f"{minutes[0]:.0f} to {minutes[1]:.0f} minutes of a processor. A smaller lattice, fewer ranks and single "
        "precision send less."
    )


def run(
    machine: str,
    settings: Sequence[str] | None,
    faults: Sequence[str] | None,
    rail: str | None,
    partition: str | None,
    *,
    check_settings: bool,
    figure: Path | None,
    report: Path | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 (those of the request)
) -> None:
    """Measures, writes the figure and prints the result."""
    if figure is not None:
        check_picture_file(FIGURE, figure)
    names = machine.split(",")
    if len(set(names)) != len(names):
        raise InputError("machine", machine, "each machine once")
    chosen = [
        read_machine(name, settings or (), faults or (), rail, partition).with_settings_checked(check_settings)
        for name in names
    ]
    steps = len(chosen) * len(doubling_counts("ranks", options["ranks"]))
    with MeasurementPage(report) as shown:
        with progress_bar(f"{TEST} on {', '.join(machine.name for machine in chosen)}", steps) as progress:
            is_large = False

            def announce(runs: Sequence[PlannedRun]) -> None:
                nonlocal is_large
                is_large = sum(run.packets for run in runs) > MANY_PACKETS
                if is_large:
                    messages().print(cost_of(runs), markup=False)

            def note(name: str, point: LqcdPoint) -> None:
                progress.advance(progress.task_ids[0])
                if is_large:
                    messages().print(
                        f"{name}, {point.ranks} ranks: iteration {point.iteration_us:.1f} us, "
                        f"Dslash {point.dslash_us:.1f} us",
                        markup=False,
                    )

            result = measure(chosen, **options, planned=announce, finished=note)
        if as_json:
            print_json(result.to_json())
        else:
            output().print(result.to_table(), markup=False)
        shown.keep(result.to_json())
    if figure is not None:  # last: what could not be written has been printed
        write_figure(result, figure)
        messages().print(f"wrote {figure}", markup=False)
