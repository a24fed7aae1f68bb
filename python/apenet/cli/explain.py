"""apenet explain: why a run takes its time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from apenet.base.errors import InputError
from apenet.base.outfiles import keep_apart
from apenet.cli.common import JsonOption, output, path_of, print_json, print_tables, progress_bar
from apenet.cli.difference import table_of
from apenet.compare.difference import difference
from apenet.explain.report import DEFAULT, ReportFile
from apenet.explain.report import explain as explain_run
from apenet.run.folder import RECORDING


def explain(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", parser=path_of("RUN", "a run folder"), help="A folder of apenet run --out.")
    ],
    other: Annotated[
        Path | None,
        typer.Argument(
            metavar="[OTHER]", parser=path_of("OTHER", "a run folder"), help="Another run folder: compare the two."
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE", parser=path_of("report", "a file"), help="The page; by default RUN/report.html."
        ),
    ] = None,
    recording: Annotated[
        Path | None,
        typer.Option(
            "--recording",
            metavar="FILE",
            parser=path_of("recording", "a GOAL file"),
            help="The run's recording, if it is not in its folder.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Explain what a run waits for. Replays measure how much time each change would save. Writes a page.

    With two runs: whether they are equal, the first event that differs and why, and what has changed.
    """
    if other is not None:
        for name, given in (("report", report), ("recording", recording)):
            if given is not None:
                raise InputError(name, given, f"one run with --{name}; two are compared by their folders alone")
        with progress_bar(f"replaying {run} and {other}", None):
            found = difference(run, other)
        if as_json:
            print_json(found.to_json())
        else:
            print_tables(table_of(found))
        return
    if as_json and report is None:
        with progress_bar(f"replaying {run}", None):
            content = explain_run(run, recording=recording)
        print_json(content)
        return
    target = report or run / DEFAULT
    keep_apart([("report", target)], [("RUN", run / name) for name in ("run.json", "command.json", RECORDING)])
    with progress_bar(f"replaying {run}", None):
        content = explain_run(run, recording=recording)
        with ReportFile(target) as held:
            held.keep(content)
    if as_json:
        print_json(content)
    else:
        output().print(f"{content['verdict']['text']}\n{target}", markup=False)
