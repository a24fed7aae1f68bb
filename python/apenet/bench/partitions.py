"""Workloads on increasingly large machines with the same cards, links and switches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apenet import _core
from apenet.base.errors import InputError
from apenet.base.grid import nearly_cubic
from apenet.bench.request import MachineRequest, no_progress
from apenet.bench.result import BenchResult, make_result
from apenet.bench.workload_plan import make_plan, require_soon, run
from apenet.machine import Machine


@dataclass(frozen=True)
class PartitionResult(BenchResult):
    """One size over partitions; the arrays have one point per partition."""

    grids: tuple[tuple[int, ...], ...]
    nodes: NDArray[np.int64]

    @property
    def columns(self) -> dict[str, list[int] | list[float] | list[str]]:
        """The points' fields, by their names in JSON."""
        columns = {name: values for name, values in super().columns.items() if name != "channels"}
        nodes: list[int] = self.nodes.tolist()
        return {**columns, "nodes": nodes, "node_mib_s": self._of_a_node.tolist()}

    @property
    def _of_a_node(self) -> NDArray[np.float64]:
        return self.bandwidths_mib_s / self.nodes if self.bandwidth_of == "cut" else self.bandwidths_mib_s

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet bench --json` prints."""
        content = super().to_json()
        for point, grid in zip(content["points"], self.grids, strict=True):
            point["grid"] = list(grid)
        return content

    def to_table(self) -> str:
        """Header lines, then the partitions."""
        together = "Across (MiB/s)" if self.bandwidth_of == "cut" else "All nodes (MiB/s)"
        heads = f"{'Grid':>14}{'Time (us)':>14}{together:>18}{'A node (MiB/s)':>18}"
        lines = [f"# {self.heading}, {self.sizes_bytes[0]} B", f"# {'Nodes':<8}{heads}"]
        for point in self.to_json()["points"]:
            grid = "x".join(map(str, point["grid"]))
            lines.append(
                f"{point['nodes']:<10}{grid:>14}{point['time_us']:>14.3f}"
                f"{point['node_mib_s'] * point['nodes']:>18.1f}{point['node_mib_s']:>18.2f}"
            )
        lines += [f"# warning: {warning}" for warning in self.warnings]
        return "\n".join(lines)


def measure(
    request: MachineRequest[BenchResult], workload: _core.Workload, algorithm: str | None, partitions: Sequence[int]
) -> PartitionResult:
    """Measures a workload of one size on machines with each number of nodes in `partitions`."""
    machine, (size,) = request.simulated, request.sizes_bytes
    machine.require_whole("growing machines")
    plans = []
    for nodes in partitions:
        one = replace(request, machine=grown(machine, nodes), progress=no_progress)
        plans.append(make_plan(one, workload, count=nodes, algorithm=algorithm))
    require_soon(plans)
    results = []
    for nodes, plan in zip(partitions, plans, strict=True):
        request.progress(nodes)
        results.append(run(plan))
    points = [(size, float(result.times_us[0]), float(result.bandwidths_mib_s[0])) for result in results]
    warnings = [result.warnings for result in results]
    common = make_result(request, "card", points, warnings=warnings)
    return PartitionResult(
        **vars(common),
        grids=tuple(result.grid for result in results),
        nodes=np.array(partitions, dtype=np.int64),
    )


def grown(machine: Machine, nodes: int) -> Machine:
    """The machine with this number of nodes.

    A torus or mesh is as close to a cube as its dimensions allow. A fat tree gets more or fewer parts below its top
    switches; the number of top switches and of cables to each part stays the same. Raises InputError for an impossible
    number of nodes.
    """
    network = machine.file.network
    if not machine.topology.has_routers or nodes == machine.node_count:
        return machine
    if network.dims is not None:
        return machine.with_settings(f"network.dims={list(nearly_cubic(nodes, len(network.dims.value)))}")
    if network.nodes is not None:
        return machine.with_settings(f"network.nodes={nodes}")
    if network.children is None:
        raise InputError(
            "partitions", nodes, f"none for the {network.topology.value} of {machine.name}: it has one size"
        )
    below = network.children.value[:-1]
    if nodes % math.prod(below):
        raise InputError("partitions", nodes, f"multiples of the {math.prod(below)} nodes of a part of {machine.name}")
    return machine.with_settings(f"network.children={[*below, nodes // math.prod(below)]}")
