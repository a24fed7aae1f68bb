"""apenet fit: models of time over size, fitted to measured points."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from apenet import fit as fits
from apenet.cli.common import JsonOption, messages, output, print_json, progress_bar
from apenet.fit.plot import check_plot_file, plot
from apenet.fit.report import report


def add_to(app: typer.Typer) -> None:
    """Registers the command."""
    app.command("fit")(fit)


def fit(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="What OSU, IMB, perftest, fabtests printed; CSV; JSON.")
    ],
    model: Annotated[
        str, typer.Option("--model", metavar="paths:K|loggp", help="One to three paths, or LogGP.")
    ] = fits.DEFAULT_MODEL,
    test: Annotated[
        str | None, typer.Option("--test", metavar="TEST", help="What the file holds: " + ", ".join(fits.TESTS) + ".")
    ] = None,
    section: Annotated[
        str | None, typer.Option("--section", metavar="NAME|N", help="One of several tables in a file.")
    ] = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw fit and residuals: .png, .svg or .pdf.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fit a model to measured times: parameters with intervals, cross-overs, held-out error."""
    if plot_file is not None:
        check_plot_file(plot_file)
    with progress_bar(f"fitting {model}", None):
        fitted = fits.fit(*files, model=model, test=test, section=section)
        if plot_file is not None:
            plot(fitted, plot_file)
    if as_json:
        print_json(fitted.to_json())
    else:
        output().print(report(fitted))
    if plot_file is not None:
        messages().print(f"wrote {plot_file}", markup=False)
