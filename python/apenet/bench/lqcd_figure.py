"""The scaling of the lattice QCD program as a picture: the machines side by side."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from apenet.base.pictures import FIGURE, write_picture
from apenet.bench.lqcd_result import LqcdResult


def write_figure(result: LqcdResult, path: Path) -> None:
    """Efficiency, and the share of communication, over the number of ranks. Raises NotWrittenError."""
    write_picture(FIGURE, path, lambda plt: _drawn(result, plt))


def _drawn(result: LqcdResult, plt: Any) -> Any:  # noqa: ANN401 (matplotlib has no public types)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), constrained_layout=True)
    for machine, marker in zip(result.machines, itertools.cycle("osD^v<>"), strict=False):
        ranks = [point.ranks for point in machine.points]
        style = {"marker": marker, "fillstyle": "none", "label": machine.machine}
        left.plot(ranks, [machine.efficiency(point) for point in machine.points], **style)
        right.plot(ranks, [point.communication_share for point in machine.points], **style)
    extents = "x".join(map(str, result.lattice))
    of = "" if result.scaling == "strong" else " a rank"
    figure.suptitle(f"Wilson CG, {extents}{of}, {result.scaling} scaling, {result.precision}, {result.layer}")
    left.set_ylabel("parallel efficiency")
    left.set_ylim(0, 1.05)
    right.set_ylabel("share of communication")
    right.set_ylim(bottom=0)
    counts = sorted({point.ranks for machine in result.machines for point in machine.points})
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xticks(counts, list(map(str, counts)))
        axes.set_xlabel("ranks, one a node")
        axes.grid(visible=True, alpha=0.3)
    left.legend(frameon=False)
    return figure
