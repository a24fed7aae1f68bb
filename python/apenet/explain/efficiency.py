"""The efficiencies of the POP project (Performance Optimisation and Productivity, "The POP metrics", pop-coe.eu)."""

from __future__ import annotations

from typing import Any

import numpy as np

from apenet.explain.timed import Timed

MEANINGS = {
    "parallel": "mean computation of a rank over the run's time: load balance x communication",
    "load balance": "mean computation of a rank over that of the rank with the most",
    "communication": "computation of the rank with the most over the run's time: serialisation x transfer",
    "serialisation": "the same, on a network without latency, with infinite bandwidth and software that costs nothing",
    "transfer": "the run's time on that network over its own",
}


def efficiencies(timed: Timed, ideal_ps: int | None) -> dict[str, float]:
    """Each from 0 to 1; empty if no computation was charged. Without an ideal time, what needs none."""
    computed = np.asarray(timed.report.computed_ps)
    time = timed.time_ps
    if time == 0 or computed.max() == 0:
        return {}
    found = {
        "parallel": computed.mean() / time,
        "load balance": computed.mean() / computed.max(),
        "communication": computed.max() / time,
    }
    if ideal_ps:
        found |= {"serialisation": computed.max() / ideal_ps, "transfer": ideal_ps / time}
    return {name: float(value) for name, value in found.items()}


def explained(values: dict[str, float]) -> list[dict[str, Any]]:
    """Name, value and meaning of each."""
    return [{"name": name, "value": value, "meaning": MEANINGS[name]} for name, value in values.items()]
