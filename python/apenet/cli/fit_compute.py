"""apenet fit-compute: fits recorded computation to the size of the problem."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group
from rich.table import Table

from apenet.base.escape import escape_line
from apenet.base.infiles import printable
from apenet.base.outfiles import OutFile, keep_apart
from apenet.cli.common import JsonOption, messages, output, path_of, print_json, print_tables, progress_bar
from apenet.compute.combining import Combined
from apenet.compute.fitting import Comparison, Fit, compare, fit_profiles
from apenet.compute.profile import IS_PROFILE

MOST_ROWS = 8
LEAST_SHARE = 0.005


def fit_compute(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            parser=path_of("file", "a compute profile"),
            help="Recordings of one program (apenet run --compute record:FILE) at two or more sizes, or several of "
            "one size; those of one size count as one, without the time that other load on the host took.",
        ),
    ],
    to_profile: Annotated[
        Path | None,
        typer.Option(
            "--to-profile",
            metavar="FILE",
            parser=path_of("--to-profile", "a file"),
            help="Write the fit, for apenet run --compute FILE.",
        ),
    ] = None,
    check: Annotated[
        list[Path] | None,
        typer.Option(
            "--check",
            metavar="FILE",
            parser=path_of("--check", "a compute profile"),
            help="Compare the fit with a recording that it does not use; repeatable, also for one size.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fit a program's computation to its size. Prints the error of the fit for each region of the program."""
    checks = check or []
    keep_apart([("--to-profile", to_profile)], [("FILE", path) for path in (*files, *checks)])
    with progress_bar("fitting", None):
        fit = fit_profiles(files)
        comparisons = compare(fit.profile, checks)
    if as_json:
        print_json({**fit.to_json(), "checks": [part.to_json() for part in comparisons]})
    else:
        _print(fit, comparisons)
    if to_profile is not None:
        with OutFile("--to-profile", to_profile, IS_PROFILE) as file:
            file.write(fit.profile.to_bytes())
            file.keep()
        messages().print(f"wrote {printable(to_profile)}", markup=False)


def _print(fit: Fit, comparisons: tuple[Comparison, ...]) -> None:
    profile = fit.profile
    console = output()
    known = f"{len(profile.recorded)} sizes" if profile.is_fitted else "one size, for which alone the profile holds"
    console.print(f"{escape_line(profile.program)}: {len(profile.regions)} regions, {known}", markup=False)
    combined = [*fit.combined, *(part.combined for part in comparisons)]
    if any(each.recordings > 1 for each in combined):
        print_tables(Group(_disturbance(combined)))
    if fit.held_out:
        table = Table(title="Each recording predicted by the others", title_justify="left")
        table.add_column("ranks", justify="right")
        table.add_column("size")
        table.add_column("error of all computation", justify="right")
        for held in fit.held_out:
            table.add_row(str(held.ranks), held.size, f"{held.error:+.1%}")
        print_tables(Group(table))
    elif profile.is_fitted:
        console.print("error: not known, because two sizes determine the fit; record a third", markup=False)
    if fit.constant:
        console.print(
            f"{fit.constant} regions passed at one size only: their time does not change with it", markup=False
        )
    if fit.other_path >= LEAST_SHARE:
        console.print(
            f"regions with {fit.other_path:.0%} of the time pass more often on a rank at one size than at another: "
            "their mean may be of other work there; leave sizes out at which the program takes another path",
            markup=False,
        )
    for part in comparisons:
        print_tables(Group(_compared(part)))
        if part.unseen_share > 0:
            console.print(f"not in the profile: {part.unseen_share:.1%} of the time", markup=False)


def _disturbance(combined: list[Combined]) -> Table:
    table = Table(title="Recordings of one size together", title_justify="left")
    table.add_column("ranks", justify="right")
    table.add_column("size")
    for name in ("recordings", "removed as disturbance", "with one recording less", "does not repeat"):
        table.add_column(name, justify="right")
    for each in combined:
        said = (f"{each.removed:.1%}", f"{each.one_less:+.1%}", f"{each.not_repeated:.1%}")
        table.add_row(
            str(each.profile.recorded[0].ranks),
            each.size.given,
            str(each.recordings),
            *(said if each.recordings > 1 else ("-", "-", "-")),
        )
    return table


def _compared(part: Comparison) -> Table:
    title = f"Recording of {part.ranks} ranks: all computation predicted with an error of {part.error:+.1%}"
    table = Table(title=title, title_justify="left")
    table.add_column("from")
    table.add_column("to")
    table.add_column("ranks")
    for name in ("share", "recorded us", "predicted us", "error"):
        table.add_column(name, justify="right")
    for row in part.regions[:MOST_ROWS]:
        if row.share < LEAST_SHARE:
            break
        region = row.region
        table.add_row(
            f"{region.start} {region.start_call}",
            f"{region.end} {region.end_call}",
            region.ranks,
            f"{row.share:.1%}",
            f"{row.recorded_ns / 1000:.2f}",
            "-" if row.predicted_ns is None else f"{row.predicted_ns / 1000:.2f}",
            "-" if row.error is None else f"{row.error:+.1%}",
        )
    return table
