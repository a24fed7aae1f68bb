"""apenet fit: fits models of time over size to measured points."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from apenet import fit as fits
from apenet.base.errors import InputError, NotWrittenError
from apenet.base.infiles import printable
from apenet.cli.common import JsonOption, ToMachineOption, messages, path_of, print_json, print_tables, progress_bar
from apenet.fit.machine_file import check_machine_file
from apenet.fit.plot import check_plot_file, plot
from apenet.fit.report import machine_report, report


def fit(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            parser=path_of("file", "a table of measurements"),
            help="Output of OSU, IMB, perftest or fabtests; CSV; JSON.",
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="protocols, paths:1 to paths:3, or loggp; auto compares them.",
        ),
    ] = fits.DEFAULT_MODEL,
    test: Annotated[
        list[str] | None,
        typer.Option(
            "--test",
            metavar="TEST",
            help="Test of the measurements, one for all files or one each: " + ", ".join(fits.TESTS) + ".",
        ),
    ] = None,
    section: Annotated[
        list[str] | None,
        typer.Option(
            "--section", metavar="NAME|N", help="Table to use if a file has several; one for all files or one each."
        ),
    ] = None,
    machine_file: ToMachineOption = None,
    plot_file: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="FILE",
            parser=path_of("--plot", "a file"),
            help="Draw fit and residuals: .png, .svg or .pdf.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fit a model to measured times. Prints parameters with intervals, cross-overs and errors; writes a machine."""
    fits.check_model(model, len(files), is_for_machine=machine_file is not None)
    if plot_file is not None:
        check_plot_file(plot_file)
    if machine_file is not None:
        check_machine_file(machine_file)
    written = None
    failures: list[NotWrittenError] = []
    with progress_bar(f"fitting {model}", None):
        tests, sections = _one_each("--test", test, files), _one_each("--section", section, files)
        measurements = [
            fits.read(file, test=chosen, section=part)
            for file, chosen, part in zip(files, tests, sections, strict=True)
        ]
        fitted = fits.fit_measurements(measurements, model, is_for_machine=machine_file is not None)
        try:
            if machine_file is not None:
                paths = fitted if isinstance(fitted, fits.PathsFit) else None
                written = fits.write_machine(measurements, machine_file, paths)
        except NotWrittenError as error:
            failures.append(error)
        try:
            if plot_file is not None:
                plot(fitted, plot_file)
                messages().print(f"wrote {printable(plot_file)}", markup=False)
        except NotWrittenError as error:
            failures.append(error)
    if as_json:
        print_json({**fitted.to_json(), **({"machine": written.to_json()} if written is not None else {})})
    else:
        print_tables(report(fitted))
        if written is not None:
            print_tables(machine_report(written))
    if failures:
        raise NotWrittenError.together(failures, fitted)


def _one_each(name: str, values: list[str] | None, files: list[Path]) -> list[str | None]:
    if not values:
        return [None] * len(files)
    if len(values) == 1:
        return [values[0]] * len(files)
    if len(values) != len(files):
        raise InputError(name, ",".join(values), f"one for all files, or one for each of {len(files)}")
    return list(values)
