"""apenet cluster up, down, step and steps: the machine under Slurm."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from apenet.base.errors import HostError
from apenet.base.infiles import printable
from apenet.cli.common import MachineOption, SetOption, messages, path_of, progress_bar
from apenet.cluster.jobs_file import too_large
from apenet.live.simulator import Simulator
from apenet.machine import machine as read_machine
from apenet.slurm import daemons, history
from apenet.slurm import steps as job_steps

DirOption = Annotated[
    Path,
    typer.Option(
        "--dir", metavar="DIR", parser=path_of("dir", "a folder"), help="Folder of the cluster, with all of its files."
    ),
]
_FOLDER = Path(daemons.FOLDER)


def up(
    machine: MachineOption = "ape16",
    settings: SetOption = None,
    folder: DirOption = _FOLDER,
    ranks_per_node: Annotated[
        int, typer.Option("--ranks-per-node", min=1, help="Ranks that a node can have: its CPUs, for Slurm.")
    ] = 1,
    shared_network: Annotated[
        bool,
        typer.Option(
            "--shared-network",
            help="Steps that run at the same time share links, on one virtual clock.",
            show_default=False,
        ),
    ] = False,
) -> None:
    """Start Slurm on this host, with a slurmd for each node of the machine. Jobs run on the simulated nodes."""
    chosen = read_machine(machine, settings or ())
    with progress_bar(f"starting {chosen.name}", None) as progress:
        cluster = daemons.up(
            chosen,
            folder,
            ranks_per_node,
            lambda step: progress.update(progress.task_ids[0], description=step),
            shares_network=shared_network,
        )
    nodes = f"{len(cluster.nodes)} nodes, {cluster.nodes[0]} to {cluster.nodes[-1]}"
    messages().print(f"{chosen.name}: {nodes}. In a shell: . {printable(folder / 'env.sh')}", markup=False)


def network(folder: DirOption = _FOLDER) -> None:
    """Simulate the network that the steps of a cluster share, until the cluster ends."""
    cluster = daemons.opened(folder)
    os.chdir("/")
    Simulator(cluster.folder, read_machine(cluster.machine_file), cluster.ranks_per_node).serve()


def down(folder: DirOption = _FOLDER) -> None:
    """Cancel all jobs, end the daemons, and remove the folder."""
    with progress_bar(f"ending {folder}", None):
        daemons.down(folder)


def step(
    name: Annotated[str, typer.Argument(metavar="srun|mpiexec|mpirun", help="The command whose options follow.")],
    arguments: Annotated[list[str], typer.Argument(metavar="-- [OPTIONS] PROGRAM [ARGS]...", help="Its arguments.")],
    folder: DirOption = _FOLDER,
) -> None:
    """Run a program on the nodes of the job that calls this: what srun and mpiexec do in a cluster's shell."""
    cluster = daemons.opened(folder)
    if cluster.shares_network and job_steps.is_in_job():
        say = partial(messages().print, markup=False)
        raise typer.Exit(job_steps.run_on_network(cluster, name, arguments, say))
    command = job_steps.command(cluster, name, arguments)
    try:
        os.execvp(command[0], command)  # noqa: S606 (no shell is to read the program's arguments)
    except OSError as error:
        raise HostError(f"{command[0]}: {error.strerror}") from error


def steps(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[JOB|JOB.STEP]...", help="Numbers of Slurm's jobs, or of their steps. By default, all."
        ),
    ] = None,
    folder: DirOption = _FOLDER,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FOLDER", parser=path_of("out", "a folder"), help="Where jobs.toml is written."),
    ] = Path("steps"),
) -> None:
    """Write the steps that jobs have run as jobs of one network, for apenet cluster run."""
    written = history.write_jobs(daemons.opened(folder), names or (), out)
    count = f"{len(written)} step{'s' if len(written) > 1 else ''}"
    if refused := too_large(out / history.JOBS_FILE, len(written)):
        messages().print(f"warning: {refused}: name some of the steps", markup=False)
    messages().print(f"{count}: {', '.join(written)}. apenet cluster run {out / history.JOBS_FILE}", markup=False)
