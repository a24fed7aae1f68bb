"""Starts the simulator of a shared network as a process of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from apenet import _core
from apenet.base.errors import HostError
from apenet.live.simulator import ENGINE, SEED, is_listening
from apenet.machine import Machine
from apenet.run.session import refusals_named

_START_S = 60.0
_POLL_S = 0.05
_LOG = "network.log"


def require_shared(machine: Machine, ranks_per_node: int) -> None:
    """Raises InputError for a machine that cannot be shared, or has no room for so many ranks on a node."""
    with refusals_named(machine):
        _core.Session(machine.description(SEED, ENGINE), ranks_per_node)


def simulator_arguments(folder: Path) -> list[str]:
    """The arguments of Python for the simulator of a folder, by which it is found."""
    return ["-m", "apenet", "cluster", "network", "--dir", str(folder)]


def start_simulator(folder: Path) -> int:
    """Starts it for the cluster of a folder, and returns its process id when it hears steps.

    Raises HostError if it does not start.
    """
    with (folder / _LOG).open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, *simulator_arguments(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )
    deadline = time.monotonic() + _START_S
    while not is_listening(folder):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            process.wait()
            said = (folder / _LOG).read_text(errors="replace").strip()
            raise HostError(f"the simulator of the shared network does not start: {said or 'it says nothing'}")
        time.sleep(_POLL_S)
    return process.pid
