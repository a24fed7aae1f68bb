"""Draws a fit: times over sizes, and the residuals below."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from apenet.base.pictures import check_picture_file, write_picture
from apenet.fit.loggp import LogGpFit
from apenet.fit.measurement import Measurement
from apenet.fit.pathfit import PathsFit
from apenet.fit.protocolfit import ProtocolsFit
from apenet.fit.statistics import Floats

_BESIDE = 1.5
_OPTION = "--plot"


def check_plot_file(path: Path) -> None:
    """Raises InputError for a file name to which no plot can be written, before any computation."""
    check_picture_file(_OPTION, path)


def plot(fit: PathsFit | ProtocolsFit | LogGpFit, path: Path) -> None:
    """Writes the picture. The same fit gives the same bytes, as PNG and SVG. Raises NotWrittenError."""
    write_picture(_OPTION, path, lambda plt: _drawn(fit, plt))


def _drawn(fit: PathsFit | ProtocolsFit | LogGpFit, plt: Any) -> Any:  # noqa: ANN401 (matplotlib has no public types)
    figure, (upper, lower) = plt.subplots(
        2, 1, sharex=True, figsize=(7, 6), height_ratios=(3, 1), constrained_layout=True
    )
    if isinstance(fit, PathsFit):
        _draw_paths(fit, upper, lower)
    elif isinstance(fit, ProtocolsFit):
        _draw_protocols(fit, upper, lower)
    else:
        for measurement, fitted in zip(fit.measurements, fit.fitted_us, strict=True):
            _draw(measurement, measurement.sizes_bytes.astype(np.float64), fitted, upper, lower, measurement.test)
    upper.set_yscale("log")
    upper.set_ylabel("time (us)")
    upper.set_title(
        f"{fit.model}, in sample {fit.in_sample.rms_percent:.2g} % rms, held out {fit.held_out.rms_percent:.2g} %"
    )
    upper.legend(frameon=False)
    lower.set_ylabel("residual (%)")
    lower.set_xlabel("message size (bytes)")
    lower.set_xscale("symlog", base=2, linthresh=1)
    lower.set_xlim(*size_limits([fit.measurement] if isinstance(fit, PathsFit | ProtocolsFit) else fit.measurements))
    lower.axhline(0, color="black", linewidth=0.8)
    for axes in (upper, lower):
        axes.grid(visible=True, which="major", alpha=0.3)
    return figure


def _draw_protocols(fit: ProtocolsFit, upper: Any, lower: Any) -> None:  # noqa: ANN401
    measurement = fit.measurement
    sizes = np.geomspace(max(1, int(measurement.sizes_bytes.min())), max(2, int(measurement.sizes_bytes.max())), 400)
    _draw(measurement, sizes, fit.curve(sizes), upper, lower, measurement.test, fit.fitted_us)
    for protocol in fit.protocols[:-1]:
        upper.axvline(max(1, protocol.max_size_bytes), color="grey", linewidth=0.8, linestyle=":")


def size_limits(measurements: Sequence[Measurement]) -> tuple[float, float]:
    """Limits slightly beyond the sizes: matplotlib's own choice would extend an axis with a zero to negative sizes."""
    least = min(int(measurement.sizes_bytes.min()) for measurement in measurements)
    most = max(int(measurement.sizes_bytes.max()) for measurement in measurements)
    return (least / _BESIDE if least > 0 else -0.5), max(most, 1) * _BESIDE


def _draw_paths(fit: PathsFit, upper: Any, lower: Any) -> None:  # noqa: ANN401 (matplotlib's axes have no public type)
    measurement = fit.measurement
    low, high = max(1, int(measurement.sizes_bytes.min())), int(measurement.sizes_bytes.max())
    sizes = np.geomspace(low, max(high, low + 1), 400)
    for channels in measurement.distinct_channels():
        part = measurement.channels == channels
        label = measurement.test + (f", Nvc {channels}" if len(measurement.distinct_channels()) > 1 else "")
        _draw(measurement.part(part), sizes, fit.curve(sizes, channels), upper, lower, label, fit.fitted_us[part])
        for crossover in fit.crossovers:
            if crossover.channels == channels and low <= crossover.size_bytes.value <= high:
                upper.axvline(crossover.size_bytes.value, color="grey", linewidth=0.8, linestyle=":")


def _draw(
    measurement: Measurement,
    sizes: Floats,
    curve: Floats,
    upper: Any,  # noqa: ANN401
    lower: Any,  # noqa: ANN401
    label: str,
    fitted: Floats | None = None,
) -> None:
    (line,) = upper.plot(sizes, curve, linewidth=1.2)
    upper.plot(measurement.sizes_bytes, measurement.times_us, "o", color=line.get_color(), markersize=4, label=label)
    at_points = curve if fitted is None else fitted
    residual = 100 * (measurement.times_us / at_points - 1)
    lower.plot(measurement.sizes_bytes, residual, "o", color=line.get_color(), markersize=4)
