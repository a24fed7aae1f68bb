"""A machine's topology as a picture: routers, cables and nodes, and what its links carry."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from apenet import _core
from apenet.base.grid import place_of
from apenet.machine.quantity import quantities
from apenet.machine.schema import MachineFile

_CLASSES = ("published", "derived", "fitted", "assumed", "set")
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b")
_BOW = 0.3
_BOW_POINTS = 16
Point = tuple[float, float]
Line = list[Point]


def drawn(
    title: str,
    file: MachineFile,
    description: _core.MachineDescription,
    notes: Sequence[str],
    plt: Any,  # noqa: ANN401 (matplotlib has no public types)
) -> Any:  # noqa: ANN401
    """The figure, made with matplotlib's pyplot, of a network that has routers."""
    dims = tuple(file.network.dims.value) if file.network.dims is not None else ()
    units = _numbers(description)
    wiring = _core.wiring(description.network)
    routers, nodes, lines = placed(dims, wiring)
    figure, axes = plt.subplots(figsize=(9, 6), layout="constrained")
    for number, label in enumerate(_labels(file, units, wiring)):
        colour = _COLOURS[number % len(_COLOURS)]
        for is_bow, width in ((False, 1.2), (True, 0.6)):
            chosen = [line for line, link, bow in lines if link == number and bow == is_bow]
            axes.add_collection(plt.matplotlib.collections.LineCollection(chosen, colors=colour, linewidths=width))
        axes.plot([], [], color=colour, label=label)
    size = max(1.5, 7 - math.log2(len(routers)) / 2)
    label = "router" if nodes else "router and node"
    axes.plot(*zip(*routers, strict=True), "s", color="black", markersize=size, zorder=3, label=label)
    if nodes:
        ends = [[routers[router], place] for router, place in zip(wiring.routers_of_nodes, nodes, strict=True)]
        axes.add_collection(plt.matplotlib.collections.LineCollection(ends, colors="0.7", linewidths=0.6, zorder=0))
        axes.plot(*zip(*nodes, strict=True), "o", color="0.4", markersize=2.5, zorder=3, label="node")
    axes.set_title(title)
    frame(axes, dims, wiring, columns=2)
    figure.supxlabel(_caption(file, units, notes), fontsize=8)
    return figure


def placed(dims: Sequence[int], wiring: _core.Wiring) -> tuple[list[Point], list[Point], list[tuple[Line, int, bool]]]:
    """Where routers and nodes are, nodes if they are drawn apart; the lines of cables, their class, whether bowed.

    On a torus or mesh, which has `dims`, a line for each cable, in their order; else one for all between two routers.
    """
    return _grid(dims, wiring) if dims else _graph(wiring)


def frame(axes: Any, dims: Sequence[int], wiring: _core.Wiring, columns: int) -> None:  # noqa: ANN401
    """Sets matplotlib's axes around what is drawn, with the legend below."""
    is_layered = not dims and any(_levels(wiring))
    axes.set_aspect("auto" if is_layered else "equal", adjustable="datalim")
    axes.autoscale_view()
    axes.axis("off")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0), frameon=False, ncols=columns, fontsize=8)


def _labels(file: MachineFile, units: Mapping[str, float], wiring: _core.Wiring) -> list[str]:
    """What a link of each class carries in one direction, with the classes of these numbers."""
    found = dict(quantities(file))
    labels = []
    for number, section in enumerate(wiring.sections):
        prefix = f"network.links[{number}]"
        words_per_s = units[f"{prefix}.clock_mhz"] / units[f"{prefix}.word_cycles"]
        rate = units[f"{prefix}.word_bytes"] * words_per_s
        latency_ns = units[f"{prefix}.latency_ns"] / 1000
        origins = {
            key: (found.get(f"{section}.{key}") or found[f"network.link.{key}"]).origin
            for key in ("clock_mhz", "word_bytes", "word_cycles", "latency_ns")
        }
        of_rate = max((origins[key] for key in origins if key != "latency_ns"), key=_CLASSES.index)
        labels.append(
            f"{section.removeprefix('network.')}: {rate / 1e9:.4g} GB/s ({of_rate}), "
            f"{latency_ns:g} ns ({origins['latency_ns']})"
        )
    return labels


def _numbers(description: _core.MachineDescription) -> dict[str, float]:
    """Its numbers in base units: hertz, bytes, picoseconds."""
    units = description.base_units()
    return {key: value for key, value in units.items() if isinstance(value, int | float)}


def _caption(file: MachineFile, units: Mapping[str, float], notes: Sequence[str]) -> str:
    """What the picture cannot show."""
    classes: Counter[str] = Counter(quantity.origin for _, quantity in quantities(file))
    numbers = ", ".join(f"{classes[origin]} {origin}" for origin in _CLASSES if classes[origin])
    port = units["router.port_clock_mhz"] * units["router.port_word_bytes"] / 1e9
    parts = [
        f"card {file.card.kind}, {port:.4g} GB/s to its router",
        f"router {units['router.latency'] / 1000:g} ns",
        f"numbers: {numbers}",
    ]
    return "; ".join([*parts, *notes])


