"""Benchmarks at the layer of a card's own library: the C programs of bench/layers, as real processes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from apenet.base.errors import InputError
from apenet.base.sizes import LARGEST_BYTES
from apenet.bench.mpi import run_on
from apenet.bench.request import BenchRequest
from apenet.bench.result import BenchResult, make_result
from apenet.host.compiling import compile_program
from apenet.host.toolchain import PACKAGE, built

SOURCES = PACKAGE / "programs" / "layers"
TESTS = ("pingpong", "pingping", "roundtrip", "oneway", "unidirectional", "bidirectional", "flush")
WINDOW_TESTS = ("unidirectional", "bidirectional")
PAIR = 2


@dataclass(frozen=True)
class Layer:
    """A library over the card: its name for `apenet cc`, and the kinds of cards that it drives."""

    library: str
    cards: tuple[str, ...]
    most_bytes: int = LARGEST_BYTES
    """Of a message."""


LAYERS = {
    "rdma": Layer("rdma", ("apelink", "apelink-plus")),
    "velo": Layer("extoll", ("extoll",)),
    "rma": Layer("extoll", ("extoll",)),
    "tnw": Layer("tnw", ("tnw",), 2048),
    "apelib": Layer("apelib", ("apelink", "apelink-plus", "extoll", "fabric", "hca", "ideal", "tnw")),
}


def measure(
    request: BenchRequest, layer: str, *, channels: Sequence[int], window: int | None, pin: bool
) -> BenchResult:
    """Each size and number of channels in a run of its own: so does layer card, whose times these compare with."""
    _check(request, layer, window)
    program = _program(layer)
    points: list[tuple[int, float, float]] = []
    channels_of_points: list[int] = []
    warnings: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory(prefix="apenet-") as folder:
        output = Path(folder) / "points.jsonl"
        for at_once in channels:
            for size in request.sizes:
                request.progress(size)
                options = {
                    "--test": request.test,
                    "--bytes": size,
                    "--channels": at_once,
                    "--window": window or 0,
                    "--iterations": request.iterations or 0,
                    "--output": output,
                }
                command: list[str | Path] = [program, *(str(part) for option in options.items() for part in option)]
                result = run_on(request, _nodes(request), command, library="auto", pin=pin)
                point = json.loads(output.read_text(encoding="utf-8"))
                points.append((size, point["time_us"], point["bandwidth_mib_s"]))
                channels_of_points.append(at_once)
                warnings.append(result.warnings)
    conditions: dict[str, object] = {} if window is None else {"window": window}
    return make_result(request, layer, points, channels=channels_of_points, conditions=conditions, warnings=warnings)


def _check(request: BenchRequest, layer: str, window: int | None) -> None:
    cards, kind = LAYERS[layer].cards, request.machine.file.card.kind
    if kind not in cards:
        raise InputError("layer", layer, f"one for the card of {request.machine.name}, which is {kind}")
    if request.test not in TESTS:
        raise InputError("test", request.test, f"one of {', '.join(TESTS)} at layer {layer}")
    if request.nodes is not None and len(request.nodes) != PAIR:
        raise InputError("nodes", ",".join(map(str, request.nodes)), f"two nodes at layer {layer}, such as 0,1")
    if request.sizes[-1] > LAYERS[layer].most_bytes:
        raise InputError("sizes", request.sizes[-1], f"at most {LAYERS[layer].most_bytes} bytes at layer {layer}")
    if window is not None and request.test not in WINDOW_TESTS:
        raise InputError("window", window, f"none, except for {' and '.join(WINDOW_TESTS)}")


def _nodes(request: BenchRequest) -> list[int]:
    """As layer card: node 0 and its neighbour in the first dimension that has one."""
    if request.nodes is not None:
        return list(request.nodes)
    neighbour = 1
    for extent in request.machine.dims:
        if extent > 1:
            break
        neighbour *= extent
    return [0, neighbour]


def _program(layer: str) -> Path:
    sources = [SOURCES / "layer_bench.c", SOURCES / f"{layer}_layer.c"]

    def compile_to(target: Path) -> None:
        compile_program(["-O2", *sources, "-o", target], [LAYERS[layer].library])

    return built(f"bench-{layer}", [*sources, SOURCES / "layer.h"], compile_to)
