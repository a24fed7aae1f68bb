"""The placement `cart:auto`: by the grid of the program's first MPI_Cart_create."""

from __future__ import annotations

import math
from collections.abc import Callable

from apenet import _core
from apenet.base.errors import Interrupted
from apenet.run.results import Request
from apenet.run.session import SessionJob, run_session

LINEAR = "linear"


def map_by_first_grid(request: Request, job: SessionJob, is_over: Callable[[], bool]) -> str:
    """Runs the program up to its first MPI_Cart_create, drops its output, and returns the placement.

    `cart:PxQ` if the grid has all of its ranks, otherwise `linear`. `is_over` is asked many times a second, and ends
    the run. Raises Interrupted if a signal does.
    """
    grid: list[int] = []
    is_known = False

    def note(reached: _core.SessionProgress) -> None:
        nonlocal is_known
        grid[:] = reached.grid
        is_known = bool(grid)

    end = run_session(
        request.machine,
        request.description(),
        [job],
        _core.ObservationOptions(),
        is_to_end=lambda: is_known or is_over(),
        progress=note,
    )
    if end.is_interrupted:
        raise Interrupted
    (outcome,) = end.outcomes
    extents = [extent for extent in outcome.report.grid if extent > 1]
    if not outcome.report.grid or math.prod(extents) != len(job.nodes):
        return LINEAR
    return "cart:" + "x".join(map(str, extents or [1]))
