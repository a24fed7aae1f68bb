"""The scaling of the lattice QCD program as a picture: the machines side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apenet.base.pictures import check_picture_file, write_picture
from apenet.bench.lqcd_result import LqcdResult

OPTION = "--figure"


def check_figure_file(path: Path) -> None:
    """Raises InputError for a file name to which no figure can be written, before any computation."""
    check_picture_file(OPTION, path)


def write_figure(result: LqcdResult, path: Path) -> None:
    """Efficiency, and the share of communication, over the number of ranks. Raises NotWrittenError."""
    write_picture(OPTION, path, lambda plt: _drawn(result, plt))


def _drawn(result: LqcdResult, plt: Any) -> Any:  # noqa: ANN401 (matplotlib has no public types)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), constrained_layout=True)
    for machine in result.machines:
        ranks = [point.ranks for point in machine.points]
        left.plot(ranks, [machine.efficiency(point) for point in machine.points], "o-", label=machine.machine)
        right.plot(ranks, [point.communication_share for point in machine.points], "o-", label=machine.machine)
    extents = "x".join(map(str, result.lattice))
    of = "" if result.scaling == "strong" else " a rank"
    figure.suptitle(f"Wilson CG, {extents}{of}, {result.scaling} scaling, {result.precision}, {result.layer}")
    left.set_ylabel("parallel efficiency")
    right.set_ylabel("share of communication")
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_xlabel("ranks, one a node")
        axes.set_ylim(0, 1.05)
        axes.grid(visible=True, alpha=0.3)
    left.legend(frameon=False)
    return figure
