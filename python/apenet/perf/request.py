"""The request for a benchmark, and its result."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from apenet.machine import Machine
from apenet.machine import machine as read_machine


@dataclass(frozen=True)
class PerfRequest:
    """The machine with its settings, and the amount of work."""

    machine: str
    settings: tuple[str, ...]
    repeat: int

    def read_machine(self) -> Machine:
        """Raises MachineError or InputError."""
        return read_machine(self.machine, self.settings)


@dataclass(frozen=True)
class Figures:
    """The figure in the benchmark's unit, its cost, and exact counts of the work."""

    figure: float
    cpu_seconds: float
    memory_bytes: int
    details: dict[str, float] = field(default_factory=dict)


def peak_memory_bytes() -> int:
    """The largest resident size of this process since it began.

    Not the value of getrusage, which starts at the size of the parent process.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(r"^VmHWM:\s*([0-9]+) kB$", status, flags=re.MULTILINE)
    if found is None:
        raise OSError("/proc/self/status has no VmHWM: Linux is expected")
    return int(found[1]) * 1024
