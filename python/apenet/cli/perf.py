"""apenet perf: the simulator's own speed and memory."""

from __future__ import annotations

from typing import Annotated

import typer

from apenet import perf as benchmarks
from apenet.cli.common import JsonOption, SetOption, output, print_json, progress_bar
from apenet.perf import PerfResult


def perf(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help=", ".join(benchmarks.BENCHMARKS) + "; default: all.")
    ] = None,
    settings: SetOption = None,
    repeat: Annotated[
        int | None,
        typer.Option(
            "--repeat",
            help="Amount of work: packets per node, exchanges, or measurements. Default: some seconds of work.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the speed of the simulator. Prints work per CPU second, and memory, on this host."""
    for name in names or benchmarks.BENCHMARKS:
        with progress_bar(name, None):
            result = benchmarks.measure(name, settings=settings or (), repeat=repeat)
        if as_json:
            print_json(result.to_json())
        else:
            _print(result)


def _print(result: PerfResult) -> None:
    benchmark = benchmarks.BENCHMARKS[result.name]
    console = output()
    budget = "" if result.budget is None else f" (budget {_number(result.budget)})"
    console.print(f"{result.name}: {benchmark.title}", markup=False)
    console.print(f"  {'counts':<42}{benchmark.counts}", markup=False)
    console.print(f"  {'figure':<42}{_number(result.figure)} {result.unit}{budget}")
    console.print(f"  {'memory':<42}{result.memory_mib:.0f} MiB (budget {result.budget_memory_mib})")
    console.print(f"  {'cpu_seconds':<42}{result.cpu_seconds:.3f}")
    for key, value in result.details.items():
        console.print(f"  {key:<42}{_number(value)}")


def _number(value: float) -> str:
    whole = isinstance(value, int) or value >= 1000  # noqa: PLR2004 (more digits would be noise)
    return f"{value:,.0f}".replace(",", " ") if whole else f"{value:.3f}"
