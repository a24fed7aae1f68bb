"""One node sends to several neighbours at once, through MPI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from apenet.base.errors import InputError
from apenet.base.grid import number_of
from apenet.base.numbers import whole
from apenet.bench.layer_table import MPI, MPI_LARGEST_BYTES
from apenet.bench.mpi import run_on
from apenet.bench.request import Option, ProgramRequest, Traits, all_counts
from apenet.bench.result import BenchResult, make_result
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
    """The number of neighbours that the node sends to at each point."""

    @property
    def columns(self) -> dict[str, list[int] | list[float] | list[str]]:
        """The points' fields, by their names in JSON."""
        columns = {name: values for name, values in super().columns.items() if name != "channels"}
        neighbors: list[int] = self.neighbors.tolist()
        return {**columns, "neighbors": neighbors}


@dataclass(frozen=True)
class FanOut(ProgramRequest[FanOutResult]):
    """One node to several neighbours: each size for each number of neighbours, the first ones of the receivers."""

    traits = Traits(
        "fanout",
        "one node to several neighbours at once; time is that of a message to each, bandwidth what it sends",
    )
    default_layer = MPI
    _: KW_ONLY
    layer: Annotated[str | None, Option("Where to measure.  [default: mpi]", MPI)] = None
    neighbors: Annotated[
        str | Sequence[int] | None, Option("Receivers; or 1:6, or 1,2,6.  [default: 1 to all]", "K")
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.measured_layer != MPI:
            raise InputError("layer", self.layer, "mpi: fanout is a program of MPI")
        if self.neighbors is not None:
            self._set("neighbors", all_counts("neighbors", self.neighbors))

    def measure(self) -> FanOutResult:
        """A run of the program for each number of neighbours."""
        machine, sizes = self.simulated, self.sizes_bytes
        sender, *others = self.placed if self.placed is not None else [0, *neighbours_of_0(machine)]
        if max(sizes) > MPI_LARGEST_BYTES:
            raise InputError("sizes", max(sizes), f"at most {MPI_LARGEST_BYTES} bytes at layer mpi")
        given = range(1, len(others) + 1) if self.neighbors is None else all_counts("neighbors", self.neighbors)
        expected = f"1 to {len(others)}, the neighbours of node {sender} of {machine.allocation.name}"
        counts = [whole("neighbors", number, 1, len(others), expected) for number in given]
        self.require_program_soon([sender, others[0]], sum(counts))
        program = compiled(SOURCE)
        points, of_points, warnings = [], [], []
        for count in counts:
            self.progress(count)
            command: list[str | Path] = [program, str(self.iterations or 0), *map(str, sizes)]
            result = run_on(self, machine, [sender, *others[:count]], command)
            warnings.append(result.warnings)
            for line in (result.stdout or b"").decode().splitlines():
                size, mib_s = line.split()
                points.append((int(size), int(size) * count / _BYTES_PER_MIB / float(mib_s) * _US_PER_S, float(mib_s)))
                of_points.append(count)
        common = make_result(self, MPI, points, warnings=warnings)
        return FanOutResult(**vars(common), neighbors=np.array(of_points, dtype=np.int64))


def neighbours_of_0(machine: Machine) -> list[int]:
    """The nodes one cable away from node 0: +x, -x, +y, ... Without a grid, the next nodes."""
    allocation = machine.allocation
    if allocation.torus is None:
        most = MOST_WITHOUT_GRID + 1 if allocation.node_count is None else allocation.node_count
        return list(range(1, min(most, MOST_WITHOUT_GRID + 1)))
    found = []
    for dimension, (size, is_closed) in enumerate(zip(allocation.dims, allocation.torus.is_closed, strict=True)):
        steps = ([1] if size > 1 else []) + ([size - 1] if is_closed and size >= _TWO_DIRECTIONS else [])
        for step in steps:
            place = [0] * len(allocation.dims)
            place[dimension] = step
            found.append(number_of(allocation.dims, place))
    if not found:
        raise InputError("machine", allocation.name, "one with at least two nodes")
    return found
