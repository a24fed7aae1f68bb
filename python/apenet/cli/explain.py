"""apenet explain: why a run takes its time."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from apenet.base.errors import InputError
from apenet.base.infiles import printable
from apenet.base.outfiles import keep_apart
from apenet.cli.common import JsonOption, output, path_of, print_json, print_tables, progress_bar
from apenet.cli.difference import content_of, table_of
from apenet.compare.difference import difference
from apenet.explain.folder import read_folder
from apenet.explain.measurement import measurement, read_measurement
from apenet.explain.otf2_archive import write_otf2
from apenet.explain.report import DEFAULT, ReportFile
from apenet.explain.report import explain as explain_run
from apenet.run.folder import RECORDING
from apenet.study.study import Study

_SQLITE = b"SQLite format 3"


def explain(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            parser=path_of("RUN", "a run folder, or a file of results"),
            help="A folder of apenet run --out; or a file: what --json of bench or traffic prints, or a study.",
        ),
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
            "--report",
            metavar="FILE",
            parser=path_of("report", "a file"),
            help="The page; by default RUN/report.html, of two runs none.",
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
    otf2: Annotated[
        Path | None,
        typer.Option(
            "--otf2",
            metavar="DIR",
            parser=path_of("otf2", "a folder"),
            help="Also write the run as an OTF2 archive, for Vampir; a new folder.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Explain what a run waits for. Replays measure how much time each change would save. Writes a page.

    With two runs: whether they are equal, the first event that differs and why, and what has changed.
    """
    if other is not None:
        for name, given in (("recording", recording), ("otf2", otf2)):
            if given is not None:
                raise InputError(name, given, f"one run with --{name}; two are compared by their folders alone")
        _compare(run, other, report, as_json=as_json)
        return
    if otf2 is not None:
        with progress_bar(f"writing {otf2}", None):
            write_otf2(read_folder(run, recording), otf2)
    if run.is_file():
        _explain_measured(run, report, recording, as_json=as_json)
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
        output().print(f"{content['verdict']['text']}\n{printable(target)}", markup=False)


def _compare(run: Path, other: Path, report: Path | None, *, as_json: bool) -> None:
    names = ("run.json", "command.json", RECORDING)
    keep_apart([("report", report)], [("RUN", folder / name) for folder in (run, other) for name in names])
    with ExitStack() as stack:
        held = None if report is None else stack.enter_context(ReportFile(report))
        with progress_bar(f"replaying {run} and {other}", None):
            found = difference(run, other)
        if held is not None:
            held.keep(content_of(found))
    if as_json:
        print_json(found.to_json())
    else:
        print_tables(table_of(found))
        if report is not None:
            output().print(str(report), markup=False)


def _explain_measured(file: Path, report: Path | None, recording: Path | None, *, as_json: bool) -> None:
    if recording is not None:
        raise InputError("recording", recording, f"a run folder with it; {file} has results without one")
    content = _measured(file)
    if report is not None or not as_json:
        target = report or file.with_suffix(".html")
        keep_apart([("report", target)], [("RUN", file)])
        with ReportFile(target) as held:
            held.keep(content)
    if as_json:
        print_json(content)
    else:
        output().print(f"{content['verdict']['text']}\n{printable(target)}", markup=False)


def _measured(file: Path) -> dict[str, Any]:
    """The page of a study, or of the results of a measurement."""
    with file.open("rb") as opened:
        is_study = opened.read(len(_SQLITE)) == _SQLITE
    if not is_study:
        return read_measurement(file)
    with Study(file) as study:
        rows = list(study.rows())
        if not rows:
            raise InputError("RUN", file, "a study with points that are done")
        return measurement(rows, command=f"apenet sweep: {' '.join(study.command)}", axes=study.axis_names)
