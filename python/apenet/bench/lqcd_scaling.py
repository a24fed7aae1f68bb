"""The scaling of a lattice QCD program: bench/lqcd in C, as real processes over MPI, apelib or QMP.

The runs of a scaling study exchange the messages, make the sums and declare the operations of the solver, but compute
no number: a lattice of millions of sites needs no memory and no time of the host. The same program with `--pattern 0`
computes; the tests compare both.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

from apenet._core import version as __version__
from apenet.base.errors import InputError
from apenet.base.gather import gather_warnings
from apenet.base.numbers import whole
from apenet.base.tempfolder import temporary_folder
from apenet.bench.decomposition import DIMENSIONS, Decomposition, decompose
from apenet.bench.lattice import parse_lattice
from apenet.bench.layers import build
from apenet.bench.lqcd_result import LqcdPoint, LqcdResult, MachineScaling
from apenet.bench.mpi import run_on
from apenet.bench.request import Option, Runs, Traits, doubling_counts
from apenet.host.toolchain import PACKAGE
from apenet.machine import Machine
from apenet.machine import machine as read_machine
from apenet.machine.mapping import MOST_RANKS

TEST = "lqcd"
SOURCES = PACKAGE / "programs" / "lqcd"
_PAYLOAD_KEYS = ("max_payload_bytes", "mtu_bytes", "packet_bytes", "rma_max_payload_bytes")
"""The keys of the kinds of cards that limit a packet's payload."""
LAYERS: dict[str, str | None] = {"mpi": None, "apelib": "apelib", "qmp": "qmp"}
"""The libraries of `apenet cc`; None: MPI."""
PRECISIONS: dict[str, tuple[str, ...]] = {"double": (), "single": ("-DLQCD_SINGLE",)}
SCALINGS = ("strong", "weak")
PARTS = ("gauge", "lattice", "solver", "support", "wilson")
HEADERS = ("comm.h", "gauge.h", "lattice.h", "solver.h", "spin.h", "support.h", "wilson.h")
DEFAULT_LATTICE = "32x32x32x64"
DEFAULT_ITERATIONS = 1
MOST_ITERATIONS = 1000
HALF_SPINOR_BYTES = {"double": 96, "single": 48}
MOST_COUNTED = 2**31 - 1  # sites and counts of MPI calls are C ints


@dataclass(frozen=True)
class PlannedRun:
    """A run of a study before it begins, and what decides how long it takes."""

    machine: str
    ranks: int
    halo_bytes: int
    """Bytes that all ranks send in the run."""
    packets: int
    """Into which cards cut them, at the largest payload."""


def program(layer: str, precision: str, main: Path = SOURCES / "lqcd.c") -> Path:
    """The program over a layer; another `main` is compiled with the same operator and solver."""
    sources = [main, *(SOURCES / f"{part}.c" for part in PARTS), SOURCES / f"{layer}_comm.c"]
    headers = [SOURCES / header for header in HEADERS]
    flags = [*PRECISIONS[precision], f"-I{SOURCES}", f"-I{PACKAGE / 'include'}"]
    return build(f"{main.stem}-{layer}", LAYERS[layer], sources, headers, flags=flags)


@dataclass(frozen=True)
class Lqcd(Runs[LqcdResult]):
    """The solver on each machine with each number of ranks, one on a node.

    `lattice` has even extents: of the whole lattice for strong scaling, of each rank's part for weak scaling. Numbers
    of ranks for which a machine has no nodes are left out there and listed. Raises InputError, also if none is left.
    Calls `planned` once, before the first run, and `finished` with the machine's name after each.
    """

    traits = Traits("lqcd", "the scaling of a lattice QCD program on one or several machines")

    machines: Sequence[Machine | str]
    _: KW_ONLY
    lattice: Annotated[str, Option("The lattice, with even extents.", "XxYxZxT")] = DEFAULT_LATTICE
    ranks: Annotated[
        str | Sequence[int], Option("Numbers of ranks, doubling; or 1,8,64.", "MIN:MAX", default="1:16")
    ] = (1,)
    scaling: Annotated[str, Option("The lattice is the whole one, or each rank's.", "|".join(SCALINGS))] = "strong"
    layer: Annotated[str, Option("Library of the program.", "|".join(LAYERS))] = "mpi"
    precision: Annotated[str, Option("Of the numbers, and so of the halos.", "|".join(PRECISIONS))] = "double"
    iterations: Annotated[int, Option("Iterations of the solver.")] = DEFAULT_ITERATIONS
    planned: Callable[[Sequence[PlannedRun]], None] = lambda _runs: None
    finished: Callable[[str, LqcdPoint], None] = lambda _machine, _point: None

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, value, known in (
            ("scaling", self.scaling, SCALINGS),
            ("layer", self.layer, tuple(LAYERS)),
            ("precision", self.precision, tuple(PRECISIONS)),
        ):
            if value not in known:
                raise InputError(key, value, f"one of {', '.join(known)} for {TEST}")
        expected = "whole numbers of at least 1"
        counts = [whole("ranks", count, 1, MOST_RANKS, expected) for count in doubling_counts("ranks", self.ranks)]
        self._set("ranks", sorted(set(counts)))
        whole("iterations", self.iterations, 1, MOST_ITERATIONS, f"a whole number from 1 to {MOST_ITERATIONS}")

    def measure(self) -> LqcdResult:
        """Runs the study."""
        counts = doubling_counts("ranks", self.ranks)
        extents = checked_lattice(self.lattice)
        study = _Study(extents, self.scaling == "strong", self.layer, self.precision, self.iterations)
        chosen = [read_machine(given) if isinstance(given, str) else given for given in self.machines]
        plans = [_plan(study, machine, counts) for machine in chosen]
        pairs = list(zip(chosen, plans, strict=True))
        self.planned([study.planned(machine, parts) for machine, plan in pairs for parts in plan])
        results = []
        for machine, plan in pairs:
            points, warnings = [], []
            for parts in plan:
                point, warned = study.run(self, machine, parts)
                self.finished(machine.name, point)
                points.append(point)
                warnings.append(warned)
            results.append(
                MachineScaling(
                    machine.name,
                    int(machine.file.host.flops_per_second.value),
                    tuple(points),
                    tuple(count for count in counts if count > (machine.allocation.node_count or MOST_RANKS)),
                    gather_warnings(warnings),
                    study.is_strong,
                )
            )
        return LqcdResult(
            extents,
            self.scaling,
            self.layer,
            self.precision,
            self.iterations,
            self.seed,
            __version__,
            tuple(results),
            conditions={} if self.engine == "packet" else {"engine": self.engine},
        )


