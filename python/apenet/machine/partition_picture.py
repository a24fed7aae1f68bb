"""The picture of a machine that is divided into partitions."""

from __future__ import annotations

import math
from typing import Any

from apenet import _core
from apenet.machine.partition_links import PartitionCheck
from apenet.machine.picture import frame, placed

_MOST_LABELS = 32


def drawn_partitions(checked: PartitionCheck, plt: Any, what: str = "partitions") -> Any:  # noqa: ANN401
    """The figure of a machine whose nodes have the colours of their partitions, with shared links in red."""
    machine = checked.machine
    wiring = _core.wiring(machine.description().network)
    routers, nodes, lines = placed(machine.dims, wiring)
    ends = sorted(end for one, other, _ in wiring.cables for end in (one, other))
    name_of = {end: name for end, (name, _, _) in zip(ends, wiring.links, strict=True)}
    red = {link for links in checked.shared.values() for link in links}
    is_shared: dict[Any, bool] = {}
    for one, other, link in wiring.cables:
        key = (one[0], other[0], link) if not machine.dims else (one, other)
        is_shared[key] = is_shared.get(key, False) or name_of[one] in red or name_of[other] in red
    figure, axes = plt.subplots(figsize=(9, 6), layout="constrained")
    for wanted, colour, width in ((False, "0.75", 0.8), (True, "red", 1.6)):
        chosen = [line for (line, _, _), shared in zip(lines, is_shared.values(), strict=True) if shared == wanted]
        axes.add_collection(plt.matplotlib.collections.LineCollection(chosen, colors=colour, linewidths=width))
    if red:
        axes.plot([], [], color="red", label="shared links")
    places = nodes or [routers[router] for router in wiring.routers_of_nodes]
    if nodes:
        axes.plot(*zip(*routers, strict=True), "s", color="black", markersize=3, zorder=3)
    size = max(3.0, 9 - math.log2(len(places)) / 2)
    axes.plot(*zip(*places, strict=True), "o", color="0.85", markersize=size, zorder=3)
    colours = plt.get_cmap("tab20").colors
    for number, shown in enumerate(checked.partitions):
        label = shown.partition.given if number < _MOST_LABELS else None
        chosen_places = [places[node] for node in shown.partition.nodes]
        colour = colours[number % len(colours)]
        axes.plot(*zip(*chosen_places, strict=True), "o", color=colour, markersize=size, zorder=4, label=label)
    axes.set_title(f"{machine.name}: {machine.shape}, {len(checked.partitions)} {what}")
    frame(axes, machine.dims, wiring, columns=4)
    return figure
