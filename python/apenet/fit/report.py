"""Prints a fit as a table for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from apenet.base.escape import escape_line
from apenet.fit.curvefit import CurveFit
from apenet.fit.loggp import FORMULA as LOGGP_FORMULA
from apenet.fit.loggp import LogGpFit
from apenet.fit.machine_file import WrittenMachine
from apenet.fit.measurement import Measurement
from apenet.fit.pathfit import FORMULA, PathsFit
from apenet.fit.protocolfit import ProtocolsFit, formula_text
from apenet.fit.statistics import CONFIDENCE, Errors, Floats, Interval

Fit = PathsFit | ProtocolsFit | LogGpFit
_KIB = 2**10
_NOTHING = 1e-12
_MOST_DECIMALS = 6
_VAST = 1e12
"""Bounds beyond this factor carry no information and are printed without digits."""
_LEAST_BAR = 1e-3
"""The longest bar stands for at least this residual, so that rounding errors are not drawn."""
_BAR = 12
"""Width of a residual's bar on each side of zero, in cells."""


def size_text(size_bytes: float) -> str:
    """A readable size; exact for whole multiples of a power of 1024."""
    for unit, factor in (("GiB", _KIB**3), ("MiB", _KIB**2), ("KiB", _KIB)):
        if size_bytes >= factor and size_bytes % factor == 0:
            return f"{size_bytes / factor:g} {unit}"
    return f"{size_bytes:.0f} B"


def number_text(value: float) -> str:
    """Four significant digits."""
    if not math.isfinite(value):
        return str(value)
    if abs(value) < _NOTHING:
        return "0"
    if abs(value) >= _VAST:
        return f"{value:.1e}"
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:.{digits}f}" if digits <= _MOST_DECIMALS else f"{value:.3e}"


def interval_text(interval: Interval | None) -> tuple[str, str]:
    """The value, and its interval in brackets."""
    if interval is None:
        return "?", ""
    if not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return number_text(interval.value), "not determined"
    return number_text(interval.value), f"{number_text(interval.low)} .. {number_text(interval.high)}"


def report(fit: Fit) -> RenderableType:
    """The whole report of a fit, with points and residuals at the end."""
    parts: list[RenderableType] = []
    unknown: tuple[str, ...]
    if isinstance(fit, PathsFit):
        parts += [*_input([fit.measurement], fit.model, FORMULA), *_chosen(fit)]
        parts += ["", _paths_table(fit), *_crossovers(fit)]
        unknown = tuple(f"path {n}: {what}" for n, path in enumerate(fit.paths, start=1) for what in path.unknown)
    elif isinstance(fit, ProtocolsFit):
        parts += [*_input([fit.measurement], fit.model, formula_text(fit)), *_chosen(fit)]
        parts += ["", _protocols_table(fit)]
        unknown = ()
    else:
        parts += _input(fit.measurements, fit.model, LOGGP_FORMULA)
        parts += ["", _loggp_table(fit)]
        unknown = fit.unknown
    if isinstance(fit, CurveFit):
        tables = [(fit.measurement, fit.fitted_us, fit.held_out_percent)]
    else:
        tables = list(zip(fit.measurements, fit.fitted_us, fit.held_out_percent, strict=True))
    warnings = (*(note for measurement, _, _ in tables for note in measurement.notes), *fit.warnings)
    parts += ["", _errors_table(fit.in_sample, fit.held_out)]
    parts += [Text.assemble(("unknown    ", "yellow"), line) for line in unknown]
    parts += [Text.assemble(("note       ", "yellow"), line) for line in warnings]
    for measurement, fitted, held_out in tables:
        parts += ["", _points_table(measurement, fitted, held_out)]
    return Group(*parts)


def machine_report(written: WrittenMachine) -> RenderableType:
    """The written machine file, and its agreement with the measurements."""
    what = f"{written.protocols} protocols" if written.protocols > 1 else f"{written.paths} paths"
    parts = [
        Text.assemble(
            "\n", ("machine    ", "bold"), f"{escape_line(str(written.path))} ({what.replace('1 paths', '1 path')})"
        )
    ]
    parts += [
        Text(
            f"           its {one.test} agrees with the file within {abs(one.worst_percent):.2f} % at all {one.points} "
            f"points, worst at {size_text(one.worst_at_bytes)}"
        )
        for one in written.agreements
    ]
    parts += [Text.assemble(("note       ", "yellow"), line) for line in written.warnings]
    return Group(*parts)


def _input(measurements: list[Measurement] | tuple[Measurement, ...], model: str, formula: str) -> Iterator[Text]:
    for measurement in measurements:
        sizes = measurement.sizes_bytes
        span = f"{size_text(int(sizes.min()))} to {size_text(int(sizes.max()))}"
        channels = ", ".join(map(str, measurement.distinct_channels()))
        yield Text.assemble(
            ("data       ", "bold"), f"{escape_line(measurement.file)} ({measurement.form}, {measurement.section})"
        )
        yield Text(f"           {len(measurement)} points, {span}, Nvc {channels}")
        yield Text(f"           {measurement.test}: {measurement.definition}")
    yield Text.assemble(("model      ", "bold"), f"{model}   {formula}")


