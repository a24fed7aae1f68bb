"""apenet doctor: checks whether this host can run simulations, and which path messages take."""

from __future__ import annotations

import typer
from rich.table import Table
from rich.text import Text

from apenet.cli.common import JsonOption, output, print_json, print_tables, progress_bar
from apenet.run.doctor import Diagnosis, examine


def doctor(as_json: JsonOption = False) -> None:
    """Check this host and show how messages travel: MPI, provider, clock and locality of each rank."""
    with progress_bar("running two ranks", None):
        diagnosis = examine()
    if as_json:
        print_json(diagnosis.to_json())
    else:
        _print(diagnosis)
    raise typer.Exit(0 if diagnosis.healthy else 1)


def _print(diagnosis: Diagnosis) -> None:
    console = output()
    for finding in diagnosis.findings:
        style = {"ok": "green", "note": "yellow", "bad": "red"}[finding.verdict]
        console.print(Text.assemble((f"{finding.verdict:<6}", style), f"{finding.subject:<15}", finding.detail))
    if diagnosis.ranks:
        ranks = Table(box=None, pad_edge=False, header_style="bold", title="a run of two ranks", title_justify="left")
        for column in ("rank", "MPI library", "provider", "clock", "locality"):
            ranks.add_column(column, no_wrap=column != "MPI library")
        for rank in diagnosis.ranks:
            ranks.add_row(str(rank.rank), rank.library, rank.provider, rank.clock, rank.locality)
        print_tables(ranks)
