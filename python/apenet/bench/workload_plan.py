"""Runs workloads of a whole machine at the card: scripted ranks, one per node."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from apenet import _core
from apenet.base.errors import InputError, Literal
from apenet.base.grid import nearly_cubic
from apenet.base.outfiles import OutFile, begins_with
from apenet.bench.decomposition import decompose, folded
from apenet.bench.lattice import Lattice
from apenet.bench.request import FEWEST_NODES, MachineRequest
from apenet.bench.result import BenchResult, WorkloadResult, make_result
from apenet.machine import Machine

DEFAULT_NODES = 64  # default for a machine of any size
DEFAULT_ITERATIONS = 5
MOST_FORWARDED = 50_000_000
"""Packets times hops through software that forwards: each takes up to a microsecond of the host's time."""
GRID_DIMENSIONS = 3

MIB = 2**20
ALL_TO_ALL = "alltoall"
BY_SIZE = "auto"
_BY_SIZE = ((256, "bruck"), (32768, "direct"), (math.inf, "pairwise"))
"""The largest size of each algorithm of an all-to-all by default: those of MPICH, MPIR_CVAR_ALLTOALL_*_MSG_SIZE."""


@dataclass(frozen=True)
class Plan:
    """A workload before it runs: its options for the core, but the size."""

    request: MachineRequest[Any]
    workload: _core.Workload
    sizes: Sequence[int]
    description: _core.MachineDescription
    options: _core.WorkloadOptions
    grid: tuple[int, ...]
    algorithm: str | None

    def take_size(self, size: int) -> None:
        """Sets what the options of the core have for a size."""
        self.options.bytes = size
        self.options.algorithm = algorithm_of(self.algorithm, size)

    def run_size(self, size: int) -> _core.WorkloadResult:
        """Runs it with this size. Raises InputError for options that the core refuses."""
        self.request.progress(size)
        self.take_size(size)
        try:
            return _core.run_workload(self.description, self.workload, self.options)
        except ValueError as error:
            raise self.request.simulated.refused(error) from error

    @property
    def bisection_bytes_per_s(self) -> float | None:
        """What the links across the middle of the grid carry in one direction, headers included.

        None unless the workload is that of all nodes of a torus or mesh whose longest dimension is even.
        """
        machine = self.request.simulated
        nodes = self.options.nodes
        if not machine.topology.is_grid or sorted(nodes) != list(range(machine.node_count or 0)):
            return None
        longest = max(range(len(machine.dims)), key=lambda d: machine.dims[d])
        if machine.dims[longest] % 2 != 0:
            return None
        units = self.description.base_units()
        word, cycles, clock = (
            cast("int", units[f"network.links[{longest}].{key}"]) for key in ("word_bytes", "word_cycles", "clock_mhz")
        )
        cuts = 2 if machine.topology.wraps and machine.dims[longest] > FEWEST_NODES else 1
        return len(nodes) // machine.dims[longest] * cuts * word * clock / cycles

    @property
    def iterations(self) -> int:
        """The iterations of the test, each with the workload's rounds."""
        return self.options.rounds // self.workload.rounds


def make_plan(
    request: MachineRequest[BenchResult],
    workload: _core.Workload,
    *,
    count: int | None,
    lattice: Lattice | None = None,
    algorithm: str | None = None,
) -> Plan:
    """Checks the options of a workload. Raises InputError.

    With a lattice, the messages are its surfaces, and the size of the single point is their mean.
    """
    machine, sizes = request.simulated, request.sizes_bytes
    nodes = _placed(machine, request.placed, count)
    # Without dimensions, half of the nodes is the first half of their row: in a cube, partners could share a switch.
    grid = (len(nodes),) if workload.is_row and not machine.allocation.dims else grid_of(machine, len(nodes))
    if workload.is_folded:
        grid, places = folded(grid)
        nodes = [nodes[place] for place in places]
    if workload.is_of_lattice and lattice is not None:
        if request.placed is not None:
            raise InputError("nodes", ",".join(map(str, nodes)), f"none for {workload.name}: its lattice chooses them")
        parts = decompose(machine, len(nodes), lattice.extents, strong=True)
        grid, nodes = parts.grid, list(parts.nodes)
    options = _core.WorkloadOptions()
    options.grid = list(grid)
    options.nodes = machine.allocation.of_machine(nodes)
    torus = machine.allocation.torus
    options.periodic = torus is None or torus.is_all_closed
    options.rounds = (request.iterations or DEFAULT_ITERATIONS) * workload.rounds
    if lattice is not None:
        options.face_bytes = lattice.faces(grid)
        options.sites, options.site_bytes = lattice.sites(grid), lattice.site_bytes
        sizes = [round(sum(options.face_bytes) / len(options.face_bytes))]
    return Plan(request, workload, sizes, machine.description(request.seed, request.engine), options, grid, algorithm)


