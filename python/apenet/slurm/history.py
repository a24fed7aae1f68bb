"""The steps that jobs of a cluster have run, and the same steps as jobs of one simulation (`apenet cluster run`).

Under Slurm each step has the network to itself, unless the cluster has a shared one. Together in one simulation, they
share its links: on a shared network, as they did.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from apenet.base.errors import InputError
from apenet.base.outfiles import FolderKind, OutFolder, begins_with
from apenet.live import records
from apenet.live.records import StepRecord
from apenet.slurm.daemons import Cluster

JOBS_FILE = "jobs.toml"
PS_PER_US = 10**6
_STEPS = "steps.jsonl"
_HEADING = b"# Steps that Slurm has started"
_KIND = FolderKind(JOBS_FILE, begins_with(_HEADING), "record of steps")


@dataclass(frozen=True, kw_only=True)
class RunStep:
    """A step of a job of Slurm's, run in `folder`. `partition`: its nodes as --partition takes them, or empty."""

    job: str
    nodes: list[int]
    partition: str
    ranks: int
    ranks_per_node: int
    command: list[str]
    folder: str

    @property
    def nodes_of_ranks(self) -> list[int]:
        """Node after node, as many ranks on each as it can have."""
        return [self.nodes[rank // self.ranks_per_node] for rank in range(self.ranks)]


def keep_map(cluster: Cluster, step: RunStep) -> Path:
    """A file for --map of the step's ranks."""
    text = "".join(f"{node}\n" for node in step.nodes_of_ranks)
    file = cluster.folder / f"map-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    new = file.with_name(f"{file.name}-{os.getpid()}")  # another step may read the file now
    new.write_text(text, encoding="utf-8")
    new.rename(file)
    return file


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

    machine = cluster.machine_files()
    content: dict[str, object] = {"machine": str(folder.absolute() / cluster.machine_file.name)}
    heading = f"{_HEADING.decode()} on {cluster.machine}. "
    if cluster.shares_network:
        shared, notes = _chosen_of_network(cluster, names)
        heading += "\n".join(["They begin when they began.", *(f"# {note}" for note in notes)]) + "\n"
        content["joins"] = True
        jobs = {name: _job_of_network(step) for name, step in shared.items()}
    else:
        heading += (
            "Real time does not tell when they would meet in virtual time:\n"
            "# all begin at 0, unless you give them a start.\n"
        )
        jobs = {name: _job(step) for name, step in chosen_steps(cluster, names).items()}
    content["job"] = {f"j{name.replace('.', '-')}": job for name, job in jobs.items()}
    with closing(OutFolder("out", folder, _KIND, [JOBS_FILE, *machine])) as out:
        out.keep({**machine, JOBS_FILE: (heading + tomlkit.dumps(content)).encode()})
    return list(jobs)


def _chosen_of_network(cluster: Cluster, names: Sequence[str]) -> tuple[dict[str, StepRecord], list[str]]:
    """The steps of a shared network in the order in which they joined it, and what is to be said of them."""
    ended = {f"{step.job}.{step.step}": step for step in records.read(cluster.folder)}
    for name in names:
        if not any(name in (known, step.job) for known, step in ended.items()):
            raise InputError("step", name, f"one of {', '.join(ended) or 'none: no step has ended'}")
    used = {name: step for name, step in ended.items() if step.start_ps is not None}
    chosen = {name: step for name, step in used.items() if not names or name in names or step.job in names}
    if not chosen:
        raise InputError("step", ", ".join(names) or "nothing", "steps that have used the network, and have ended")
    notes = []
    if len(chosen) < len(used):
        notes.append("Not all steps: without the others, these may take other times than they took.")
    cut = [name for name, step in chosen.items() if step.is_cut]
    if cut:
        notes.append(f"Cancelled in the middle of a computation, to whose end they run here: {', '.join(cut)}.")
    return dict(sorted(chosen.items(), key=lambda item: item[1].start_ps or 0)), notes


def _job(step: RunStep | StepRecord) -> dict[str, object]:
    job: dict[str, object] = {"command": step.command, "directory": step.folder, "ranks": step.ranks}
    if step.partition:
        return {**job, "ranks_per_node": step.ranks_per_node, "partition": step.partition}
    return {**job, "map": step.nodes_of_ranks}


def _job_of_network(step: StepRecord) -> dict[str, object]:
    job = {**_job(step), "start": _time_text(step.start_ps or 0)}
    limit_ps = max(step.ended_ps) if step.is_cut else step.limit_ps
    if limit_ps:
        job["limit_virtual"] = _time_text(limit_ps)
    if step.environment:
        job["environment"] = step.environment
    return job


def _time_text(ps: int) -> str:
    return f"{ps // PS_PER_US}.{ps % PS_PER_US:06}us"
