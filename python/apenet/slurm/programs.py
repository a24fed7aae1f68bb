"""Programs of the host that a cluster starts."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

from apenet.base.errors import HostError

STATE = "cluster.json"
"""The file that tells what a cluster is, in its folder."""
_OF_ROOT = "/usr/sbin:/usr/local/sbin:/sbin"
"""Where daemons lie."""


def found(program: str) -> str | None:
    """Where it is; None if it is not installed. The commands of a cluster (`env.sh`) are none of the host's."""
    folders = f"{os.environ.get('PATH', os.defpath)}:{_OF_ROOT}".split(os.pathsep)
    of_host = [folder for folder in folders if not (Path(folder).parent / STATE).exists()]
    return shutil.which(program, path=os.pathsep.join(of_host))


def path(program: str) -> str:
    """As `found`; its name if it is not installed."""
    return found(program) or program


def run(program: str, *arguments: str, environment: Mapping[str, str], log: Path) -> None:
    """Runs it until it ends, or until it has become a daemon. Raises HostError for a status other than 0.

    `log`: its own, for a program that prints nothing.
    """
    done = subprocess.run(
        [path(program), *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        why = done.stderr.strip() or tail(log)
        raise HostError(f"Slurm: {program} does not start (status {done.returncode}): {why}")


def tail(log: Path) -> str:
    """The last lines of a log; nothing if there is none."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(lines[-5:])


def host_name() -> str:
    """The name of this host, without its domain."""
    return socket.gethostname().partition(".")[0]
