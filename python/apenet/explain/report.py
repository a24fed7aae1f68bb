"""The page of a run: one self-contained file, readable offline, on a phone and on paper."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from apenet.base.errors import ApenetError, InputError, NotWrittenError
from apenet.base.outfiles import Held, OutFile, contains, given_path, keep_apart
from apenet.base.page import page as filled_page
from apenet.explain.folder import RunFolder, read_folder
from apenet.explain.measurement import MEASUREMENT
from apenet.explain.measurement import page as measurement_page
from apenet.run.folder import RECORDING, REQUEST, RESULTS
from apenet.run.results import Result

MARK = b"<!-- apenet explain -->"
DEFAULT = "report.html"
DIFFERENCE = "difference"
_SCRIPTS = ("parts.js", "torus.js", "graph.js", "timeline.js", "exchange.js", "explain.js")


def _analysed(run: RunFolder) -> dict[str, Any]:
    """The page's numbers."""
    from apenet.explain.analysis import analysed  # noqa: PLC0415 (slow import, which a run without a page spares)

    return analysed(run)


class ReportFile(Held):
    """The file of a page, held from before the run until it is written.

    Raises InputError for a path that cannot be written, or where a file of other origin stands.
    """

    def __init__(self, path: Path) -> None:
        with ExitStack() as stack:
            self._file = stack.enter_context(OutFile("report", path, contains(MARK)))
            self._closing = stack.pop_all()

    def keep(self, content: dict[str, Any]) -> None:
        """Writes the page. Raises NotWrittenError."""
        self._file.write(page(content).encode())
        self._file.keep()


def page(content: dict[str, Any]) -> str:
    """The page with style, scripts and data in it: it loads nothing, and its policy forbids to."""
    if content.get("kind") == MEASUREMENT:
        return measurement_page(content)
    if content.get("kind") == DIFFERENCE:
        scripts = ("parts.js", "difference.js")
        return filled_page("apenet.explain", "explain.html", f"APENet: {content['title']}", scripts, content)
    return filled_page("apenet.explain", "explain.html", "APENet: why this run takes its time", _SCRIPTS, content)


class Reporting(Held):
    """The page of a run that is to be made: its file, and a folder for the run if the user names none.

    Raises InputError like ReportFile.
    """

    def __init__(self, file: Path, out: Path | None, record: Path | None) -> None:
        folder = Path() if out is None else out
        keep_apart([("report", file)], [("out", folder / name) for name in (*RESULTS, REQUEST) if out is not None])
        with ExitStack() as stack:
            self._file = stack.enter_context(ReportFile(file))
            self._path = file
            self.out = out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="apenet-")))
            self.record = record or self.out / RECORDING
            self._closing = stack.pop_all()

    def keep(self, result: Result) -> str:
        """Explains the run that has ended, writes the page, and returns what to say.

        Raises NotWrittenError with the result if the page cannot be written.
        """
        try:
            content = _analysed(read_folder(self.out, self.record if self.record.exists() else None))
            self._file.keep(content)
        except NotWrittenError as error:
            error.result = result
            raise
        except ApenetError as error:  # operations that no replay brings to an end
            return f"no report: {error}"
        return f"{content['verdict']['text']}\n{self._path}"


def explain(run: str | Path, *, recording: str | Path | None = None) -> dict[str, Any]:
    """The numbers of a run folder's page as one object (docs/reference/explain.md).

    `recording` names the run's GOAL trace where it is not in the folder. Raises InputError for a folder that is no
    complete run of this version.
    """
    return _analysed(read_folder(run, recording))


def report(result: Result | str | Path, file: str | Path | None = None) -> Path:
    """Writes the page of a run, given its result or its folder, and returns its path: report.html in the folder.

    The run must have had `out`; with `record` in that folder (recording.goal) the page has the reasons of its time.
    Raises InputError for a run without folder and for a file that cannot be written, NotWrittenError if writing fails.
    """
    folder = result.folder if isinstance(result, Result) else Path(result)
    if folder is None:
        raise InputError("report", "a run without a folder", f'out="DIR", record="DIR/{RECORDING}" in apenet.run')
    target = given_path("report", file, "a file") or folder / DEFAULT
    keep_apart([("report", target)], [("the run", folder / name) for name in ("run.json", "command.json", RECORDING)])
    run = read_folder(folder)
    with ReportFile(target) as held:
        held.keep(_analysed(run))
    return target