def _chosen(fit: PathsFit | ProtocolsFit) -> Iterator[Text]:
    """The reason for the choice of the model."""
    if fit.compared:
        others = ", ".join(f"{one.model} {one.held_out_rms_percent:.2f} %" for one in fit.compared)
        yield Text.assemble(("chosen     ", "bold"), f"by held-out error (rms): {others};")
        yield Text("           the model with the fewest parameters among those as good as the best")


def _protocols_table(fit: ProtocolsFit) -> Table:
    percent = f"{100 * CONFIDENCE:.0f} %"
    table = _table("sizes", "latency (us)", percent, "beta (MiB/s)", percent, "points")
    for one in fit.ranges:
        sizes = " to ".join(dict.fromkeys(map(size_text, one.sizes_bytes)))
        table.add_row(sizes, *interval_text(one.latency_us), *interval_text(one.beta_mib_s), str(one.points))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right", no_wrap=True)
    return table


def _paths_table(fit: PathsFit) -> Table:
    separate = any(path.lambda_us is not None for path in fit.paths)
    percent = f"{100 * CONFIDENCE:.0f} %"
    columns = ["path"]
    if separate:
        columns += ["lambda (us)", percent, "tau (us)", percent]
    columns += ["lambda+Nvc*tau (us)", percent, "beta (MiB/s)", percent, "dominates"]
    table = _table(*columns)
    for index, path in enumerate(fit.paths, start=1):
        cells: list[str] = []
        if separate:
            cells += [*interval_text(path.lambda_us), *interval_text(path.tau_us)]
        fixed, bounds = interval_text(path.fixed_us)
        at = f" (Nvc {path.fixed_channels})" if len(fit.measurement.distinct_channels()) > 1 else ""
        cells += [fixed + at, bounds, *interval_text(path.beta_mib_s)]
        cells.append(f"{size_text(path.decides[0])} to {size_text(path.decides[1])}" if path.decides else "nothing")
        table.add_row(str(index), *cells)
    return table


def _crossovers(fit: PathsFit) -> Iterator[Text]:
    for crossover in fit.crossovers:
        value, bounds = interval_text(crossover.size_bytes)
        yield Text.assemble(
            ("crossover  ", "bold"),
            f"path {crossover.first + 1} to {crossover.second + 1} at {value} bytes ({bounds})"
            + (f", Nvc {crossover.channels}" if len(fit.measurement.distinct_channels()) > 1 else ""),
        )


def _loggp_table(fit: LogGpFit) -> Table:
    table = _table("parameter", "value", f"{100 * CONFIDENCE:.0f} %", "unit")
    rows: list[tuple[str, Interval | None, str]] = [
        ("L + o_s + o_r", fit.sum_us, "us"),
        ("L", fit.latency_us, "us"),
        ("g", fit.gap_us, "us"),
        ("G", fit.gap_per_byte_us, "us/byte"),
    ]
    for name, interval, unit in rows:
        table.add_row(name, *interval_text(interval), unit)
    for name, value in (("o_s", fit.send_us), ("o_r", fit.receive_us)):
        table.add_row(name, "?" if value is None else number_text(value), "measured" if value is not None else "", "us")
    return table


def _errors_table(in_sample: Errors, held_out: Errors) -> Table:
    table = _table("error", "rms", "worst", "at", "points")
    for name, errors in (("in sample", in_sample), ("held out", held_out)):
        table.add_row(
            name,
            f"{errors.rms_percent:.2f} %",
            f"{errors.max_percent:.2f} %",
            size_text(errors.max_at_bytes),
            str(errors.points),
        )
    return table


def _points_table(measurement: Measurement, fitted: Floats, held_out: Floats) -> Table:
    several = len(measurement.distinct_channels()) > 1
    columns = ["size (B)", *(["Nvc"] if several else []), "measured (us)", "fitted (us)", "residual", "held out"]
    table = _table(*columns)
    table.add_column("", justify="left", no_wrap=True)
    residual = measurement.times_us / fitted - 1
    widest = max(float(abs(residual).max()), _LEAST_BAR)
    for index in range(len(measurement)):
        cells = [str(measurement.sizes_bytes[index])]
        if several:
            cells.append(str(measurement.channels[index]))
        tested = f"{held_out[index]:+.2f} %" if math.isfinite(held_out[index]) else ""
        cells += [number_text(float(measurement.times_us[index])), number_text(float(fitted[index]))]
        table.add_row(*cells, f"{100 * residual[index]:+.2f} %", tested, _bar(float(residual[index]) / widest))
    return table


def _bar(share: float) -> Text:
    """A residual between -1 and 1 as a bar to the left or the right of the middle."""
    length = round(abs(share) * _BAR)
    left = ("#" * length if share < 0 else "").rjust(_BAR)
    right = ("#" * length if share > 0 else "").ljust(_BAR)
    return Text(f"{left}|{right}".rstrip(), style="dim")
