"""The summary of a gate in Markdown, for a terminal, a file, and a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from apenet._core import version as __version__
from apenet.base.escape import escape_line
from apenet.compare.base_file import Base
from apenet.compare.gate import Judgement
from apenet.compare.gate_file import GateRun
from apenet.compare.metrics import show_percent

HEADING = "<!-- apenet gate -->\n"
"""The first line: by it, files may be replaced and a comment is found again."""
_VERDICTS = {"worse": "**worse**", "not judged": ""}


def code(text: str) -> str:
    """Text of programs, files and users, in which nothing is Markdown or HTML."""
    plain = escape_line(text).replace("`", "'").replace("|", "\\|")
    return f"`{plain}`" if plain else ""


def markdown(runs: Sequence[GateRun], judgements: Sequence[Judgement], base: Base) -> str:
    """A verdict, a table of all values, and what limits the verdict."""
    lines = [HEADING.rstrip("\n"), f"### apenet gate: {_verdict(judgements)}", ""]
    if any(judgement.changes for judgement in judgements):
        lines += ["| run | value | accepted | now | change | limit | |", "|---|---|--:|--:|--:|--:|---|"]
        for run, judgement in zip(runs, judgements, strict=True):
            lines += _rows(run, judgement)
        lines.append("")
    lines += [f"- {code(one.name)} **was not compared**: {code(one.problem)}" for one in judgements if one.problem]
    for note in dict.fromkeys(note for judgement in judgements for note in judgement.notes):
        names = ", ".join(code(judgement.name) for judgement in judgements if note in judgement.notes)
        lines.append(f"- {names}: {code(note)}")
    gone = [name for name in base.runs if name not in {run.name for run in runs}]
    if gone:
        lines.append(f"- {', '.join(map(code, gone))}: accepted once, and no run of this gate any more")
    lines += [*_of_machines(judgements), f"- apenet {__version__}; accepted values: {code(str(base.path))}"]
    return "\n".join(lines) + "\n"


def _verdict(judgements: Sequence[Judgement]) -> str:
    count = len(judgements)
    broken = sum(1 for judgement in judgements if judgement.problem)
    worse = sum(1 for judgement in judgements if judgement.is_worse)
    if broken:
        also = f", {worse} worse" if worse else ""
        return f"{broken} of {_runs(count)} not compared{also}"
    if worse:
        return f"{worse} of {_runs(count)} worse"
    verdicts = {change.verdict for judgement in judgements for change in judgement.changes}
    if verdicts == {"equal"} and all(judgement.same_events for judgement in judgements):
        return f"{_runs(count)} equal, in every event"
    better = "better" in verdicts
    return f"{_runs(count)} within the limits{'; --update keeps what has become better' if better else ''}"


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def _rows(run: GateRun, judgement: Judgement) -> Iterator[str]:
    for change in judgement.changes:
        limit = "" if change.limit is None else show_percent(change.limit)
        cells = (
            code(run.name),
            change.metric.name,
            change.metric.shown(change.base),
            change.metric.shown(change.now),
            change.shown,
            limit,
            _VERDICTS.get(change.verdict, change.verdict),
        )
        yield f"| {' | '.join(cells)} |"


def _of_machines(judgements: Sequence[Judgement]) -> Iterator[str]:
    for judgement in judgements:
        accepted = judgement.accepted
        if accepted is None:
            continue
        compute = accepted.request.get("compute", "recorded")
        parts = [f"{accepted.served['ranks']} ranks on {code(accepted.machine)}", f"compute {code(compute)}"]
        parts += [code(library) for library in accepted.served["libraries"]]
        yield f"- {code(judgement.name)}: {', '.join(parts)}"
