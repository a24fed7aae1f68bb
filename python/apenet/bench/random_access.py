"""RandomAccess by the rules of the HPC Challenge: the C programs of bench/randomaccess, as real processes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from apenet.base.errors import InputError
from apenet.base.numbers import whole
from apenet.base.tempfolder import temporary_folder
from apenet.bench.layer_table import LAYERS, MPI
from apenet.bench.layers import build, require_card
from apenet.bench.mpi import run_on
from apenet.bench.request import LayerRequest, Option, Traits
from apenet.bench.result import BenchResult, make_result
from apenet.bench.workload_plan import DEFAULT_NODES, MIB
from apenet.host.toolchain import PACKAGE

SOURCES = PACKAGE / "programs" / "randomaccess"
TRANSPORTS = ("velo", "gasnet", "upc", "mpi")
DEFAULT_TABLE_BYTES = 8192
MOST_LOOK_AHEAD = 1024
"""By the rules."""
FEWEST_RANKS = 2
MOST_RANKS = 1024
WORD_BYTES = 8
UPDATES_A_WORD = 4


@dataclass(frozen=True)
class RandomAccessResult(BenchResult):
    """A sweep over the bytes of the table at each process. The time is that of one update of all processes."""

    processes: int
    ranks_per_node: int
    look_ahead: int
    updates: int | None
    """Updates of each process; None: by the rules, four for each of its words."""

    @property
    def rates_per_s(self) -> NDArray[np.float64]:
        """Updates a second, of all processes together."""
        return np.asarray(1e6 / self.times_us, dtype=np.float64)

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet bench --json` prints."""
        content = super().to_json()
        points = content.pop("points")
        content |= {"processes": self.processes, "ranks_per_node": self.ranks_per_node, "look_ahead": self.look_ahead}
        if self.updates is not None:
            content["updates"] = self.updates
        return {**content, "points": points}

    @property
    def heading(self) -> str:
        """First line of the table."""
        on_nodes = f"{self.processes} processes, {self.ranks_per_node} on a node"
        updates = "" if self.updates is None else f", {self.updates} updates of each"
        return f"{super().heading}, {on_nodes}, look-ahead {self.look_ahead}{updates}"


@dataclass(frozen=True)
class RandomAccess(LayerRequest[RandomAccessResult]):
    """Each size of the table in a run of its own, with processes on each node; the program verifies the table."""

    traits = Traits(
        "randomaccess",
        "HPC Challenge, table of this size at each process; time is that of one update of all processes",
        rate_title="Updates per second",
    )
    default_sizes = DEFAULT_TABLE_BYTES
    default_layer = MPI
    _: KW_ONLY
    sizes: Annotated[
        str | int | Sequence[int] | None,
        Option("Bytes of the table at each process; they double from MIN to MAX.  [default: 8K]", "MIN:MAX"),
    ] = None
    layer: Annotated[str | None, Option("Where to measure.  [default: mpi]", "|".join(TRANSPORTS))] = None
    iterations: Annotated[int | None, Option("Updates of a process.  [default: four a word]")] = None
    n: Annotated[int | None, Option("Number of ranks.", "RANKS", "-n")] = None
    look_ahead: Annotated[int, Option("Updates that a process may hold back.")] = MOST_LOOK_AHEAD
    ranks_per_node: Annotated[int, Option("Processes on a node.")] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.measured_layer not in TRANSPORTS:
            raise InputError("layer", self.layer, f"one of {', '.join(TRANSPORTS)} for randomaccess")
        whole("look_ahead", self.look_ahead, 1, MOST_LOOK_AHEAD, f"1 to {MOST_LOOK_AHEAD}, the limit of the rules")

    def measure(self) -> RandomAccessResult:
        """A run of the program for each size."""
        layer = self.measured_layer
        require_card(self)
        nodes = self._processes()
        if len(nodes) & (len(nodes) - 1) or not FEWEST_RANKS <= len(nodes) <= MOST_RANKS:
            raise InputError("n", len(nodes), f"a power of two from {FEWEST_RANKS} to {MOST_RANKS} processes")
        of_each = [self.iterations or UPDATES_A_WORD * (size // WORD_BYTES) for size in self.sizes_bytes]
        self.require_soon(float(sum(of_each) * len(nodes)))
        program = build(
            f"randomaccess-{layer}",
            LAYERS[layer].library,
            [SOURCES / "random_access.c", SOURCES / f"{layer}_transport.c"],
            [SOURCES / "transport.h", SOURCES / "gasnet_process.h"],
        )
        points, warnings = [], []
        for size in self.sizes_bytes:
            if size < WORD_BYTES or size & (size - 1):
                raise InputError("sizes", size, f"powers of two from {WORD_BYTES} bytes: the table at each process")
            self.progress(size)
            with temporary_folder() as folder:
                output = folder / "times.json"
                words = size // WORD_BYTES
                updates = self.iterations or UPDATES_A_WORD * words
                command: list[str | Path] = [program, str(words), str(updates), str(self.look_ahead), output]
                result = run_on(self, self.simulated, nodes, command)
                times = [json.loads(path.read_text(encoding="utf-8")) for path in folder.iterdir()]
            whole_us = max(one["end_us"] for one in times) - min(one["begin_us"] for one in times)
            time_us = whole_us / sum(one["updates"] for one in times)
            points.append((size, time_us, WORD_BYTES / MIB / (time_us * 1e-6)))
            warnings.append(result.warnings)
        common = make_result(self, layer, points, warnings=warnings)
        return RandomAccessResult(
            **vars(common),
            processes=len(nodes),
            ranks_per_node=self.ranks_per_node,
            look_ahead=self.look_ahead,
            updates=self.iterations,
        )

    def _processes(self) -> list[int]:
        """The node of each process: as many on a node as wanted, from the first node on."""
        of_node, count = self.ranks_per_node, self.n
        whole("ranks_per_node", of_node, 1, MOST_RANKS, f"1 to {MOST_RANKS}")
        if count is not None and count % of_node:
            raise InputError("n", count, f"a multiple of ranks_per_node, {of_node}")
        available = self.simulated.node_count
        wanted = (available or DEFAULT_NODES) if count is None else count // of_node
        if available is not None and wanted > available:
            raise InputError("n", count, f"at most {available * of_node} on {self.simulated.name}")
        used = range(wanted) if self.placed is None else self.placed
        if len(used) != wanted and count is not None:
            raise InputError("n", count, f"as many as are on the nodes: {len(used) * of_node}")
        return [node for node in used for _ in range(of_node)]
