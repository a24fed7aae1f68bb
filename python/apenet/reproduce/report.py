"""The report: one self-contained page, readable offline and on a phone, and the same data as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from apenet.base.outfiles import FolderKind, Held, OutFolder, contains
from apenet.base.page import page as filled_page
from apenet.machine import machine as read_machine
from apenet.machine import machine_names
from apenet.reproduce import Reproduction
from apenet.reproduce.charts import chart
from apenet.reproduce.figures import FigureSpec
from apenet.reproduce.pictures import MARK, file_name, pictures
from apenet.reproduce.sensitivity import shipped
from apenet.reproduce.tasks import LinkLoads, LoadRun
from apenet.reproduce.tornado import tornados
from apenet.reproduce.unmeasured import unknown

_LINK = re.compile(r"\(([0-9]+),([0-9]+),([0-9]+)\)([+-])([xyz])")
_PAGE = "index.html"
_DATA = "report.json"
_MOST_DATA_BYTES = 2**28


def _is_report(file: BinaryIO) -> bool:
    try:
        content = json.loads(file.read(_MOST_DATA_BYTES))
    except ValueError:
        return False
    return isinstance(content, dict) and {"version", "agrees", "rows"} <= content.keys()


_REPORT = FolderKind(_DATA, _is_report, "report")
_FIGURES = FolderKind(None, contains(MARK), "figure")
_SCRIPTS = ("report.js", "chart.js", "torus.js")


class Report(Held):
    """The folder of a report, held from before the measurements until it is written.

    Raises InputError for a folder that cannot be written, or that holds files other than those of a report.
    """

    def __init__(self, folder: Path, figures: Sequence[FigureSpec]) -> None:
        self._path = folder
        with ExitStack() as stack:
            self._folder = stack.enter_context(OutFolder("out", folder, _REPORT, [_PAGE]))
            self._figures = stack.enter_context(
                OutFolder("out", folder / "figures", _FIGURES, [file_name(spec) for spec in figures])
            )
            self._closing = stack.pop_all()

    def keep(self, reproduction: Reproduction) -> list[Path]:
        """Writes index.html, report.json and figures/; returns the first two. Raises NotWrittenError."""
        content = json.dumps(reproduction.to_json(), indent=2, allow_nan=False) + "\n"
        self._figures.keep(pictures(reproduction.figures))
        self._folder.keep({_PAGE: page(report_json(reproduction)).encode(), _DATA: content.encode()})
        return [self._path / _PAGE, self._path / _DATA]


def report_json(reproduction: Reproduction) -> dict[str, Any]:
    """The data of the page."""
    return {
        **reproduction.to_json(),
        "figures": [chart(figure) for figure in reproduction.figures],
        "tornados": tornados(reproduction.rows, shipped()),
        "holds": {f"{row['key']}@{row['size_bytes']}": row["holds_percent"] for row in shipped()["rows"]},
        "machines": {name: read_machine(name).file.machine.title for name in machine_names()},
        "loads": [_load_json(run, loads) for run, loads in reproduction.loads],
        "unknown": unknown(),
    }


def _load_json(run: LoadRun, loads: LinkLoads) -> dict[str, Any]:
    """For each link: its first node, dimension, direction, and busy share of the time."""
    links = []
    for name, busy, _bytes in loads.links:
        found = _LINK.fullmatch(name)
        if found is not None:
            where = [int(found[number]) for number in (1, 2, 3)]
            links.append([*where, "xyz".index(found[5]), 1 if found[4] == "+" else -1, round(busy, 5)])
    return {
        "title": run.title,
        "machine": run.machine,
        "dims": list(read_machine(run.machine).dims),
        "time_us": loads.time_us,
        "links": links,
    }


def page(content: dict[str, Any]) -> str:
    """The page with style, scripts and data in it: it loads nothing, and its policy forbids to."""
    from plotly.offline import get_plotlyjs  # noqa: PLC0415 (slow to load, and needed here only)

    return filled_page(
        "apenet.reproduce",
        "page.html",
        "APENet: published and simulated",
        _SCRIPTS,
        content,
        {"PLOTLY": get_plotlyjs()},
    )
