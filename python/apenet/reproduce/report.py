"""The report: one page with everything in it, readable without a network and on a phone, and the same as JSON."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

from apenet.machine import machine as read_machine
from apenet.machine import machine_names
from apenet.reproduce import Reproduction
from apenet.reproduce.pictures import write_pictures
from apenet.reproduce.tasks import LinkLoads, LoadRun
from apenet.reproduce.unmeasured import unknown

_LINK = re.compile(r"\((\d+),(\d+),(\d+)\)([+-])([xyz])")
_SCRIPTS = ("report.js", "chart.js", "torus.js")


def write_report(reproduction: Reproduction, folder: Path) -> list[Path]:
    """Writes index.html, report.json and figures/ into the folder; returns the first two."""
    folder.mkdir(parents=True, exist_ok=True)
    content = report_json(reproduction)
    written = [folder / "index.html", folder / "report.json"]
    written[0].write_text(page(content), encoding="utf-8")
    written[1].write_text(json.dumps(reproduction.to_json(), indent=2, allow_nan=False) + "\n", encoding="utf-8")
    write_pictures(reproduction.figures, folder / "figures")
    return written


def report_json(reproduction: Reproduction) -> dict[str, Any]:
    """What the page shows."""
    return {
        **reproduction.to_json(),
        "machines": {name: read_machine(name).file.machine.title for name in machine_names()},
        "loads": [_load_json(run, loads) for run, loads in reproduction.loads],
        "unknown": unknown(),
    }


def _load_json(run: LoadRun, loads: LinkLoads) -> dict[str, Any]:
    """Of each link: where it begins, along which dimension, which way, and the part of the time that it was busy."""
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
    """The page with style, scripts and data in it."""
    parts = resources.files(__package__).joinpath("page")
    # "</" would end the script element that holds the data.
    data = json.dumps(content, allow_nan=False).replace("</", "<\\/")
    script = "\n".join(parts.joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS)
    text = parts.joinpath("page.html").read_text(encoding="utf-8")
    for mark, inner in (("/*STYLE*/", parts.joinpath("style.css").read_text(encoding="utf-8")), ("/*SCRIPT*/", script)):
        text = text.replace(mark, inner)
    return text.replace("/*DATA*/", data)
