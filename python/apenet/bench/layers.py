"""Benchmarks at the layer of a card's own library: the C programs of bench/layers, as real processes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from apenet.base.errors import InputError
from apenet.base.numbers import whole
from apenet.base.tempfolder import temporary_folder
from apenet.bench.layer_table import ACCESS_TESTS, LAYERS, MOST_PROGRAM_WINDOW, PAIR, TNW, UDP, drives
from apenet.bench.mpi import run_on
from apenet.bench.request import LayerRequest, pair_of
from apenet.bench.result import BenchResult, WorkloadResult, make_result
from apenet.bench.workload_plan import GRID_DIMENSIONS, MIB, Plan
from apenet.host.compiling import compile_program
from apenet.host.toolchain import PACKAGE, built, find_mpicc
from apenet.machine.cart import hops

SOURCES = PACKAGE / "programs" / "layers"
SHARED_SOURCES = ("layer_bench.c", "halo.c")
HEADERS = ("layer.h", "halo.h", "two_sided.h")
DEFAULT_HALO_ITERATIONS = 20


def measure(request: LayerRequest[BenchResult], channels: Sequence[int], window: int | None) -> BenchResult:
    """Each size and number of channels in a run of its own: so does layer card, whose times these compare with."""
    layer = request.measured_layer
    _check(request)
    if request.placed is not None and len(request.placed) != PAIR:
        raise InputError("nodes", ",".join(map(str, request.placed)), f"two nodes at layer {layer}, such as 0,1")
    if not LAYERS[layer].finds_neighbour and len(set(pair_of(request))) != PAIR:
        one = f"two different nodes at layer {layer}, whose program expects one process on each"
        raise InputError("nodes", ",".join(map(str, pair_of(request))), one)
    if layer == TNW:
        _check_tnw(request, max(channels))
    if layer == UDP and max(channels) > 1:
        raise InputError("channels", max(channels), f"1 at layer {UDP}: a process has one socket")
    whole("window", window or 1, 1, MOST_PROGRAM_WINDOW, f"1 to {MOST_PROGRAM_WINDOW} at layer {layer}")
    request.require_program_soon(pair_of(request), sum(channels))
    runs = _Runs(request)
    channels_of_points: list[int] = []
    for at_once in channels:
        for size in request.sizes_bytes:
            request.progress(size)
            options = {"--channels": at_once, "--window": window or 0, "--iterations": request.iterations or 0}
            runs.add(size, pair_of(request), options)
            channels_of_points.append(at_once)
    conditions: dict[str, object] = {} if window is None else {"window": window}
    return make_result(
        request, layer, runs.points, channels=channels_of_points, conditions=conditions, warnings=runs.warnings
    )


def measure_halo(request: LayerRequest[BenchResult], plan: Plan) -> WorkloadResult:
    """The exchange of all processes, one on each of the plan's nodes; time is that of process 0's exchanges."""
    layer = request.measured_layer
    _check(request)
    if len(plan.grid) > GRID_DIMENSIONS:
        raise InputError("machine", request.simulated.name, f"a grid of {GRID_DIMENSIONS} dimensions at layer {layer}")
    iterations = request.iterations or DEFAULT_HALO_ITERATIONS
    nodes = request.simulated.allocation.numbers_of(plan.options.nodes)
    request.require_program_soon(nodes, sum(neighbours(plan, dimension) for dimension in range(len(plan.grid))))
    runs = _Runs(request)
    messages, payload_bytes = [], []
    for size in plan.sizes:
        request.progress(size)
        faces = list(plan.options.face_bytes) or [size] * len(plan.grid)
        sent = [neighbours(plan, dimension) for dimension in range(len(plan.grid))]
        messages.append(iterations * sum(sent))
        payload_bytes.append(iterations * sum(count * face for count, face in zip(sent, faces, strict=True)))
        options = {
            "--iterations": iterations,
            "--grid": "x".join(map(str, plan.grid)),
            "--faces": ",".join(map(str, faces)),
            "--periodic": int(plan.options.periodic),
        }
        runs.add(size, nodes, options, moved=payload_bytes[-1] / iterations / len(nodes))
    return WorkloadResult(
        **vars(make_result(request, layer, runs.points, warnings=runs.warnings)),
        grid=plan.grid,
        iterations=iterations,
        algorithm=None,
        face_bytes=tuple(plan.options.face_bytes),
        messages=np.array(messages, dtype=np.int64),
        payload_bytes=np.array(payload_bytes, dtype=np.int64),
        finish_us=np.empty((len(runs.points), 0)),
    )


def neighbours(plan: Plan, dimension: int) -> int:
    """Messages of all processes along this dimension of the grid in one exchange."""
    extent = plan.grid[dimension]
    if extent == 1:
        return 0
    of_a_line = 2 * extent if plan.options.periodic else 2 * (extent - 1)
    return of_a_line * (len(plan.options.nodes) // extent)


class _Runs:
    """The program at one layer, and what its runs have measured."""

    def __init__(self, request: LayerRequest[BenchResult]) -> None:
        self.points: list[tuple[int, float, float]] = []
        self.warnings: list[tuple[str, ...]] = []
        self._request = request
        self._program = _program(request.measured_layer)

    def add(
        self, size: int, nodes: Sequence[int], options: Mapping[str, object], *, moved: float | None = None
    ) -> None:
        """Runs it once. `moved`: the bytes that the bandwidth counts, unless the program says."""
        with temporary_folder() as folder:
            output = folder / "points.json"
            given = {"--test": self._request.traits.test, "--bytes": size, "--output": output, **options}
            command: list[str | Path] = [self._program, *(str(part) for option in given.items() for part in option)]
            result = run_on(self._request, self._request.simulated, nodes, command)
            point = json.loads(output.read_text(encoding="utf-8"))
        time_us = point["time_us"]
        bandwidth = point["bandwidth_mib_s"] if moved is None else moved / MIB / (time_us * 1e-6)
        self.points.append((size, time_us, bandwidth))
        self.warnings.append(result.warnings)


def _check(request: LayerRequest[BenchResult]) -> None:
    require_card(request)
    layer, test = request.measured_layer, request.traits.test
    if test not in LAYERS[layer].tests:
        raise InputError("test", test, f"one of {', '.join(LAYERS[layer].tests)} at layer {layer}")
    largest = request.sizes_bytes[-1]
    if largest > LAYERS[layer].most_bytes:
        raise InputError("sizes", largest, f"at most {LAYERS[layer].most_bytes} bytes at layer {layer}")


def _check_tnw(request: LayerRequest[BenchResult], channels: int) -> None:
    """Refuses what tnw_put would: more channels than the card has, and nodes without a link."""
    machine = request.simulated
    most = machine.file.card.channels.value
    if channels > most:
        raise InputError("channels", channels, f"at most the {most} of the card of {machine.name}")
    first, second = pair_of(request)
    torus = machine.allocation.torus
    if torus is None or hops(np.array([first]), np.array([second]), torus)[0] != 1:
        where = f"neighbours on {machine.allocation.name}, at layer {TNW}"
        raise InputError("nodes", ",".join(map(str, (first, second))), where)


def require_card(request: LayerRequest[Any]) -> None:
    """Refuses a layer that does not drive the machine's card."""
    machine, layer = request.simulated, request.measured_layer
    if drives(machine, layer):
        return
    if layer == UDP:
        raise InputError("layer", layer, f"another one on {machine.name}, which has no [software.udp]")
    raise InputError("layer", layer, f"one for the card of {machine.name}, which is {machine.file.card.kind}")


def _program(layer: str) -> Path:
    names = [*SHARED_SOURCES, f"{layer}_layer.c"]
    if not set(ACCESS_TESTS) & set(LAYERS[layer].tests):
        names.append("no_access.c")
    headers = [SOURCES / name for name in HEADERS]
    return build(f"bench-{layer}", LAYERS[layer].library, [SOURCES / source for source in names], headers)


def build(
    name: str, library: str | None, sources: Sequence[Path], headers: Sequence[Path], *, flags: Sequence[str] = ()
) -> Path:
    """A C program of this package over a library of `apenet cc`, or over MPI (None)."""

    def compile_to(target: Path) -> None:
        arguments: list[str | Path] = ["-O2", *flags, *sources, "-o", target, "-lm"]
        compile_program(arguments, [] if library is None else [library], mpi=library is None)

    of = bytes(find_mpicc()) if library is None else b""
    return built(name, [*sources, *headers], compile_to, of=of + " ".join(flags).encode())
