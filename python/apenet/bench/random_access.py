"""RandomAccess by the rules of the HPC Challenge: the C programs of bench/randomaccess, as real processes.

At layer card it is the core's workload: scripted ranks that send the same messages.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from apenet import _core
from apenet.base.errors import InputError
from apenet.base.numbers import whole
from apenet.base.outfiles import given_path
from apenet.base.tempfolder import temporary_folder
from apenet.bench.layer_table import CARD, LAYERS, MPI
from apenet.bench.layers import build, require_card
from apenet.bench.mpi import BenchError, run_on
from apenet.bench.request import MESSAGE_OF_PROCESSES, LayerRequest, Option, Traits
from apenet.bench.result import BenchResult, make_result
from apenet.bench.workload_plan import DEFAULT_NODES, MIB, Plan, require_soon, write_goal
from apenet.host.toolchain import PACKAGE

SOURCES = PACKAGE / "programs" / "randomaccess"
WORKLOAD = _core.workload("randomaccess")
UPC = "upc"
TRANSPORTS = ("velo", "gasnet", UPC, "mpi")
DEFAULT_TABLE_BYTES = 8192
MOST_LOOK_AHEAD = 1024
"""By the rules."""
FEWEST_RANKS = 2
MOST_RANKS = 1024
WORD_BYTES = 8
UPDATES_A_WORD = 4
MOST_TABLE_BYTES = 2**30
"""All processes together; they keep a second table to compare with."""
MOST_WRONG_SHARE = 0.01
"""What the rules allow, as a share of the words of the whole table."""
MESSAGES_OF_UPC_UPDATE = 4


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

    traits = Traits(WORKLOAD.name, WORKLOAD.definition, rate_title="Updates per second")
    default_sizes = DEFAULT_TABLE_BYTES
    default_layer = MPI
    _: KW_ONLY
    sizes: Annotated[
        str | int | Sequence[int] | None,
        Option("Bytes of the table at each process; they double from MIN to MAX.  [default: 8K]", "MIN:MAX"),
    ] = None
    layer: Annotated[str | None, Option("Where to measure.  [default: mpi]", "|".join((CARD, *TRANSPORTS)))] = None
    iterations: Annotated[int | None, Option("Updates of a process.  [default: four a word]")] = None
    n: Annotated[int | None, Option("Number of ranks.", "RANKS", "-n")] = None
    look_ahead: Annotated[int, Option("Updates that a process may hold back.")] = MOST_LOOK_AHEAD
    ranks_per_node: Annotated[int, Option("Processes on a node.")] = 1
    goal: Annotated[str | Path | None, Option("Layer card: write the messages of one size.", "FILE")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.measured_layer not in (CARD, *TRANSPORTS):
            raise InputError("layer", self.layer, f"one of {', '.join((CARD, *TRANSPORTS))} for randomaccess")
        self._set("goal", given_path("goal", self.goal, "a file"))
        if self.goal is not None and self.measured_layer != CARD:
            raise InputError("goal", self.goal, f"none at layer {self.measured_layer}")
        if self.goal is not None and len(self.sizes_bytes) != 1:
            raise InputError("sizes", len(self.sizes_bytes), "one size with goal, such as 8K")
        whole("look_ahead", self.look_ahead, 1, MOST_LOOK_AHEAD, f"1 to {MOST_LOOK_AHEAD}, the limit of the rules")

    def measure(self) -> RandomAccessResult:
        """A run of the program, or of scripted ranks, for each size."""
        if self.measured_layer == CARD:
            return self._measure_scripted()
        require_card(self)
        nodes = self._processes()
        layer = self.measured_layer
        self._require_program_soon(len(nodes))
        program = build(
            f"randomaccess-{layer}",
            LAYERS[layer].library,
            [SOURCES / "random_access.c", SOURCES / f"{layer}_transport.c"],
            [SOURCES / "transport.h", SOURCES / "gasnet_process.h"],
        )
        points, warnings = [], []
        for size in self.sizes_bytes:
            self.progress(size)
            with temporary_folder() as folder:
                output = folder / "times.json"
                of_each = [size // WORD_BYTES, self._updates(size), self.look_ahead]
                command: list[str | Path] = [program, *map(str, of_each), output]
                result = run_on(self, self.simulated, nodes, command)
                times = [json.loads(path.read_text(encoding="utf-8")) for path in folder.iterdir()]
            whole_us = max(one["end_us"] for one in times) - min(one["begin_us"] for one in times)
            points.append(_point(size, whole_us, sum(one["updates"] for one in times)))
            wrong = sum(one["wrong"] for one in times)
            warnings.append([*result.warnings, *self._judge(size, wrong, len(nodes))])
        return self._result(points, warnings, len(nodes))

    def _require_program_soon(self, processes: int) -> None:
        for size in self.sizes_bytes:
            _require_table(size)
        updates = float(sum(map(self._updates, self.sizes_bytes)) * processes)
        # The most that a process holds back for one of the others is about twice the mean.
        together = max(1.0, 2.0 * self.look_ahead / processes)
        messages = MESSAGES_OF_UPC_UPDATE if self.measured_layer == UPC else 1 / together
        self.require_soon(updates * max(1.0, MESSAGE_OF_PROCESSES * messages))
        largest = max(self.sizes_bytes)
        if largest * processes > MOST_TABLE_BYTES and not self.allow_long:
            raise InputError(
                "sizes",
                largest,
                f"a table of at most {MOST_TABLE_BYTES} bytes over all {processes} processes, which keep it twice: "
                "choose smaller --sizes or fewer processes (-n), or wait with --allow-long",
            )

    def _judge(self, size: int, wrong: int, processes: int) -> list[str]:
        """Warnings of wrong words that the rules allow. Raises BenchError if there are more."""
        words = size // WORD_BYTES * processes
        if wrong == 0:
            return []
        lost = f"{wrong} of the table's {words} words are wrong, because simultaneous updates of a word were lost"
        if wrong > MOST_WRONG_SHARE * words:
            raise BenchError(
                f"sizes = {size}: {lost}: the rules allow one in a hundred. Expected fewer: in a larger table, or of "
                "fewer processes (-n), updates meet less often"
            )
        return [f"{lost} (the rules allow one in a hundred)"]

    def _measure_scripted(self) -> RandomAccessResult:
        nodes = self._processes()
        options = _core.WorkloadOptions()
        options.grid, options.nodes, options.rounds = [len(nodes)], self.simulated.allocation.of_machine(nodes), 1
        options.updates, options.look_ahead = self.iterations or 0, self.look_ahead
        description = self.simulated.description(self.seed, self.engine)
        plan = Plan(self, WORKLOAD, self.sizes_bytes, description, options, (len(nodes),), None)
        for size in self.sizes_bytes:
            _require_table(size)
        require_soon([plan])
        if self.goal is not None:
            write_goal(plan, Path(self.goal))
        points, warnings = [], []
        for size in self.sizes_bytes:
            result = plan.run_size(size)
            points.append(_point(size, result.time_ps * 1e-6, self._updates(size) * len(nodes)))
            warnings.append(result.warnings)
        return self._result(points, warnings, len(nodes))

    def _updates(self, size: int) -> int:
        """Updates of each process with a table of this size."""
        return self.iterations or UPDATES_A_WORD * (size // WORD_BYTES)

    def _result(
        self, points: list[tuple[int, float, float]], warnings: Sequence[Sequence[str]], processes: int
    ) -> RandomAccessResult:
        common = make_result(self, self.measured_layer, points, warnings=warnings)
        return RandomAccessResult(
            **vars(common),
            processes=processes,
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
        available = self.simulated.allocation.node_count
        wanted = (available or DEFAULT_NODES) if count is None else count // of_node
        if available is not None and wanted > available:
            raise InputError("n", count, f"at most {available * of_node} on {self.simulated.allocation.name}")
        used = range(wanted) if self.placed is None else self.placed
        if len(used) != wanted and count is not None:
            raise InputError("n", count, f"as many as are on the nodes: {len(used) * of_node}")
        nodes = [node for node in used for _ in range(of_node)]
        if len(nodes) & (len(nodes) - 1) or not FEWEST_RANKS <= len(nodes) <= MOST_RANKS:
            raise InputError("n", len(nodes), f"a power of two from {FEWEST_RANKS} to {MOST_RANKS} processes")
        return nodes


def _require_table(size: int) -> None:
    if size < WORD_BYTES or size & (size - 1):
        raise InputError("sizes", size, f"powers of two from {WORD_BYTES} bytes: the table at each process")


def _point(size: int, whole_us: float, updates: int) -> tuple[int, float, float]:
    """Size, time of an update, and bandwidth."""
    time_us = whole_us / updates
    return size, time_us, WORD_BYTES / MIB / (time_us * 1e-6)
