"""Benchmarks through MPI: runs the C program of bench/mpi, compiled with this environment's mpicc."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from apenet.base.errors import FailedError, InputError
from apenet.base.numbers import whole
from apenet.base.tempfolder import temporary_folder
from apenet.bench.layer_table import MOST_PROGRAM_WINDOW
from apenet.bench.layer_table import MPI_LARGEST_BYTES as LARGEST_BYTES
from apenet.bench.request import ProgramRequest, Runs
from apenet.bench.result import BenchResult, make_result
from apenet.host.toolchain import PACKAGE, compiled
from apenet.machine import Machine
from apenet.run.program import run
from apenet.run.program_result import RunError, RunResult

SOURCE = PACKAGE / "programs" / "apenet_bench.c"
TESTS = ("pingpong", "pingping", "roundtrip", "oneway", "unidirectional", "bidirectional")
"""The published tests at MPI level; the programs of bench/layers have the others."""
MEMORIES = ("host", "gpu", "gpu-staged")


class BenchError(FailedError):
    """The benchmark's program failed; the message contains its output."""


def measure(request: ProgramRequest[BenchResult], window: int | None, memory: str) -> BenchResult:
    """One run for every series of doubling sizes, with ranks only on `nodes`, which work in pairs."""
    test, sizes = request.traits.test, request.sizes_bytes
    placed = list(request.placed) if request.placed is not None else [0, 1]
    if len(placed) % 2:
        raise InputError("nodes", ",".join(map(str, placed)), "an even number of nodes: they work in pairs")
    if sizes[-1] > LARGEST_BYTES:
        raise InputError("sizes", sizes[-1], f"at most {LARGEST_BYTES} bytes at layer mpi")
    if window is not None and test != "unidirectional":
        raise InputError("window", window, "none at layer mpi, except for unidirectional")
    whole("window", window or 1, 1, MOST_PROGRAM_WINDOW, f"1 to {MOST_PROGRAM_WINDOW} at layer mpi")
    _check_memory(request.simulated, memory)
    request.require_program_soon(placed, len(placed) // 2)
    program = compiled(SOURCE)
    points: list[tuple[int, float, float]] = []
    warnings: list[tuple[str, ...]] = []
    with temporary_folder() as folder:
        output = folder / "points.jsonl"
        for first, last in doubling_stretches(sizes):
            request.progress(first)
            command: list[str | Path] = [program, "--test", test, "--sizes", f"{first}:{last}", "--output", output]
            options = {"--iterations": request.iterations, "--window": window, "--memory": memory}
            for option, value in options.items():
                if value not in (None, "host"):
                    command += [option, str(value)]
            result = run_on(request, request.simulated, placed, command)
            warnings.append(result.warnings)
            for line in output.read_text(encoding="utf-8").splitlines():
                point = json.loads(line)
                points.append((point["size_bytes"], point["time_us"], point["bandwidth_mib_s"]))
    conditions: dict[str, object] = {} if window is None else {"window": window}
    if memory != "host":
        conditions["memory"] = memory
    return make_result(request, "mpi", points, conditions=conditions, warnings=warnings)


def _check_memory(machine: Machine, memory: str) -> None:
    kinds = set(memory.split(","))
    if not kinds <= set(MEMORIES):
        raise InputError("memory", memory, f"one of {', '.join(MEMORIES)} at layer mpi")
    if kinds != {"host"} and machine.file.host.gpu_copy_bandwidth_mib_s is None:
        raise InputError("memory", memory, f"host: {machine.name} has no GPU (host.gpu_copy_bandwidth_mib_s)")


def run_on(request: Runs[Any], machine: Machine, placed: Sequence[int], command: Sequence[str | Path]) -> RunResult:
    """Runs an MPI program with a rank on each of these nodes. Raises BenchError if it fails."""
    try:
        return run(
            command,
            n=len(placed),
            machine=machine,
            map=placed,
            engine=request.engine,
            seed=request.seed,
            mpi=request.mpi,
            pin=request.pin,
            capture=True,
            environment=request.environment,
        )
    except RunError as error:
        raise BenchError(str(error)) from error


def doubling_stretches(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last size of every series in which each size is twice the one before."""
    first = last = sizes[0]
    for size in sizes[1:]:
        if size != 2 * last:
            yield first, last
            first = size
        last = size
    yield first, last
