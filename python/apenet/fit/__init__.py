"""Models fitted to measured times: `apenet.fit.fit("osu_latency.txt")`, the same as `apenet fit`.

Files are those of OSU, IMB, perftest and fabtests, CSV, JSON, and what `apenet bench --json` prints. Fits are seeded
and repeat exactly. docs/reference/fit.md has formats, models and their limits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from apenet.errors import InputError
from apenet.fit.loggp import LogGpFit, fit_loggp
from apenet.fit.machine_file import WrittenMachine, write_machine
from apenet.fit.measurement import PINGPONG, TESTS, Measurement
from apenet.fit.pathfit import PathsFit, fit_paths
from apenet.fit.paths import MOST_PATHS
from apenet.fit.reading import parse, read
from apenet.fit.text import MeasurementError

__all__ = [
    "DEFAULT_MODEL",
    "TESTS",
    "LogGpFit",
    "Measurement",
    "MeasurementError",
    "PathsFit",
    "WrittenMachine",
    "fit",
    "fit_loggp",
    "fit_paths",
    "parse",
    "read",
    "write_machine",
]

DEFAULT_MODEL = "paths:2"
_MODELS = f"paths:1 to paths:{MOST_PATHS}, or loggp"


def fit(
    *sources: Path | str | Measurement, model: str = DEFAULT_MODEL, test: str | None = None, section: str | None = None
) -> PathsFit | LogGpFit:
    """Fits one measurement with `paths:K`, or a ping-pong and a stream with `loggp`.

    Sources are files, or measurements that were read before. Raises InputError and MeasurementError.
    """
    check_model(model, len(sources))
    measurements = [
        source if isinstance(source, Measurement) else read(source, test=test, section=section) for source in sources
    ]
    return fit_measurements(measurements, model)


def check_model(model: str, sources: int, *, is_for_machine: bool = False) -> None:
    """Raises InputError for a model that is none, or one that cannot take so many files."""
    if model == "loggp":
        return
    found = re.fullmatch(r"paths:(\d)", model, flags=re.ASCII)
    if found is None or not 1 <= int(found[1]) <= MOST_PATHS:
        raise InputError("--model", model, _MODELS)
    if sources != 1 and not is_for_machine:
        raise InputError("--model", model, f"one file, not {sources}: several are for loggp and --to-machine")


def fit_measurements(measurements: Sequence[Measurement], model: str) -> PathsFit | LogGpFit:
    """The same of measurements alone; of several, a path model is fitted to the ping-pong."""
    if model == "loggp":
        return fit_loggp(measurements)
    chosen = next((one for one in measurements if one.test == PINGPONG), measurements[0])
    return fit_paths(chosen, int(model.removeprefix("paths:")))
