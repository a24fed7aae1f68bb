"""The steps that have run on a shared network, with the virtual times at which they began."""

from __future__ import annotations

import errno
import json
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from apenet.base.errors import HostError

_FILE = "network.jsonl"
_ENVIRONMENT = "network.env"
# What the host, the batch system or the run itself sets for each step.
_NOT_KEPT = re.compile(
    "(SLURM|LD_|APENET_).*|PATH|PWD|OLDPWD|SHLVL|_|HOME|USER|LOGNAME|SHELL|TERM|HOSTNAME|TMPDIR|ENVIRONMENT"
)


@dataclass(frozen=True, kw_only=True)
class StepRequest:
    """A step as the simulator is asked for it. `nodes_of_ranks`: the machine's. `partition`: as --partition, or empty.

    `folder`: where it runs. `environment`: what it has beside the variables with which the simulator was started.
    """

    job: str
    nodes_of_ranks: list[int]
    partition: str
    ranks: int
    ranks_per_node: int
    command: list[str]
    folder: str
    environment: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class StepRecord(StepRequest):
    """A step that has ended. `step`: its number in its job. `ended_ps`: the end of each rank since its start.

    `start_ps` is None if it has not used the network. `limit_ps`: the virtual time after its start at which it was
    cancelled. `is_cut`: it was cancelled in the middle of a computation, so that another run would end elsewhere.
    """

    step: int
    start_ps: int | None
    ended_ps: list[int]
    outcome: str
    exit_status: int
    messages: int
    trace_hash: str
    limit_ps: int = 0
    is_cut: bool = False


def keep_environment(folder: Path) -> None:
    """Writes down the variables of this process, the simulator."""
    file = os.open(folder / _ENVIRONMENT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(file, "w") as stream:
        json.dump(dict(os.environ), stream)


def own_environment(folder: Path) -> dict[str, str]:
    """The variables that this process has beside those of the simulator."""
    file = folder / _ENVIRONMENT
    common = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if common.get(name) != value and not _NOT_KEPT.fullmatch(name)
    }


def keep(folder: Path, record: StepRecord) -> None:
    """Adds a step to those of the folder, which only one process does. Raises HostError if the host refuses it."""
    line = (json.dumps(asdict(record)) + "\n").encode()
    try:
        file = os.open(folder / _FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            before = os.fstat(file).st_size
            if os.write(file, line) < len(line):
                os.ftruncate(file, before)  # half a line would hide the ones that follow
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(file)
    except OSError as error:
        raise HostError(f"{folder / _FILE}: the step is not in it: {error.strerror}") from error


def read(folder: Path) -> list[StepRecord]:
    """All steps that have ended, in the order in which they have."""
    file = folder / _FILE
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [StepRecord(**json.loads(line)) for line in lines]
