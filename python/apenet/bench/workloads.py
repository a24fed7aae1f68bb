"""The requests of workloads: communication of a whole machine, and of larger machines of the same kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar

from apenet.base.errors import InputError
from apenet.bench import layers, partitions
from apenet.bench.lattice import Lattice, parse_lattice
from apenet.bench.layer_table import CARD
from apenet.bench.request import LayerRequest, MachineRequest, Option, doubling_counts
from apenet.bench.result import BenchResult
from apenet.bench.workload_plan import DEFAULT_ALGORITHM, Pattern, Plan, make_plan, require_soon, run

ALGORITHMS = ("ring", "recursive-doubling", "torus")
DEFAULT_SITE_BYTES = 48  # a half-spinor in single precision


@dataclass(frozen=True)
class Workload(MachineRequest[BenchResult]):
    """A workload of scripted ranks."""

    pattern: ClassVar[Pattern]
    has_programs: ClassVar[bool] = False

    _: KW_ONLY
    count: Annotated[int | None, Option("Use only the first COUNT nodes.", "COUNT", "-n")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.measured_layer != CARD and not self.has_programs:
            expected = f"card: {self.traits.test} is a scripted workload; a program of its own runs by apenet run"
            raise InputError("layer", self.layer, expected)

    @property
    def surfaces(self) -> Lattice | None:
        """The lattice whose surfaces are the messages, of a workload that has one."""
        return None

    @property
    def chosen_algorithm(self) -> str | None:
        """That of a reduction."""
        return self.pattern.algorithm

    def plan(self) -> Plan:
        """What will be measured."""
        return make_plan(self, self.pattern, count=self.count, lattice=self.surfaces, algorithm=self.chosen_algorithm)

    def measure(self) -> BenchResult:
        """Each size on a fresh machine. Raises InputError for what would take too long."""
        plan = self.plan()
        require_soon([plan])
        return run(plan)


@dataclass(frozen=True)
class GrowingWorkload(Workload):
    """A workload that also runs on larger machines of the same kind."""

    _: KW_ONLY
    partitions: Annotated[
        str | Sequence[int] | None, Option("One size on machines of MIN to MAX nodes, doubling.", "MIN:MAX")
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.partitions is None:
            return
        self._set("partitions", doubling_counts("partitions", self.partitions))
        if self.measured_layer != CARD:
            raise InputError("partitions", str(self.node_counts), f"none at layer {self.measured_layer}")
        for name, given in (("nodes", self.placed), ("n", self.count)):
            if given is not None:
                raise InputError(name, given, "none with partitions, which give the numbers of nodes")
        if len(self.sizes_bytes) != 1:
            raise InputError("sizes", len(self.sizes_bytes), "one size with partitions, such as 64K")

    @property
    def node_counts(self) -> list[int]:
        """Those of the partitions."""
        return doubling_counts("partitions", self.partitions or ())

    @property
    def steps(self) -> int | None:
        """One for each partition."""
        return len(self.node_counts) or super().steps

    def measure(self) -> BenchResult:
        """The machine, or the partitions."""
        if self.partitions is None:
            return super().measure()
        return partitions.measure(self, self.pattern, self.chosen_algorithm, self.node_counts)


@dataclass(frozen=True)
class LatticeWorkload(GrowingWorkload):
    """A workload whose messages may be the surfaces of a lattice."""

    _: KW_ONLY
    lattice: Annotated[str | None, Option("Messages are the surfaces of this lattice.", "XxYxZxT")] = None
    site_bytes: Annotated[int, Option("Bytes per site of the lattice; half-spinors have 24, 48 or 96.")] = (
        DEFAULT_SITE_BYTES
    )

    @property
    def surfaces(self) -> Lattice | None:
        """That of the options."""
        return None if self.lattice is None else parse_lattice(self.lattice, self.site_bytes)


@dataclass(frozen=True)
class HaloWorkload(LatticeWorkload, LayerRequest[BenchResult]):
    """A workload that also runs as a program over the layers."""

    has_programs = True

    def measure(self) -> BenchResult:
        """With scripted ranks, or with the program."""
        return super().measure() if self.measured_layer == CARD else layers.measure_halo(self, self.plan())


@dataclass(frozen=True)
class ReductionWorkload(Workload):
    """A workload with a choice of algorithms."""

    _: KW_ONLY
    algorithm: Annotated[str, Option("How the vector is reduced.", "|".join(ALGORITHMS))] = DEFAULT_ALGORITHM

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.algorithm not in ALGORITHMS:
            raise InputError("algorithm", self.algorithm, "one of " + ", ".join(ALGORITHMS))

    @property
    def chosen_algorithm(self) -> str | None:
        """That of the options."""
        return self.algorithm
