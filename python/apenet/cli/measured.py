"""The page that commands make which measure: bench, traffic, sweep."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from apenet.base.infiles import printable
from apenet.base.outfiles import Held
from apenet.cli.common import messages
from apenet.explain.measurement import measurement
from apenet.explain.report import ReportFile


class MeasurementPage(Held):
    """The file of a page, held from before the measurement until it is written; None: there is none.

    Raises InputError like ReportFile.
    """

    def __init__(self, file: Path | None) -> None:
        with ExitStack() as stack:
            self._path = file
            self._file = None if file is None else stack.enter_context(ReportFile(file))
            self._closing = stack.pop_all()

    def keep(self, content: object, *, command: str = "", axes: Sequence[str] = ()) -> None:
        """Writes the page of what `--json` would print, and says where. Raises NotWrittenError."""
        if self._file is not None and self._path is not None:
            self._file.keep(measurement(content, command=command, axes=axes))
            messages().print(printable(self._path), markup=False)