def _grid(dims: Sequence[int], wiring: _core.Wiring) -> tuple[list[Point], list[Point], list[tuple[Line, int, bool]]]:
    """A router for each node: x to the right, y upwards, z into the depth; further dimensions repeat the picture."""
    steps: list[Point] = []
    block = (1.0, 1.0)
    for number, extent in enumerate(dims):
        kind = number % 3
        if kind == 2:  # noqa: PLR2004 (z stays between two neighbours in x and y)
            steps.append((block[0] * 0.8 / extent, block[1] * 0.5 / extent))
        else:
            steps.append((block[0], 0.0) if kind == 0 else (0.0, block[1]))
        if kind == 2:  # noqa: PLR2004
            block = (block[0] * (dims[number - 2] + 1.5), block[1] * (dims[number - 1] + 1.5))
    places, coordinates = [], []
    for router in range(len(wiring.routers)):
        here = place_of(dims, router)
        coordinates.append(here)
        places.append(
            (
                sum(at * step[0] for at, step in zip(here, steps, strict=True)),
                sum(at * step[1] for at, step in zip(here, steps, strict=True)),
            )
        )
    lines = []
    for one, other, link in wiring.cables:
        # The end at an even port leads upwards.
        dimension, is_down = divmod(one[1], 2)
        start, end = (other[0], one[0]) if is_down else (one[0], other[0])
        wraps = coordinates[start][dimension] + 1 == dims[dimension]
        ends = places[start], places[end]
        lines.append((_bowed(*ends, dimension) if wraps else list(ends), link, wraps))
    return places, [], lines


def _bowed(start: Point, end: Point, dimension: int) -> Line:
    """A cable that closes a ring: beside those that it would hide."""
    across, up = end[0] - start[0], end[1] - start[1]
    length = math.hypot(across, up) or 1.0
    # Shallow where lines are close together.
    bow = _BOW if dimension % 3 < 2 else _BOW / 2  # noqa: PLR2004
    line = []
    for step in range(_BOW_POINTS + 1):
        part = step / _BOW_POINTS
        aside = bow * math.sin(math.pi * part)
        line.append((start[0] + across * part - up / length * aside, start[1] + up * part + across / length * aside))
    return line


def _graph(wiring: _core.Wiring) -> tuple[list[Point], list[Point], list[tuple[Line, int, bool]]]:
    """Switches in levels by their distance from nodes; in a ring if all of them have nodes."""
    levels = _levels(wiring)
    members: dict[int, list[int]] = {}
    for router, level in enumerate(levels):
        members.setdefault(level, []).append(router)
    width = float(max(len(level) for level in members.values()))
    places: dict[int, Point] = {}
    for level, routers in members.items():
        for number, router in enumerate(routers):
            part = (number + 0.5) / len(routers)
            turn = 2 * math.pi * part
            in_ring = (math.cos(turn), math.sin(turn)) if len(routers) > 1 else (0.0, 0.0)
            places[router] = (part * width, float(level)) if len(members) > 1 else in_ring
    cables = Counter((one[0], other[0], link) for one, other, link in wiring.cables)
    lines = [([places[one], places[other]], link, False) for one, other, link in cables]
    return [places[router] for router in range(len(levels))], _nodes(wiring, places, len(members) > 1), lines


def _levels(wiring: _core.Wiring) -> list[int]:
    """The distance of each router from the nearest one with nodes; a level further for those that reach none."""
    neighbours: dict[int, list[int]] = {router: [] for router in range(len(wiring.routers))}
    for one, other, _ in wiring.cables:
        neighbours[one[0]].append(other[0])
        neighbours[other[0]].append(one[0])
    reached = dict.fromkeys(wiring.routers_of_nodes, 0)
    queue = list(reached)
    for router in queue:
        for further in neighbours[router]:
            if further not in reached:
                reached[further] = reached[router] + 1
                queue.append(further)
    return [reached.get(router, max(reached.values()) + 1) for router in range(len(wiring.routers))]


def _nodes(wiring: _core.Wiring, places: Mapping[int, Point], is_layered: bool) -> list[Point]:
    """Below a switch of a level, around one of a ring."""
    counts, seen = Counter(wiring.routers_of_nodes), Counter[int]()
    nodes = []
    for router in wiring.routers_of_nodes:
        part = (seen[router] + 0.5) / counts[router]
        seen[router] += 1
        x, y = places[router]
        if is_layered:
            nodes.append((x + 0.8 * (part - 0.5), y - 0.35))
            continue
        is_alone = len(places) == 1
        turn = 2 * math.pi * part if is_alone else math.atan2(y, x) + (part - 0.5)
        nodes.append((x + 0.4 * math.cos(turn), y + 0.4 * math.sin(turn)))
    return nodes
