"""apenet cluster: several jobs on one machine, together, under Slurm, or in the queue of a batch system."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from apenet.base.pictures import FIGURE, check_picture_file, write_picture
from apenet.cli import slurm
from apenet.cli.commands import HelpfulCommand
from apenet.cli.common import (
    AllowLongOption,
    JsonOption,
    MachineOption,
    SeedOption,
    SetOption,
    messages,
    output,
    path_of,
    print_json,
    print_tables,
    progress_bar,
)
from apenet.cluster import ClusterResult, run_file
from apenet.machine import machine as read_machine
from apenet.machine.partition_picture import drawn_partitions
from apenet.queueing import QueueResult
from apenet.queueing import simulate as simulate_queue
from apenet.queueing.figure import drawn_policies
from apenet.queueing.placement import POLICIES
from apenet.run.results import show_time

app = typer.Typer(help="Run several jobs on one machine.", no_args_is_help=True)
app.command(cls=HelpfulCommand)(slurm.up)
app.command(cls=HelpfulCommand)(slurm.down)
app.command(cls=HelpfulCommand)(slurm.steps)
app.command(cls=HelpfulCommand, hidden=True)(slurm.network)
app.command(context_settings={"allow_interspersed_args": False})(slurm.step)


@app.callback()
def cluster() -> None:
    """Run several jobs on one machine."""


@app.command(cls=HelpfulCommand)
def run(
    file: Annotated[
        Path,
        typer.Argument(metavar="JOBS.toml", parser=path_of("JOBS.toml", "a file"), help="The machine and its jobs."),
    ],
    matrix: Annotated[
        bool,
        typer.Option("--matrix/--no-matrix", help="Simulate each pair of jobs, too.", show_default=False),
    ] = True,
    figure: Annotated[
        Path | None,
        typer.Option(
            FIGURE, metavar="FILE", parser=path_of(FIGURE, "a file"), help="Draw the machine by job: png, svg or pdf."
        ),
    ] = None,
    allow_long: AllowLongOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run the programs, traces and workloads of several jobs together, and say what they cost each other."""
    if figure is not None:
        check_picture_file(FIGURE, figure)
    with progress_bar(str(file), None) as progress:
        result = run_file(
            file,
            matrix=matrix,
            allow_long=allow_long,
            progress=lambda step: progress.update(progress.task_ids[0], description=step),
        )
    for job in result.jobs:
        sys.stderr.buffer.write(job.stderr)
        (sys.stderr if as_json else sys.stdout).buffer.write(job.stdout)
        sys.stderr.flush()
        sys.stdout.flush()
    if as_json:
        print_json(result.to_json())
    else:
        _print(result)
    if figure is not None:
        write_picture(FIGURE, figure, lambda plt: drawn_partitions(result.check(), plt, "jobs"))
        messages().print(f"wrote {figure}", markup=False)
    if any(job.outcome != "completed" for job in result.jobs):
        raise typer.Exit(1)


