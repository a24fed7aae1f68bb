"""A placement before and after the search as a picture: how far bytes travel, and what the links carry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from apenet.base.pictures import FIGURE, write_picture
from apenet.placing.search import PlacementResult

_MIB = 2**20


def write_figure(result: PlacementResult, path: Path) -> None:
    """Bytes over the number of links they cross, and the load of all links. Raises NotWrittenError."""
    write_picture(FIGURE, path, lambda plt: _drawn(result, plt))


def _drawn(result: PlacementResult, plt: Any) -> Any:  # noqa: ANN401 (matplotlib has no public types)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), constrained_layout=True)
    most = max([0, *result.before.bytes_by_hops, *result.after.bytes_by_hops])
    places = np.arange(most + 1)
    for offset, label, score in ((-0.2, result.start, result.before), (0.2, "found", result.after)):
        heights = [score.bytes_by_hops.get(count, 0) / _MIB for count in range(most + 1)]
        left.bar(places + offset, heights, width=0.4, label=label)
        right.plot(np.sort(score.link_bytes)[::-1] / _MIB, label=label)
    figure.suptitle(f"{result.traffic.ranks} ranks of {Path(result.traffic.source).name} on {result.machine.name}")
    left.set_xlabel("links between sender and receiver")
    left.set_ylabel("bytes sent (MiB)")
    left.set_xticks(places)
    right.set_xlabel("links, the busiest first")
    right.set_ylabel("bytes on the link (MiB)")
    right.set_ylim(bottom=0)
    for axes in (left, right):
        axes.grid(visible=True, alpha=0.3)
    left.legend(frameon=False)
    return figure
