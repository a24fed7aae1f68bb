"""apenet gate: runs beside accepted values, for pull requests."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from apenet.base.errors import ApenetError, InputError
from apenet.base.escape import escape_line
from apenet.base.infiles import printable
from apenet.base.outfiles import OutFile, begins_with, keep_apart
from apenet.base.tempfolder import temporary_folder
from apenet.cli.common import path_of
from apenet.cli.streams import programs_on_errors, say
from apenet.compare.base_file import IS_OURS, Base, Values, parameters_of, read_base, write_base
from apenet.compare.gate import NOT_COMPARED, Judgement, exit_status, judge, request_of
from apenet.compare.gate_file import NAME, Choices, GateRun, one_run, read_gate_file
from apenet.compare.markdown import HEADING, markdown
from apenet.compare.metrics import METRICS
from apenet.machine import machine as read_machine

_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]


@dataclass(frozen=True)
class _Planned:
    """A run whose command line has been read."""

    run: GateRun
    command: Any
    context: Any
    request: Values
    machine: tuple[str, Values]


def gate(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- run|replay OPTIONS...", help=f"One run; without it, the runs that {NAME} lists."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="BASE.json",
            parser=path_of("against", "a file"),
            help="File of accepted values; by default, for a list of runs, the file that the list names.",
        ),
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option("--max", metavar="+PERCENT%", help="By how much a value may grow, such as +0.5%; by default 0."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option("--metric", metavar=",".join(METRICS), help="The values that are judged; by default time."),
    ] = None,
    update: Annotated[bool, typer.Option("--update", help="Accept the present values: write the file.")] = False,
    summary: Annotated[
        Path | None,
        typer.Option(
            "--summary",
            metavar="FILE.md",
            parser=path_of("summary", "a file"),
            help="Also write the summary to a file.",
        ),
    ] = None,
    allow_noise: Annotated[
        bool, typer.Option("--allow-noise", help="Compare times also of runs that may not repeat exactly.")
    ] = False,
) -> None:
    """Compare runs with accepted values. The status is 1 if a run is worse, 2 if a run could not be compared."""
    choices = Choices(limit, metric, allow_noise)
    if command:
        if against is None:
            raise InputError("--against", "", "a file of accepted values for the run after --")
        base_path, runs = against, [one_run(command, choices)]
    else:
        listed, runs = read_gate_file(Path(NAME), choices)
        base_path = listed if against is None else against
    keep_apart([("against", base_path), ("summary", summary)], [("runs", Path(NAME))])
    if update:
        _update(context, runs, base_path, summary, is_one=bool(command))
    base = read_base(base_path)
    planned = [_plan(context, run, base) for run in runs]
    with _Summary(summary) as written:
        judgements = _simulate(planned, base)
        written.keep(markdown(runs, judgements, base))
    raise typer.Exit(exit_status(judgements))


def _update(context: typer.Context, runs: list[GateRun], path: Path, summary: Path | None, *, is_one: bool) -> NoReturn:
    """Writes the values of now, if each run has some."""
    if summary is not None:
        raise InputError("summary", summary, "no summary with --update, which compares nothing")
    planned = [_plan(context, run, None) for run in runs]
    with OutFile("against", path, IS_OURS) as file:
        if is_one and path.is_file() and path.stat().st_size:
            others = [name for name in _names(path) if name != runs[0].name]
            if others:
                raise InputError("against", path, f"a file of one run: this one has {', '.join(others)}")
        judgements = _simulate(planned, None)
        failed = [judgement for judgement in judgements if judgement.problem]
        for judgement in failed:
            say(f"gate: {escape_line(judgement.name)}: {judgement.problem}")
        if failed:
            say(f"gate: {printable(path)} is as it was, because not every run has values")
            raise typer.Exit(NOT_COMPARED)
        accepted = {judgement.name: judgement.accepted for judgement in judgements if judgement.accepted is not None}
        write_base(file, accepted)
    for name, one in accepted.items():
        values = ", ".join(f"{metric} {METRICS[metric].shown(value)}" for metric, value in one.values.items())
        say(f"gate: accepted {escape_line(name)}: {values}")
    raise typer.Exit(0)


def _names(path: Path) -> list[str]:
    try:
        return list(read_base(path).runs)
    except InputError:  # written by another version, which is replaced
        return []


class _Summary:
    """Standard output, and a file if one is asked for, whose place is checked before the runs."""

    def __init__(self, path: Path | None) -> None:
        self._file = None if path is None else OutFile("summary", path, begins_with(HEADING.encode()))

    def __enter__(self) -> _Summary:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def keep(self, text: str) -> None:
        sys.stdout.write(text)
        if self._file is not None:
            self._file.write(text.encode(errors="backslashreplace"))
            self._file.keep()


def _plan(context: typer.Context, run: GateRun, base: Base | None) -> _Planned:
    """Reads a run's command line and compares what it asks for with the base, before anything runs."""
    if base is not None:
        base.require(run.name, run.metrics)
    root = context.find_root()
    command: Any = root.command.get_command(root, run.words[0])  # type: ignore[attr-defined]
    try:
        child = command.make_context(run.words[0], list(run.words[1:]), parent=root)
    except _USAGE_ERROR as error:
        reason = error.format_message()  # type: ignore[attr-defined]
        raise InputError(run.name, " ".join(run.words), f"options of apenet {run.words[0]} ({reason})") from error
    given: Mapping[str, Any] = child.params
    for key, flag in (("out", "--out"), ("as_json", "--json")):
        if given.get(key):
            raise InputError(run.name, " ".join(run.words), f"a run without {flag}: the gate reads its result itself")
    machine = read_machine(given["machine"], given["settings"] or (), given["faults"] or (), given["rail"])
    planned = _Planned(run, command, child, request_of(run, given), (machine.name, parameters_of(machine)))
    if base is not None:
        base.require_equal(run.name, "request", planned.request)
        base.require_equal(run.name, "parameters", planned.machine[1])
    return planned


def _simulate(planned: list[_Planned], base: Base | None) -> list[Judgement]:
    """Runs all, one after another; one that cannot run does not keep the others from it."""
    judgements = []
    for one in planned:
        say(f"gate: {escape_line(one.run.name)}: {escape_line(' '.join(one.run.words))}")
        with temporary_folder() as locked:
            folder = locked / "run"
            one.context.params["out"] = folder
            try:
                with programs_on_errors(), one.context:
                    one.command.invoke(one.context)
            except typer.Exit:
                pass
            except ApenetError as error:
                judgements.append(Judgement(one.run.name, problem=str(error)))
                continue
            judgements.append(judge(one.run, base, one.request, one.machine, folder))
    return judgements
