"""The checks of `apenet doctor`: the parts that a run needs, and a run of two ranks that shows their path."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from apenet._core import version as __version__
from apenet.base.errors import ApenetError
from apenet.host.toolchain import CUDA, INCLUDE, PROVIDER, SHIM, find_mpicc
from apenet.run.program import run
from apenet.run.program_result import RunError, RunResult

# The report of each rank. The time of the exchange is virtual: 1 us each way on the machine `ideal`.
_PROBE = """
import json, sys, time
from mpi4py import MPI
world = MPI.COMM_WORLD
rank, other = world.Get_rank(), 1 - world.Get_rank()
begin = time.perf_counter()
world.sendrecv(rank, dest=other, source=other)
elapsed_us = (time.perf_counter() - begin) * 1e6
node = world.Split_type(MPI.COMM_TYPE_SHARED)
sys.stdout.write(json.dumps({"rank": rank, "library": MPI.Get_library_version().splitlines()[0],
                             "elapsed_us": elapsed_us, "together": node.Get_size()}) + "\\n")
"""

_CLOCK_LIMIT_US = 100.0  # the probe's exchange takes a few virtual us; on a real clock it takes longer


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    verdict: Literal["ok", "note", "bad"]
    subject: str
    detail: str


@dataclass(frozen=True)
class RankPath:
    """The connection of one rank of the probe."""

    rank: int
    library: str
    provider: str
    clock: str
    locality: str


@dataclass(frozen=True)
class Diagnosis:
    """All findings; the host is healthy if none is bad."""

    findings: tuple[Finding, ...]
    ranks: tuple[RankPath, ...] = field(default=())

    @property
    def healthy(self) -> bool:
        """Whether programs can be run."""
        return all(finding.verdict != "bad" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet doctor --json` prints."""
        return {
            "version": __version__,
            "healthy": self.healthy,
            "findings": [asdict(finding) for finding in self.findings],
            "ranks": [asdict(rank) for rank in self.ranks],
        }


def examine() -> Diagnosis:
    """Checks the host, then runs two ranks on the machine `ideal`."""
    findings = [
        Finding("ok", "apenet", f"{__version__}, Python {platform.python_version()}, {os.cpu_count()} cores"),
        _library("shim", SHIM),
        _library("provider", PROVIDER),
        _library("cuda", CUDA),
        *(Finding("ok", "header", str(INCLUDE / name)) for name in ("apenet_compute.h", "apenet_gpu.h")),
        _package("mpich", "the default MPI"),
        _package("mpi4py", "MPI for Python programs"),
        _compiler(),
        _ptrace(),
        _bypass(),
    ]
    try:
        result = run([sys.executable, "-c", _PROBE], n=2, machine="ideal", capture=True)
    except RunError as error:
        failed = error.result
        said = "; ".join([failed.message or failed.outcome, *error.stderr.splitlines()[-3:]])
        return Diagnosis((*findings, Finding("bad", "probe", said)), _paths(failed))
    except ApenetError as error:
        return Diagnosis((*findings, Finding("bad", "probe", str(error))))
    return Diagnosis((*findings, _judge(result)), _paths(result))


def _library(name: str, path: Path) -> Finding:
    return Finding("ok" if path.exists() else "bad", name, str(path) if path.exists() else f"{path} is missing")


def _package(name: str, purpose: str) -> Finding:
    try:
        return Finding("ok", name, f"{metadata.version(name)} ({purpose})")
    except metadata.PackageNotFoundError:
        return Finding("note", name, f"not installed here ({purpose}): pip install {name}")


def _compiler() -> Finding:
    try:
        return Finding("ok", "mpicc", str(find_mpicc()))
    except ApenetError as error:
        return Finding("note", "mpicc", f"{error}; it compiles the programs of bench --layer mpi")


def _ptrace() -> Finding:
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    try:
        level = int(scope.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return Finding("ok", "memory access", "no ptrace restriction on this host")
    if level <= 1:
        return Finding(
            "ok",
            "memory access",
            f"ptrace_scope = {level}: ranks name the simulator, large messages are copied once",
        )
    return Finding(
        "note",
        "memory access",
        f"ptrace_scope = {level} forbids it: large messages are copied twice, times are the same",
    )


def _bypass() -> Finding:
    """Settings of the user's environment that select another path; a run replaces them."""
    names = ("FI_PROVIDER", "FI_PROVIDER_PATH", "MPIR_CVAR_CH4_NETMOD", "MPIR_CVAR_NOLOCAL")
    found = [name for name in names if name in os.environ]
    if found:
        return Finding("note", "environment", ", ".join(found) + " set here; a run replaces them")
    return Finding("ok", "environment", "nothing set that would lead messages past the simulated network")


def _judge(result: RunResult) -> Finding:
    return Finding(
        "ok",
        "probe",
        f"{result.messages} messages and {result.bytes} bytes crossed the simulated network in "
        f"{result.virtual_time_us:.2f} us of virtual time",
    )


def _paths(result: RunResult) -> tuple[RankPath, ...]:
    said: dict[int, dict[str, Any]] = {}
    for line in (result.stdout or b"").decode(errors="replace").splitlines():
        if line.startswith("{"):
            report = json.loads(line)
            said[report["rank"]] = report
    paths = []
    for number, rank in enumerate(result.ranks):
        report = said.get(number, {})
        elapsed_us = report.get("elapsed_us")
        virtual = elapsed_us is not None and elapsed_us < _CLOCK_LIMIT_US
        paths.append(
            RankPath(
                rank=number,
                library=rank.library or report.get("library", "unknown"),
                provider="apenet" if rank.used_network else "another one: bypasses the network",
                clock="virtual" if virtual else "real: the shim is not in the process",
                locality=f"node {number}" + ("" if report.get("together") == 1 else "; shares memory with others"),
            )
        )
    return tuple(paths)