def require_soon(plans: Sequence[Plan]) -> None:
    """Refuses what would take hours, and what software would forward for much longer than a minute."""
    forwarded = packet_hops = 0.0
    for plan in plans:
        for size in plan.sizes:
            plan.take_size(size)
            try:
                work = _core.count_workload_packet_hops(plan.description, plan.workload, plan.options)
            except ValueError as error:
                raise plan.request.simulated.refused(error) from error
            packet_hops += work.all
            forwarded += work.forwarded
            if forwarded > MOST_FORWARDED and not plan.request.allow_long:
                raise InputError(
                    "sizes",
                    Literal(_range(plan.sizes)),
                    f"{plan.request.traits.test} to need at most {MOST_FORWARDED:.0e} packet-hops, a minute of real "
                    f"time, through the software of {plan.request.simulated.name}, whose links lead only to "
                    "neighbours: choose smaller --sizes, fewer --iterations or fewer nodes (-n), or wait with "
                    "--allow-long",
                )
            plan.request.require_soon(packet_hops)


def _range(sizes: Sequence[int]) -> str:
    return str(sizes[0]) if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)}"


def run(plan: Plan) -> WorkloadResult:
    """Measures each size of the plan."""
    request, options = plan.request, plan.options
    points, messages, payload_bytes, finish_us, warnings = [], [], [], [], []
    for size in plan.sizes:
        result = plan.run_size(size)
        time_us = result.time_ps * 1e-6 * plan.workload.rounds
        moved = _moved(plan, size, result.payload_bytes / plan.iterations)
        bandwidth = moved / MIB / (time_us * 1e-6)
        points.append((size, time_us, bandwidth))
        messages.append(result.messages)
        payload_bytes.append(result.payload_bytes)
        finish_us.append(result.finish_ps * 1e-6)
        warnings.append(result.warnings)
    common = make_result(request, "card", points, warnings=warnings)
    return WorkloadResult(
        **vars(common),
        grid=plan.grid,
        iterations=plan.iterations,
        algorithm=plan.algorithm,
        face_bytes=tuple(options.face_bytes),
        messages=np.array(messages, dtype=np.int64),
        payload_bytes=np.array(payload_bytes, dtype=np.int64),
        finish_us=np.array(finish_us),
        algorithms=tuple(algorithm_of(plan.algorithm, size) for size in plan.sizes),
        bisection_percent=_bisection_percent(plan, common.times_us),
    )


def algorithm_of(chosen: str | None, size: int) -> str:
    """The algorithm for a size; empty for a workload without a choice."""
    if chosen != BY_SIZE:
        return chosen or ""
    return next(name for most, name in _BY_SIZE if size <= most)


def _bisection_percent(plan: Plan, times_us: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """The time in which the bisection carries an exchange of all with all, relative to the simulated time."""
    rate = plan.bisection_bytes_per_s if plan.workload.name == ALL_TO_ALL else None
    if rate is None:
        return None
    crossing = (len(plan.options.nodes) / 2) ** 2 * np.array(plan.sizes, dtype=np.float64)
    return np.asarray(100 * crossing / rate / (times_us * 1e-6), dtype=np.float64)


def write_goal(plan: Plan, path: Path) -> None:
    """Writes what each process does at the plan's first size as a trace. Raises NotWrittenError."""
    plan.take_size(plan.sizes[0])
    with OutFile("goal", path, begins_with(b"// apenet ")) as file:
        streams = _core.WorkloadStreams(plan.workload, plan.options, plan.description)
        count = len(plan.options.nodes)
        file.write(f"// apenet bench {plan.workload.name}, {plan.sizes[0]} bytes\nnum_ranks {count}\n".encode())
        for process in range(count):
            file.write(streams.goal_of(process).encode())
        file.keep()


def schedule_of(plan: Plan, name: str) -> _core.GoalSchedule:
    """What each process does at the plan's first size; `name` is that of the trace in messages."""
    with tempfile.TemporaryDirectory(prefix="apenet-") as folder:
        path = Path(folder) / "workload.goal"
        write_goal(plan, path)
        return _core.read_goal(str(path), name)


def _moved(plan: Plan, size: int, sent: float) -> float:
    """The bytes of one iteration that the test's bandwidth counts. `sent`: by all nodes, forwarded ones included."""
    bandwidth_of, nodes = plan.request.traits.bandwidth_of, len(plan.options.nodes)
    if bandwidth_of == "vector":
        return size
    if plan.workload.name == ALL_TO_ALL:
        return size * (nodes - 1)
    return sent if bandwidth_of == "cut" else sent / nodes


def _placed(machine: Machine, nodes: Sequence[int] | None, count: int | None) -> list[int]:
    """The nodes that take part: these, or the first `count`, or all."""
    if nodes is not None:
        if count is not None and count != len(nodes):
            raise InputError("n", count, f"as many as nodes are named: {len(nodes)}")
        return list(nodes)
    available = machine.allocation.node_count
    wanted = count if count is not None else (available or DEFAULT_NODES)
    if wanted < FEWEST_NODES or (available is not None and wanted > available):
        most = f", at most the {available} of {machine.allocation.name}" if available else ""
        raise InputError("n", wanted, f"at least {FEWEST_NODES} nodes{most}")
    return list(range(wanted))


def grid_of(machine: Machine, count: int) -> tuple[int, ...]:
    """The grid of processes: the machine's own if all nodes of a torus or mesh take part, otherwise nearly a cube."""
    if machine.allocation.torus is not None and count == machine.allocation.node_count:
        return machine.allocation.dims
    return nearly_cubic(count, GRID_DIMENSIONS)
