"""srun and mpiexec in a job of the cluster: the ranks run on the simulated nodes that Slurm has given the job."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from apenet.base.errors import HostError, InputError
from apenet.base.grid import number_of, place_of
from apenet.live import step as live_step
from apenet.machine import Machine
from apenet.machine import machine as read_machine
from apenet.slurm import history
from apenet.slurm.daemons import Cluster

_COUNTS = {
    "-n": "ranks",
    "--ntasks": "ranks",
    "-np": "ranks",
    "-N": "nodes",
    "--nodes": "nodes",
    "--ntasks-per-node": "ranks_per_node",
    "-ppn": "ranks_per_node",
}
_LABELS = ("-l", "--label")
# Options that choose among what a simulated node has only one of, or that change nothing here.
_WITHOUT_EFFECT = ("-u", "--unbuffered", "-K", "--kill-on-bad-exit", "-Q", "--quiet", "--exclusive")
_WITH_IGNORED_VALUE = ("--mpi", "-c", "--cpus-per-task", "--cpu-bind", "--mem-bind")
_OF_ALLOCATIONS = ("-p", "--partition", "-t", "--time", "-J", "--job-name", "-w", "--nodelist", "-x", "--exclude")
_LONG_COUNT = re.compile("[0-9]+")


@dataclass
class Step:
    """What a command line of srun or mpiexec asks for; None: what the job has."""

    ranks: int | None = None
    nodes: int | None = None
    ranks_per_node: int | None = None
    is_labelled: bool = False
    allocation: list[str] = field(default_factory=list)
    """Options with which salloc gets the nodes, outside a job."""
    program: list[str] = field(default_factory=list)


def parse(name: str, arguments: Sequence[str]) -> Step:
    """Reads the options in front of the program. Raises InputError for one that is not known."""
    step = Step()
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        argument = rest.pop(0)
        if argument == "--":
            break
        flag, equals, value = argument.partition("=")
        if re.fullmatch("-[nNlptJwxcu].+", argument) and argument not in _COUNTS and not equals:
            flag, value, equals = argument[:2], argument[2:], "="
        if flag in _LABELS:
            step.is_labelled = True
        elif flag in _WITHOUT_EFFECT:
            continue
        elif flag in _COUNTS or flag in _WITH_IGNORED_VALUE or flag in _OF_ALLOCATIONS:
            if not equals:
                if not rest:
                    raise InputError(f"{name} {flag}", "nothing", "a value")
                value = rest.pop(0)
            if flag in _COUNTS:
                setattr(step, _COUNTS[flag], _count(f"{name} {flag}", value))
            if flag in _OF_ALLOCATIONS or flag in ("-n", "--ntasks", "-N", "--nodes", "--ntasks-per-node"):
                step.allocation += [f"{flag}={value}"] if flag.startswith("--") else [flag, value]
        else:
            known = [*_COUNTS, *_LABELS, *_WITHOUT_EFFECT, *_WITH_IGNORED_VALUE, *_OF_ALLOCATIONS]
            raise InputError(name, flag, f"one of {' '.join(known)}; --help of Slurm's own srun has more")
    if not rest:
        raise InputError(name, "nothing", "a program")
    step.program = rest
    return step


def _count(name: str, text: str) -> int:
    if not _LONG_COUNT.fullmatch(text) or not int(text):
        raise InputError(name, text, "a whole number, at least 1")
    return int(text)


def command(cluster: Cluster, name: str, arguments: Sequence[str]) -> list[str]:
    """The command that runs the step: apenet run in a job, else salloc with this step in it.

    Raises InputError for options that are not known, and for more ranks than the job's nodes can have.
    """
    step = parse(name, arguments)
    if not is_in_job():
        inner = [str(cluster.folder / "bin" / name), *(["-l"] if step.is_labelled else []), *step.program]
        return ["salloc", "--quiet", *step.allocation, *inner]
    allotted = _allotted(cluster, name, step)
    history.note(cluster, allotted)
    chosen = [sys.executable, "-m", "apenet", "run", "-n", str(allotted.ranks), "-m", str(cluster.machine_file)]
    chosen += ["--ranks-per-node", str(allotted.ranks_per_node)]
    if allotted.partition:
        chosen += ["--partition", allotted.partition]
    else:
        chosen += ["--map", str(history.keep_map(cluster, allotted))]
    return [*chosen, *(["--tag-output"] if step.is_labelled else []), "--", *step.program]


def is_in_job() -> bool:
    """Whether a job has started this process."""
    return "SLURM_JOB_ID" in os.environ


def run_on_network(cluster: Cluster, name: str, arguments: Sequence[str], say: Callable[[str], None]) -> int:
    """Runs the step in a job of a cluster whose steps share the network, and returns its exit status.

    Raises InputError as `command`, and HostError if the simulator has ended. `say` prints what is said of the run.
    """
    step = parse(name, arguments)
    allotted = _allotted(cluster, name, step)
    return live_step.run(
        cluster.folder,
        read_machine(cluster.machine_file),
        job=allotted.job,
        partition=allotted.partition,
        nodes=allotted.nodes_of_ranks,
        ranks_per_node=allotted.ranks_per_node,
        command=allotted.command,
        is_labelled=step.is_labelled,
        say=say,
    )


def _allotted(cluster: Cluster, name: str, step: Step) -> history.RunStep:
    """The step on the job's nodes."""
    for given in step.allocation:
        if given.partition("=")[0] in _OF_ALLOCATIONS:
            raise InputError(
                name, given, "none in a job, whose steps take its first nodes: it belongs to sbatch or salloc"
            )
    nodes = _job_nodes(cluster, os.environ)
    if step.nodes is not None:
        if step.nodes > len(nodes):
            raise InputError(f"{name} -N", step.nodes, f"at most the {len(nodes)} nodes of the job")
        nodes = nodes[: step.nodes]
    ranks = step.ranks or _ranks_of_job(os.environ, step, len(nodes))
    per_node = step.ranks_per_node or -(-ranks // len(nodes))
    if ranks > per_node * len(nodes) or per_node > cluster.ranks_per_node:
        most = cluster.ranks_per_node * len(nodes)
        raise InputError(f"{name} -n", ranks, f"at most {most}: {cluster.ranks_per_node} on each of {len(nodes)} nodes")
    machine = read_machine(cluster.machine_file)
    partition = partition_of(machine, nodes)
    return history.RunStep(
        job=os.environ["SLURM_JOB_ID"],
        nodes=nodes,
        partition=partition,
        ranks=ranks,
        ranks_per_node=per_node,
        command=step.program,
        folder=str(Path.cwd()),
    )


def _ranks_of_job(environment: Mapping[str, str], step: Step, nodes: int) -> int:
    if step.ranks_per_node is not None:
        return step.ranks_per_node * nodes
    text = environment.get("SLURM_NTASKS", "") if step.nodes is None else ""
    return int(text) if _LONG_COUNT.fullmatch(text) else nodes


def _job_nodes(cluster: Cluster, environment: Mapping[str, str]) -> list[int]:
    """The numbers of the job's nodes."""
    listed = environment.get("SLURM_JOB_NODELIST", "")
    asked = ["scontrol", "show", "hostnames", listed]
    done = subprocess.run(asked, env=cluster.environment(), capture_output=True, text=True, check=False)
    number = {name: number for number, name in enumerate(cluster.nodes)}
    names = done.stdout.split()
    if done.returncode != 0 or not names or any(name not in number for name in names):
        raise HostError(f"Slurm: SLURM_JOB_NODELIST = {listed}: expected nodes of {cluster.machine} ({cluster.folder})")
    return sorted(number[name] for name in names)


def partition_of(machine: Machine, nodes: Sequence[int]) -> str:
    """The nodes as --partition takes them: as a box if they are one, which keeps coordinates and closed rings.

    Empty for nodes of a torus or mesh that are no box.
    """
    if not machine.topology.is_grid:
        return "nodes:" + ",".join(map(str, nodes))
    places = [place_of(machine.dims, node) for node in nodes]
    origin = [min(of_dimension) for of_dimension in zip(*places, strict=True)]
    extents = [
        max(of_dimension) + 1 - least for of_dimension, least in zip(zip(*places, strict=True), origin, strict=True)
    ]
    box = [
        number_of(machine.dims, [least + at for least, at in zip(origin, place_of(extents, number), strict=True)])
        for number in range(len(nodes))
    ]
    if math.prod(extents) != len(nodes) or sorted(box) != sorted(nodes):
        return ""
    return f"{'x'.join(map(str, extents))}@{','.join(map(str, origin))}"
