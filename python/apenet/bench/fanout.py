"""One node sends to several neighbours at once, through MPI."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from apenet.base.errors import InputError
from apenet.base.numbers import whole
from apenet.bench.mpi import LARGEST_BYTES, run_on
from apenet.bench.request import BenchRequest
from apenet.bench.result import BenchResult, make_result
from apenet.host.mpi_library import MpiChoice
from apenet.host.toolchain import PACKAGE, compiled
from apenet.machine import Machine

SOURCE = PACKAGE / "programs" / "fan_out.c"
MOST_WITHOUT_GRID = 6
"""Receivers by default on a machine whose nodes have no neighbours of their own, such as a fat tree."""
_TWO_DIRECTIONS = 3  # nodes along a dimension from which on a torus has a neighbour in either direction
_US_PER_S = 1e6
_BYTES_PER_MIB = 2**20


@dataclass(frozen=True)
class FanOutResult(BenchResult):
    """A sweep over numbers of neighbours and sizes. The time is that of one message to each neighbour."""

    neighbors: NDArray[np.int64]
    """How many neighbours the node sends to at each point."""

    @property
    def columns(self) -> dict[str, list[int] | list[float]]:
        """The points' fields, by their names in JSON."""
        columns = {name: values for name, values in super().columns.items() if name != "channels"}
        neighbors: list[int] = self.neighbors.tolist()
        return {**columns, "neighbors": neighbors}


def measure(
    request: BenchRequest, neighbors: Sequence[int] | None, *, library: MpiChoice, pin: bool | None
) -> FanOutResult:
    """Measures each size for each number of neighbours, the first ones of `receivers`."""
    machine, sizes = request.machine, request.sizes
    sender, *others = request.nodes if request.nodes is not None else [0, *neighbours_of_0(machine)]
    if max(sizes) > LARGEST_BYTES:
        raise InputError("sizes", max(sizes), f"at most {LARGEST_BYTES} bytes at layer mpi")
    given = range(1, len(others) + 1) if neighbors is None else neighbors
    expected = f"1 to {len(others)}, the neighbours of node {sender} of {machine.name}"
    counts = [whole("neighbors", number, 1, len(others), expected) for number in given]
    program = compiled(SOURCE)
    points, of_points, warnings = [], [], []
    for count in counts:
        request.progress(count)
        command: list[str | Path] = [program, str(request.iterations or 0), *map(str, sizes)]
        result = run_on(request, [sender, *others[:count]], command, library=library, pin=pin)
        warnings.append(result.warnings)
        for line in (result.stdout or b"").decode().splitlines():
            size, mib_s = line.split()
            points.append((int(size), int(size) * count / _BYTES_PER_MIB / float(mib_s) * _US_PER_S, float(mib_s)))
            of_points.append(count)
    common = make_result(request, "mpi", points, warnings=warnings)
    return FanOutResult(**vars(common), neighbors=np.array(of_points, dtype=np.int64))


def neighbours_of_0(machine: Machine) -> list[int]:
    """The nodes one cable away from node 0: +x, -x, +y, ... Without a grid, the next nodes."""
    topology = machine.file.network.topology.value
    if topology not in {"torus", "mesh"}:
        most = MOST_WITHOUT_GRID + 1 if machine.node_count is None else machine.node_count
        return list(range(1, min(most, MOST_WITHOUT_GRID + 1)))
    found = []
    for dimension, size in enumerate(machine.dims):
        stride = math.prod(machine.dims[:dimension])
        if size > 1:
            found.append(stride)
        if topology == "torus" and size >= _TWO_DIRECTIONS:
            found.append((size - 1) * stride)
    if not found:
        raise InputError("machine", machine.name, "one with at least two nodes")
    return found