def checked_lattice(text: str) -> tuple[int, ...]:
    """The extents of a text such as 32x32x32x64. Raises InputError unless there are four even ones."""
    extents = parse_lattice(text, 1).extents
    if len(extents) != DIMENSIONS or any(extent % 2 for extent in extents):
        raise InputError("lattice", text, f"{DIMENSIONS} even extents for {TEST}, such as {DEFAULT_LATTICE}")
    return extents


class _Study:
    """The common part of the runs of a study."""

    def __init__(self, lattice: tuple[int, ...], is_strong: bool, layer: str, precision: str, iterations: int) -> None:
        self.lattice = lattice
        self.is_strong = is_strong
        self._layer = layer
        self._precision = precision
        self._iterations = iterations

    def require_countable(self, parts: Decomposition) -> None:
        """Refuses parts whose sites, or bytes of a face, the program cannot count."""
        sites = math.prod(parts.local)
        divided = [extent for extent, ranks in zip(parts.local, parts.grid, strict=True) if ranks > 1]
        face_bytes = sites // 2 // min(divided) * HALF_SPINOR_BYTES[self._precision] if divided else 0
        if max(sites, face_bytes) > MOST_COUNTED:
            raise InputError(
                "lattice",
                "x".join(map(str, self.lattice)),
                f"at most {MOST_COUNTED} sites and bytes of a face for each of {len(parts.nodes)} ranks",
            )

    def planned(self, machine: Machine, parts: Decomposition) -> PlannedRun:
        """The messages of a run: Dslash is exchanged twice, and each iteration applies it twice."""
        surface_sites = round(parts.surface_to_volume * math.prod(parts.local))
        dslash_bytes = surface_sites * HALF_SPINOR_BYTES[self._precision]
        halo_bytes = len(parts.nodes) * dslash_bytes * (2 + 2 * self._iterations)
        card = machine.file.card
        payload = next((getattr(card, key).value for key in _PAYLOAD_KEYS if hasattr(card, key)), halo_bytes or 1)
        return PlannedRun(machine.name, len(parts.nodes), halo_bytes, math.ceil(halo_bytes / int(payload)))

    def run(
        self, request: Runs[LqcdResult], machine: Machine, parts: Decomposition
    ) -> tuple[LqcdPoint, tuple[str, ...]]:
        """One run, and its warnings."""
        with temporary_folder() as folder:
            output = folder / "point.json"
            options = {
                "--lattice": "x".join(map(str, parts.whole)),
                "--grid": "x".join(map(str, parts.grid)),
                "--iterations": self._iterations,
                "--pattern": 1,
                "--output": output,
            }
            command: list[str | Path] = [program(self._layer, self._precision)]
            command += [str(part) for option in options.items() for part in option]
            result = run_on(request, machine, parts.nodes, command)
            point = json.loads(output.read_text(encoding="utf-8"))
        rate = float(machine.file.host.flops_per_second.value)
        return (
            LqcdPoint(
                ranks=len(parts.nodes),
                grid=parts.grid,
                local=parts.local,
                iteration_us=point["iteration_us"],
                dslash_us=point["dslash_us"],
                compute_us=point["iteration_flops"] / rate * 1e6,
                halo_bytes=point["dslash_halo_bytes"],
                surface_to_volume=parts.surface_to_volume,
            ),
            result.warnings,
        )


def _plan(study: _Study, machine: Machine, counts: Sequence[int]) -> list[Decomposition]:
    """The division of the lattice for each number of ranks for which the machine has nodes."""
    available = machine.allocation.node_count or MOST_RANKS
    fitting = [count for count in counts if count <= available]
    if not fitting:
        raise InputError("ranks", counts[0], f"at most the {available} nodes of {machine.allocation.name}")
    parts = [decompose(machine, count, study.lattice, strong=study.is_strong) for count in fitting]
    for part in parts:
        study.require_countable(part)
    return parts
