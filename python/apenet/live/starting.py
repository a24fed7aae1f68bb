"""Starts the simulator of a shared network as a process of its own."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
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
    """Raises InputError for a machine that cannot be shared, or has no places for so many ranks on a node."""
    with refusals_named(machine):
        _core.Session(machine.description(SEED, ENGINE), ranks_per_node)


def simulator_arguments(folder: Path) -> list[str]:
    """The arguments of Python for the simulator of a folder, by which it is found."""
    return ["-m", "apenet", "cluster", "network", "--dir", str(folder)]


def start_simulator(folder: Path) -> int:
    """Starts it for the cluster of a folder, and returns its process id when it hears steps.

    Raises HostError if it does not start.
    """
    log = folder / _LOG
    process = os.posix_spawn(
        sys.executable,
        [sys.executable, *simulator_arguments(folder)],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    deadline = time.monotonic() + _START_S
    while not is_listening(folder):
        if os.waitpid(process, os.WNOHANG)[0] or time.monotonic() > deadline:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            said = log.read_text(errors="replace").strip() if log.exists() else ""
            raise HostError(f"the simulator of the shared network does not start: {said or 'it says nothing'}")
        time.sleep(_POLL_S)
    return process
