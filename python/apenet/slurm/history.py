"""The steps that jobs of a cluster have run, and the same steps as jobs of one simulation (`apenet cluster run`).

Under Slurm each step has the network to itself. Together in one simulation, they share its links.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from apenet.base.errors import InputError
from apenet.base.outfiles import FolderKind, OutFolder, begins_with
from apenet.slurm.daemons import Cluster

JOBS_FILE = "jobs.toml"
_STEPS = "steps.jsonl"
_HEADING = b"# Steps that Slurm has started"
_KIND = FolderKind(JOBS_FILE, begins_with(_HEADING), "record of steps")


@dataclass(frozen=True, kw_only=True)
class RunStep:
    """A step of a job of Slurm's. `partition`: its nodes as --partition takes them; `folder`: where it was run."""

    job: str
    nodes: list[int]
    partition: str
    ranks: int
    ranks_per_node: int
    command: list[str]
    folder: str


def note(cluster: Cluster, step: RunStep) -> None:
    """Adds a step to those of the cluster. Steps of several jobs may be noted at the same time."""
    line = json.dumps(asdict(step)) + "\n"
    file = os.open(cluster.folder / _STEPS, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


def steps_of(cluster: Cluster) -> dict[str, RunStep]:
    """All steps, by names as Slurm's: the number of the job, and that of the step in the order in which they began."""
    file = cluster.folder / _STEPS
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    of_job: dict[int, list[RunStep]] = {}
    for line in lines:
        step = RunStep(**json.loads(line))
        of_job.setdefault(int(step.job), []).append(step)
    return {f"{job}.{number}": step for job in sorted(of_job) for number, step in enumerate(of_job[job])}


def chosen_steps(cluster: Cluster, names: Sequence[str]) -> dict[str, RunStep]:
    """The steps with these names, or of these jobs; without a name, all.

    Raises InputError for a name without a step, and for steps that use a node one after the other.
    """
    known = steps_of(cluster)
    chosen: dict[str, RunStep] = {}
    for name in names:
        of_name = {known_name: step for known_name, step in known.items() if name in (known_name, step.job)}
        if not of_name:
            raise InputError("step", name, f"one of {', '.join(known) or 'none: no job has run a step'}")
        chosen |= of_name
    if not names:
        chosen = known
    if not chosen:
        raise InputError("step", "nothing", "a cluster whose jobs have run a step with srun or mpiexec")
    users: dict[int, str] = {}
    for name, step in chosen.items():
        for node in step.nodes:
            other = users.setdefault(node, name)
            if other != name:
                both = f"{other} and {name}, on node {cluster.nodes[node]}"
                raise InputError("step", both, "steps without a common node, such as those of jobs that ran together")
    return chosen


def write_jobs(cluster: Cluster, names: Sequence[str], folder: Path) -> list[str]:
    """Writes jobs.toml and the machine into a folder, and returns the names of the steps in it.

    Raises InputError as chosen_steps.
    """
    import tomlkit  # noqa: PLC0415 (0.1 s of import that most commands do not need)

    chosen = chosen_steps(cluster, names)
    machine = cluster.machine_files()
    with closing(OutFolder("out", folder, _KIND, [JOBS_FILE, *machine])) as out:
        content: dict[str, object] = {"machine": str(folder.absolute() / cluster.machine_file.name)}
        content["job"] = {f"j{name.replace('.', '-')}": _job(step) for name, step in chosen.items()}
        heading = (
            f"{_HEADING.decode()} on {cluster.machine}. Real time does not tell when they would meet in virtual time:\n"
            "# all begin at 0, unless you give them a start.\n"
        )
        out.keep({**machine, JOBS_FILE: (heading + tomlkit.dumps(content)).encode()})
    return list(chosen)


def _job(step: RunStep) -> dict[str, object]:
    return {
        "command": ["env", f"--chdir={step.folder}", *step.command],
        "ranks": step.ranks,
        "ranks_per_node": step.ranks_per_node,
        "partition": step.partition,
    }
