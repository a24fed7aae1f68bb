"""Models fitted to measured times: `apenet.fit.fit("osu_latency.txt")`, the same as `apenet fit`.

Input files are the output of OSU, IMB, perftest, fabtests and `apenet bench --json`, CSV, and JSON. Fits are seeded
and repeat exactly. docs/reference/fit.md describes formats, models and their limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from apenet.base.errors import InputError
from apenet.fit.loggp import LogGpFit, fit_loggp
from apenet.fit.machine_file import WrittenMachine, write_machine
from apenet.fit.measurement import PINGPONG, TESTS, Measurement
from apenet.fit.pathfit import PathsFit, fit_paths
from apenet.fit.paths import MOST_PATHS
from apenet.fit.protocolfit import MODEL, ProtocolsFit, fit_protocols
from apenet.fit.reading import parse, read
from apenet.fit.statistics import RESAMPLES, Alternative
from apenet.fit.text import MeasurementError

__all__ = [
    "DEFAULT_MODEL",
    "TESTS",
    "LogGpFit",
    "Measurement",
    "MeasurementError",
    "PathsFit",
    "ProtocolsFit",
    "WrittenMachine",
    "choose",
    "fit",
    "fit_loggp",
    "fit_paths",
    "fit_protocols",
    "parse",
    "read",
    "write_machine",
]

DEFAULT_MODEL = "auto"
_MODELS = f"auto, protocols, paths:1 to paths:{MOST_PATHS}, or loggp"
_AS_GOOD_FACTOR = 1.25
_AS_GOOD_PERCENT = 0.5
"""A model counts as good as the best if its held-out error is within this factor, or this difference, of the least."""

Fit = PathsFit | ProtocolsFit | LogGpFit
_Way = Callable[[int], PathsFit | ProtocolsFit]  # number of resamples


def fit(
    *sources: Path | str | Measurement, model: str = DEFAULT_MODEL, test: str | None = None, section: str | None = None
) -> Fit:
    """Fits one measurement with `protocols` or `paths:K`, or a ping-pong and a stream with `loggp`.

    `auto` uses `choose` for one measurement, and `loggp` for several. Sources are files, or measurements that were
    read before. Raises InputError and MeasurementError.
    """
    check_model(model, len(sources))
    measurements = [
        source if isinstance(source, Measurement) else read(source, test=test, section=section) for source in sources
    ]
    return fit_measurements(measurements, model)


def check_model(model: str, sources: int, *, is_for_machine: bool = False) -> None:
    """Raises InputError for an unknown model, or one that does not accept this number of files."""
    if model in ("auto", "loggp"):
        return
    found = re.fullmatch(r"paths:([0-9])", model, flags=re.ASCII)
    if model != MODEL and (found is None or not 1 <= int(found[1]) <= MOST_PATHS):
        raise InputError("--model", model, _MODELS)
    if sources != 1 and not is_for_machine:
        raise InputError("--model", model, f"one file, not {sources}: several are for loggp and --to-machine")


def fit_measurements(measurements: Sequence[Measurement], model: str, *, is_for_machine: bool = False) -> Fit:
    """As `fit`, for measurements; of several for a machine, the ping-pong is fitted."""
    if model == "loggp" or (model == "auto" and len(measurements) > 1 and not is_for_machine):
        return fit_loggp(measurements)
    chosen = next((one for one in measurements if one.test == PINGPONG), measurements[0])
    if model == "auto":
        return choose(chosen)
    return fit_protocols(chosen) if model == MODEL else fit_paths(chosen, int(model.removeprefix("paths:")))


def choose(measurement: Measurement) -> PathsFit | ProtocolsFit:
    """The model with the fewest parameters among those whose held-out error is as good as the best.

    The candidates are `paths:K`, with more paths as long as one more reduces the error, and `protocols`, if there are
    enough sizes; `compared` of the result gives the error of each. Raises MeasurementError if the sizes suffice for
    none.
    """
    tried: list[tuple[_Way, PathsFit | ProtocolsFit]] = []
    refused: list[MeasurementError] = []
    for count in range(1, MOST_PATHS + 1):
        _try(partial(fit_paths, measurement, count), tried, refused)
        if refused or (count > 1 and _error(tried[-1][1]) >= _error(tried[-2][1])):
            break
    _try(partial(fit_protocols, measurement), tried, refused)
    if not tried:
        raise refused[0]
    best = min(_error(fitted) for _, fitted in tried)
    limit = max(_AS_GOOD_FACTOR * best, best + _AS_GOOD_PERCENT)
    good = [(way, fitted) for way, fitted in tried if _error(fitted) <= limit]
    chosen, _ = min(good, key=lambda one: (one[1].parameters, _error(one[1])))
    compared = tuple(Alternative(fitted.model, _error(fitted), fitted.parameters) for _, fitted in tried)
    return replace(chosen(RESAMPLES), compared=compared)


def _try(
    way: _Way,
    tried: list[tuple[_Way, PathsFit | ProtocolsFit]],
    refused: list[MeasurementError],
) -> None:
    """Fits one of the models without intervals, which would double the time."""
    try:
        tried.append((way, way(1)))
    except MeasurementError as error:
        refused.append(error)


def _error(fitted: PathsFit | ProtocolsFit) -> float:
    return fitted.held_out.rms_percent