@app.command(cls=HelpfulCommand)
def simulate(
    workload: Annotated[
        Path,
        typer.Argument(
            metavar="WORKLOAD.swf", parser=path_of("workload", "a file"), help="Jobs, in the Standard Workload Format."
        ),
    ],
    machine: MachineOption = "ape128",
    settings: SetOption = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="NAME|split:BOX",
            help=f"{', '.join(POLICIES)}, or fixed boxes; repeatable. By default, all of the former.",
        ),
    ] = None,
    queue: Annotated[
        str, typer.Option("--queue", metavar="easy|fcfs", help="Whether jobs overtake where that delays nobody.")
    ] = "easy",
    processes_per_node: Annotated[
        int, typer.Option("--processes-per-node", min=1, help="Processes of the workload on a node.")
    ] = 1,
    pattern: Annotated[
        str, typer.Option("--pattern", metavar="halo|alltoall", help="How the nodes of a job communicate.")
    ] = "halo",
    size: Annotated[str, typer.Option("--size", metavar="BYTES", help="Bytes of each of their messages.")] = "16K",
    communication: Annotated[
        float,
        typer.Option("--communication", metavar="SHARE", help="Share of a job's run time in which it communicates."),
    ] = 0.2,
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Only the first jobs of the file.")] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            FIGURE, metavar="FILE", parser=path_of(FIGURE, "a file"), help="Draw the policies: png, svg or pdf."
        ),
    ] = None,
    seed: SeedOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Say what placement policies cost the jobs of a workload: waiting time, lost nodes, shared links."""
    if figure is not None:
        check_picture_file(FIGURE, figure)
    with progress_bar(str(workload), None) as progress:
        result = simulate_queue(
            workload,
            read_machine(machine, settings or ()),
            policies=tuple(policies or POLICIES),
            queue=queue,
            processes_per_node=processes_per_node,
            pattern=pattern,
            size=size,
            communication=communication,
            most_jobs=jobs,
            seed=seed,
            progress=lambda name: progress.update(progress.task_ids[0], description=name),
        )
    if as_json:
        print_json(result.to_json())
    else:
        _print_policies(result)
    if figure is not None:
        write_picture(FIGURE, figure, lambda plt: drawn_policies(result, plt))
        messages().print(f"wrote {figure}", markup=False)


def _print_policies(result: QueueResult) -> None:
    table = Table(box=None, pad_edge=False)
    titles = (
        "policy",
        "wait",
        "median",
        "slowdown",
        "at work",
        "slowed",
        "padded",
        "lost",
        "run time",
        "worst",
        "makespan",
    )
    for title in titles:
        table.add_column(title, justify="left" if title == "policy" else "right")
    for one in result.policies:
        table.add_row(
            one.policy,
            _minutes(one.mean_wait_s),
            _minutes(one.median_wait_s),
            f"{one.mean_bounded_slowdown:.2f}",
            *(f"{share:.1%}" for share in (one.at_work, one.slowed, one.padded, one.lost)),
            f"x{one.mean_run_factor:.3f}",
            f"x{one.worst_run_factor:.3f}",
            f"{one.makespan_s / 3600:.1f} h",
        )
    print_tables(table)
    skipped = "".join(f"; skipped: {count} {reason}" for reason, count in result.skipped.items())
    exchange = f"{result.pattern} of {result.size_bytes} bytes, {result.communication:.0%} of the run time"
    output().print(
        f"{result.machine}: {result.jobs} jobs of {result.workload}, queue {result.queue}; {exchange}{skipped}",
        markup=False,
    )


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min"


def _print(result: ClusterResult) -> None:
    table = Table(box=None, pad_edge=False)
    for title in ("job", "ranks", "start", "time", "alone", "slowdown", "shares links with"):
        table.add_column(title, justify="left" if title in ("job", "shares links with") else "right")
    for job in result.jobs:
        shared = ", ".join(f"{name} ({len(links)})" for name, links in job.shared.items())
        times = [_shown(job.time_us, job.outcome), _shown(job.alone_us, "-"), _factor(job.slowdown)]
        table.add_row(job.name, str(len(job.nodes)), show_time(job.start_us), *times, shared or "none")
    print_tables(table)
    lines = [f"job {job.name}: {job.outcome}: {job.message}" for job in result.jobs if job.outcome != "completed"]
    lines += [f"warning: job {job.name}: {text}" for job in result.jobs for text in job.warnings]
    lines += [f"warning: {text}" for text in result.warnings]
    if lines:
        output().print("\n".join(lines), markup=False)
    if result.interference is not None and len(result.jobs) > 1:
        output().print("slowdown of a row's job beside a column's alone:", markup=False)
        matrix = Table(box=None, pad_edge=False)
        for title in ("", *(job.name for job in result.jobs)):
            matrix.add_column(title, justify="right" if title else "left")
        for job, row in zip(result.jobs, result.interference, strict=True):
            matrix.add_row(job.name, *map(_factor, row))
        print_tables(matrix)
    output().print(
        f"{result.machine}: {show_time(result.virtual_time_us)} of virtual time, {result.messages} messages; "
        f"{result.busiest_text}; {result.wall_time_s:.2f} s of wall time",
        markup=False,
    )


def _shown(time_us: float | None, otherwise: str) -> str:
    return otherwise if time_us is None else show_time(time_us)


def _factor(slowdown: float | None) -> str:
    return "-" if slowdown is None else f"{slowdown:.4f}"
