"""apenet doctor: checks whether this host can run simulations, and which path messages take; examines a program."""

from __future__ import annotations

import textwrap
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from apenet.cli.common import JsonOption, output, print_json, print_tables, progress_bar
from apenet.run.doctor import Diagnosis, examine
from apenet.run.doctor_program import examine_program

_SUBJECT_AT, _DETAIL_AT, _WIDTH = 6, 21, 80


def doctor(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- PROGRAM [ARGS]...", help="A program to examine; it is not run.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check this host, or a program.

    Without a program: the MPI library, provider, clock and locality of each rank of a small run.

    With a program: which MPI library the loader binds, what `apenet run` will do with it, and what will not work.
    """
    if command:
        diagnosis = examine_program(command)
    else:
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
        room = _WIDTH - _DETAIL_AT
        lines = textwrap.wrap(finding.detail, room, break_long_words=False, break_on_hyphens=False) or [""]
        detail = ("\n" + " " * _DETAIL_AT).join(lines)
        subject = finding.subject.ljust(_DETAIL_AT - _SUBJECT_AT)
        console.print(Text.assemble((finding.verdict.ljust(_SUBJECT_AT), style), subject, detail))
    if diagnosis.ranks:
        ranks = Table(box=None, pad_edge=False, header_style="bold", title="a run of two ranks", title_justify="left")
        for column in ("rank", "MPI library", "provider", "clock", "locality"):
            ranks.add_column(column, no_wrap=column != "MPI library")
        for rank in diagnosis.ranks:
            ranks.add_row(str(rank.rank), rank.library, rank.provider, rank.clock, rank.locality)
        print_tables(ranks)
