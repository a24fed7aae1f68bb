"""Programs of the host that a cluster starts."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping

from apenet.base.errors import HostError


def found(program: str) -> str | None:
    """Where it is; None if it is not installed. Daemons lie where only root searches."""
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin:/sbin")


def path(program: str) -> str:
    """As `found`; its name if it is not installed."""
    return found(program) or program


def run(program: str, *arguments: str, environment: Mapping[str, str], tail: Callable[[], str]) -> None:
    """Runs it until it ends, or until it has become a daemon. Raises HostError for a status other than 0.

    `tail` gives the last lines of its log, for a program that prints nothing.
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
        why = done.stderr.strip() or tail()
        raise HostError(f"Slurm: {program} does not start (status {done.returncode}): {why}")
