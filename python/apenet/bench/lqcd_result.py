"""Results of the scaling of the lattice QCD program: as JSON and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LEGEND = (
    "time of one iteration of conjugate gradients (4 hops of half the lattice, 2 global sums), and of one Dslash",
    "share: of the iteration, what is not computation; surface: sites sent over sites, of one rank",
)


@dataclass(frozen=True)
class LqcdPoint:
    """One number of ranks on one machine."""

    ranks: int
    grid: tuple[int, ...]
    local: tuple[int, ...]
    iteration_us: float
    dslash_us: float
    compute_us: float
    """Computation of the iteration: its declared operations at the machine's rate."""
    halo_bytes: int
    """Bytes that one rank sends in a Dslash."""
    surface_to_volume: float

    @property
    def communication_share(self) -> float:
        """The part of the iteration that is not computation; clocks are rounded, so at least 0."""
        return max(0.0, 1 - self.compute_us / self.iteration_us)


@dataclass(frozen=True)
class MachineScaling:
    """The points of one machine, and the numbers of ranks that it has no nodes for."""

    machine: str
    flops_per_second: int
    points: tuple[LqcdPoint, ...]
    without_nodes: tuple[int, ...]
    warnings: tuple[str, ...]
    is_strong: bool

    def efficiency(self, point: LqcdPoint) -> float:
        """Relative to the smallest number of ranks of this machine."""
        first = self.points[0]
        work = first.ranks / point.ranks if self.is_strong else 1.0
        return first.iteration_us / point.iteration_us * work


@dataclass(frozen=True)
class LqcdResult:
    """Strong or weak scaling on one or several machines."""

    lattice: tuple[int, ...]
    """Strong scaling: the whole lattice. Weak: the part of each rank."""
    scaling: str
    layer: str
    precision: str
    iterations: int
    seed: int
    version: str
    machines: tuple[MachineScaling, ...]
    conditions: Mapping[str, str]
    """Other differences from the default: the engine of the network."""

    @property
    def heading(self) -> str:
        """First line of the table."""
        of = "of the whole" if self.scaling == "strong" else "of each rank"
        extents = "x".join(map(str, self.lattice))
        conditions = "".join(f", {name} {value}" for name, value in self.conditions.items())
        return (
            f"APENet {self.version}: lqcd, {self.scaling} scaling, {extents} sites {of}, {self.precision} precision, "
            f"layer {self.layer}{conditions}, {self.iterations} iterations, seed {self.seed}"
        )

    def to_json(self) -> dict[str, Any]:
        """The object that `apenet bench lqcd --json` prints."""
        return {
            "test": "lqcd",
            "lattice": list(self.lattice),
            "scaling": self.scaling,
            "layer": self.layer,
            "precision": self.precision,
            **self.conditions,
            "iterations": self.iterations,
            "seed": self.seed,
            "version": self.version,
            "machines": [_machine_json(machine) for machine in self.machines],
        }

    def to_table(self) -> str:
        """Header lines, then the points of each machine."""
        heads = f"{'Grid':>10}{'Iteration (us)':>16}{'Dslash (us)':>13}{'Efficiency':>12}{'Share':>8}{'Surface':>9}"
        lines = [f"# {self.heading}", *(f"# {line}" for line in LEGEND)]
        for machine in self.machines:
            rate = machine.flops_per_second / 1e9
            lines += [f"# {machine.machine}: computes {rate:g} Gflop/s a rank, one rank a node"]
            lines += [f"# {'Ranks':<6}{heads}"]
            for point in machine.points:
                lines.append(
                    f"{point.ranks:<8}{'x'.join(map(str, point.grid)):>10}{point.iteration_us:>16.1f}"
                    f"{point.dslash_us:>13.1f}{machine.efficiency(point):>12.3f}"
                    f"{point.communication_share:>8.3f}{point.surface_to_volume:>9.3f}"
                )
            if machine.without_nodes:
                lines.append(f"# {machine.machine} has no nodes for {_listed(machine.without_nodes)} ranks")
            lines += [f"# warning: {warning}" for warning in machine.warnings]
        return "\n".join(lines)


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _machine_json(machine: MachineScaling) -> dict[str, Any]:
    points = [
        {
            "ranks": point.ranks,
            "grid": list(point.grid),
            "local": list(point.local),
            "iteration_us": point.iteration_us,
            "dslash_us": point.dslash_us,
            "compute_us": point.compute_us,
            "efficiency": machine.efficiency(point),
            "communication_share": point.communication_share,
            "halo_bytes": point.halo_bytes,
            "surface_to_volume": point.surface_to_volume,
        }
        for point in machine.points
    ]
    return {
        "machine": machine.machine,
        "flops_per_second": machine.flops_per_second,
        "points": points,
        **({"without_nodes": list(machine.without_nodes)} if machine.without_nodes else {}),
        **({"warnings": list(machine.warnings)} if machine.warnings else {}),
    }
