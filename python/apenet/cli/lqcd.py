"""apenet bench lqcd: the scaling of the lattice QCD program on one or several machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typer import Context

from apenet.base.errors import InputError
from apenet.bench import lqcd as measure
from apenet.bench.lqcd_figure import check_figure_file, write_figure
from apenet.bench.lqcd_result import LqcdPoint
from apenet.bench.lqcd_scaling import TEST, PlannedRun
from apenet.cli.common import messages, output, print_json, progress_bar
from apenet.machine import machine as read_machine

OWN = ("ranks", "scaling", "precision", "figure")
"""Options that no other test has."""
SHARED = (
    "test",
    "machine",
    "settings",
    "rail",
    "faults",
    "layer",
    "lattice",
    "iterations",
    "engine",
    "pin",
    "seed",
    "mpi",
    "as_json",
)


MANY_PACKETS = 20_000_000
"""From which a study says what it will cost, and each result as it comes: about a minute of a processor."""

PACKET_US = (1, 4)
"""What a packet takes of a processor: on `ape128` and on `qpace`, measured with 16 ranks on a loaded host."""


def cost_of(runs: Sequence[PlannedRun]) -> str:
    """What decides how long a study takes."""
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


def check_options(context: Context, test: str) -> None:
    """Raises InputError for options that belong to other tests than this one."""
    is_lqcd = test == TEST
    for name, value in context.params.items():
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        if is_lqcd and name not in OWN + SHARED:
            raise InputError(name, value, f"none for {TEST}")
        if not is_lqcd and name in OWN:
            raise InputError(name, value, f"none for {test}: it belongs to {TEST}")


def run(
    machines: str,
    settings: Sequence[str],
    faults: Sequence[str],
    rail: str | None,
    *,
    figure: Path | None,
    as_json: bool,
    **options: Any,  # noqa: ANN401 (those of apenet.bench.lqcd)
) -> None:
    """Measures, writes the figure and prints the result."""
    if figure is not None:
        check_figure_file(figure)
    names = machines.split(",")
    if len(set(names)) != len(names):
        raise InputError("machine", machines, "each machine once")
    chosen = [read_machine(name, settings, faults, rail) for name in names]
    steps = len(chosen) * len(options["ranks"])
    with progress_bar(f"{TEST} on {', '.join(machine.name for machine in chosen)}", steps) as progress:
        is_large = False

        def announce(runs: Sequence[PlannedRun]) -> None:
            nonlocal is_large
            is_large = sum(run.packets for run in runs) > MANY_PACKETS
            if is_large:
                messages().print(cost_of(runs), markup=False)

        def note(machine: str, point: LqcdPoint) -> None:
            progress.advance(progress.task_ids[0])
            if is_large:
                messages().print(
                    f"{machine}, {point.ranks} ranks: iteration {point.iteration_us:.1f} us, "
                    f"Dslash {point.dslash_us:.1f} us",
                    markup=False,
                )

        result = measure(chosen, **options, planned=announce, finished=note)
    if as_json:
        print_json(result.to_json())
    else:
        output().print(result.to_table(), markup=False)
    if figure is not None:  # last: what could not be written has been printed
        write_figure(result, figure)
        messages().print(f"wrote {figure}", markup=False)
