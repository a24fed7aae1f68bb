"""The requests of workloads: communication of a whole machine, and of larger machines of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, make_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from apenet import _core
from apenet.base.errors import InputError
from apenet.base.outfiles import given_path
from apenet.bench import layers, partitions
from apenet.bench.lattice import Lattice, parse_lattice
from apenet.bench.layer_table import CARD
from apenet.bench.lqcd_scaling import DEFAULT_LATTICE, checked_lattice
from apenet.bench.request import LayerRequest, MachineRequest, Option, Traits, doubling_counts
from apenet.bench.result import BenchResult
from apenet.bench.workload_plan import BY_SIZE, Plan, make_plan, require_soon, run, write_goal

DEFAULT_SITE_BYTES = 48  # a half-spinor in single precision


@dataclass(frozen=True)
class Workload(MachineRequest[BenchResult]):
    """A workload of scripted ranks."""

    workload: ClassVar[_core.Workload]

    _: KW_ONLY
    n: Annotated[int | None, Option("Number of ranks, on as many of the first nodes.", "RANKS", "-n")] = None
    goal: Annotated[str | Path | None, Option("Write the messages of one size as a GOAL trace.", "FILE")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._set("goal", given_path("goal", self.goal, "a file"))
        if self.goal is not None and len(self.sizes_bytes) != 1:
            raise InputError("sizes", len(self.sizes_bytes), "one size with goal, such as 64K")
        if self.measured_layer != CARD and not self.workload.has_programs:
            expected = f"card: {self.traits.test} is a scripted workload; a program of its own runs by apenet run"
            raise InputError("layer", self.layer, expected)

    @property
    def surfaces(self) -> Lattice | None:
        """The lattice whose surfaces are the messages, of a workload that has one."""
        return None

    @property
    def chosen_algorithm(self) -> str | None:
        """The default algorithm of a reduction; None for other workloads."""
        return self.workload.algorithms[0] or None

    def plan(self) -> Plan:
        """The plan of the measurement."""
        return make_plan(self, self.workload, count=self.n, lattice=self.surfaces, algorithm=self.chosen_algorithm)

    def measure(self) -> BenchResult:
        """Each size on a fresh machine. Raises InputError for what would take too long."""
        plan = self.plan()
        require_soon([plan])
        if self.goal is not None:
            write_goal(plan, Path(self.goal))
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
        if self.goal is not None:
            raise InputError("goal", self.goal, "none with partitions: a trace is that of one machine")
        self._set("partitions", doubling_counts("partitions", self.partitions))
        if self.measured_layer != CARD:
            raise InputError("partitions", str(self.node_counts), f"none at layer {self.measured_layer}")
        for name, given in (("nodes", self.placed), ("n", self.n)):
            if given is not None:
                raise InputError(name, given, "none with partitions, which give the numbers of nodes")
        if len(self.sizes_bytes) != 1:
            raise InputError("sizes", len(self.sizes_bytes), "one size with partitions, such as 64K")

    @property
    def node_counts(self) -> list[int]:
        """The numbers of nodes of the partitions."""
        return doubling_counts("partitions", self.partitions or ())

    @property
    def steps(self) -> int | None:
        """One for each partition."""
        return len(self.node_counts) or super().steps

    def measure(self) -> BenchResult:
        """The machine, or the partitions."""
        if self.partitions is None:
            return super().measure()
        return partitions.measure(self, self.workload, self.chosen_algorithm, self.node_counts)


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
        """The lattice of the options."""
        return None if self.lattice is None else parse_lattice(self.lattice, self.site_bytes)


@dataclass(frozen=True)
class DividedLattice(Workload):
    """A workload on a lattice, whose division chooses the grid of the nodes: that of `apenet bench lqcd`."""

    default_sizes: ClassVar[str | int] = 1  # no message has it: the lattice gives their sizes

    _: KW_ONLY
    lattice: Annotated[str, Option("The lattice, with even extents.", "XxYxZxT")] = DEFAULT_LATTICE
    site_bytes: Annotated[int, Option("Bytes per site of the lattice; half-spinors have 24, 48 or 96.")] = (
        DEFAULT_SITE_BYTES
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sizes is not None:
            raise InputError("sizes", str(self.sizes_bytes), f"none for {self.traits.test}: its lattice gives them")

    @property
    def surfaces(self) -> Lattice:
        """The lattice of the options."""
        return Lattice(checked_lattice(self.lattice), parse_lattice(self.lattice, self.site_bytes).site_bytes)

    @property
    def steps(self) -> int:
        """One: the lattice gives the size."""
        return 1


@dataclass(frozen=True)
class HaloWorkload(LatticeWorkload, LayerRequest[BenchResult]):
    """A workload that also runs as a program over the layers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.goal is not None and self.measured_layer != CARD:
            raise InputError("goal", self.goal, f"none at layer {self.measured_layer}")

    def measure(self) -> BenchResult:
        """With scripted ranks, or with the program."""
        return super().measure() if self.measured_layer == CARD else layers.measure_halo(self, self.plan())


@dataclass(frozen=True, kw_only=True)
class ReductionWorkload(Workload):
    """A workload with a choice of algorithms."""

    algorithm: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.algorithm not in self.workload.algorithms:
            raise InputError("algorithm", self.algorithm, "one of " + ", ".join(self.workload.algorithms))

    @property
    def chosen_algorithm(self) -> str | None:
        """The algorithm of the options."""
        return self.algorithm


@dataclass(frozen=True, kw_only=True)
class ExchangeWorkload(GrowingWorkload):
    """A workload that also runs on larger machines, with a choice of algorithms."""

    algorithm: str

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.algorithm not in (BY_SIZE, *self.workload.algorithms):
            known = ", ".join((BY_SIZE, *self.workload.algorithms))
            raise InputError("algorithm", self.algorithm, f"one of {known}")

    @property
    def chosen_algorithm(self) -> str | None:
        """The algorithm of the options."""
        return self.algorithm


def request_of(workload: _core.Workload) -> Callable[..., Workload]:
    """The request of a workload of the core."""
    options: list[tuple[str, Any, Any]] = []
    base: type[Workload] = GrowingWorkload if workload.has_partitions else Workload
    if workload.is_of_lattice:
        base = DividedLattice
    elif workload.has_surfaces:
        base = HaloWorkload if workload.has_programs else LatticeWorkload
    if len(workload.algorithms) > 1:
        base = ExchangeWorkload if workload.has_partitions else ReductionWorkload
        meaning = "How the messages are sent." if workload.has_partitions else "How the vector is reduced."
        names = [BY_SIZE, *workload.algorithms] if workload.has_partitions else workload.algorithms
        options.append(("algorithm", Annotated[str, Option(meaning, "|".join(names))], names[0]))
    traits = Traits(workload.name, workload.definition, bandwidth_of=workload.bandwidth_of)
    namespace = {"traits": traits, "workload": workload, "__doc__": f"{workload.definition}."}
    name = workload.name.capitalize()
    return make_dataclass(name, options, bases=(base,), namespace=namespace, frozen=True, kw_only=True)
