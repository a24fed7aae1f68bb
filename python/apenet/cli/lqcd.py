"""apenet bench lqcd: the scaling of the lattice QCD program on one or several machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from typer import Context

from apenet.base.errors import InputError
from apenet.bench import lqcd as measure
from apenet.bench.lqcd_figure import check_figure_file, write_figure
from apenet.bench.lqcd_scaling import TEST
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
        task = progress.task_ids[0]
        progress.update(task, completed=-1)  # progress is called before each run

        def next_ranks(_ranks: int) -> None:
            progress.advance(task)

        result = measure(chosen, **options, progress=next_ranks)
    if as_json:
        print_json(result.to_json())
    else:
        output().print(result.to_table(), markup=False)
    if figure is not None:  # last: what could not be written has been printed
        write_figure(result, figure)
        messages().print(f"wrote {figure}", markup=False)
