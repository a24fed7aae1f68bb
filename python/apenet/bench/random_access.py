"""RandomAccess by the rules of the HPC Challenge: the C programs of bench/randomaccess, as real processes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apenet.base.errors import InputError
from apenet.base.numbers import whole
from apenet.base.tempfolder import temporary_folder
from apenet.bench.layers import LAYERS, build, require_card
from apenet.bench.mpi import run_on
from apenet.bench.request import BenchRequest
from apenet.bench.result import BenchResult, make_result
from apenet.bench.workloads import DEFAULT_NODES, MIB
from apenet.host.mpi_library import MpiChoice
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
    """Of each process; None: by the rules, four for each of its words."""

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


def measure(
    request: BenchRequest,
    layer: str,
    *,
    count: int | None,
    look_ahead: int | None,
    ranks_per_node: int,
    pin: bool | None,
    library: MpiChoice,
) -> RandomAccessResult:
    """Each size of the table in a run of its own, with processes on each node; the program verifies the table."""
    if layer not in TRANSPORTS:
        raise InputError("layer", layer, f"one of {', '.join(TRANSPORTS)} for {request.test}")
    require_card(request, layer)
    nodes = _placed(request, count, ranks_per_node)
    if len(nodes) & (len(nodes) - 1) or not FEWEST_RANKS <= len(nodes) <= MOST_RANKS:
        raise InputError("n", len(nodes), f"a power of two from {FEWEST_RANKS} to {MOST_RANKS} processes")
    held = MOST_LOOK_AHEAD if look_ahead is None else look_ahead
    whole("look_ahead", held, 1, MOST_LOOK_AHEAD, f"1 to {MOST_LOOK_AHEAD}, the limit of the rules")
    program = build(
        f"randomaccess-{layer}",
        LAYERS[layer].library,
        [SOURCES / "random_access.c", SOURCES / f"{layer}_transport.c"],
        [SOURCES / "transport.h", SOURCES / "gasnet_process.h"],
    )
    points, warnings = [], []
    for size in request.sizes:
        if size < WORD_BYTES or size & (size - 1):
            raise InputError("sizes", size, f"powers of two from {WORD_BYTES} bytes: the table at each process")
        request.progress(size)
        with temporary_folder() as folder:
            output = folder / "times.json"
            words = size // WORD_BYTES
            updates = request.iterations or UPDATES_A_WORD * words
            command: list[str | Path] = [program, str(words), str(updates), str(held), output]
            result = run_on(request, nodes, command, library=library, pin=pin)
            times = [json.loads(path.read_text(encoding="utf-8")) for path in folder.iterdir()]
        whole_us = max(one["end_us"] for one in times) - min(one["begin_us"] for one in times)
        time_us = whole_us / sum(one["updates"] for one in times)
        points.append((size, time_us, WORD_BYTES / MIB / (time_us * 1e-6)))
        warnings.append(result.warnings)
    common = make_result(request, layer, points, warnings=warnings)
    return RandomAccessResult(
        **vars(common),
        processes=len(nodes),
        ranks_per_node=ranks_per_node,
        look_ahead=held,
        updates=request.iterations,
    )


def _placed(request: BenchRequest, count: int | None, ranks_per_node: int) -> list[int]:
    """The node of each process: as many on a node as wanted, from the first node on."""
    whole("ranks_per_node", ranks_per_node, 1, MOST_RANKS, f"1 to {MOST_RANKS}")
    if count is not None and count % ranks_per_node:
        raise InputError("n", count, f"a multiple of ranks_per_node, {ranks_per_node}")
    available = request.machine.node_count
    wanted = (available or DEFAULT_NODES) if count is None else count // ranks_per_node
    if available is not None and wanted > available:
        raise InputError("n", count, f"at most {available * ranks_per_node} on {request.machine.name}")
    used = range(wanted) if request.nodes is None else request.nodes
    if len(used) != wanted and count is not None:
        raise InputError("n", count, f"as many as are on the nodes: {len(used) * ranks_per_node}")
    return [node for node in used for _ in range(ranks_per_node)]
