"""apenet sweep: a command over many machines and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from apenet.base.errors import InputError, Interrupted
from apenet.base.infiles import printable
from apenet.base.outfiles import keep_apart
from apenet.cli.captured import USAGE_ERROR, prepare, simulate
from apenet.cli.common import JsonOption, MeasurementReportOption, messages, path_of, print_json, progress_bar
from apenet.cli.measured import MeasurementPage
from apenet.cli.study import print_study
from apenet.study.axes import parse_axis, parse_interval
from apenet.study.executors import EXPECTED, LOCAL, Workers, workers
from apenet.study.plan import COMMANDS, ENDS, Draws, Plan
from apenet.study.study import State, Study
from apenet.study.sweep import Simulate, SweepResult
from apenet.study.sweep import sweep as run_sweep
from apenet.study.sweep_file import Written, read_sweep_file

DEFAULT_STUDY = Path("study.sqlite")
_FAILED = 1
_MOST_REASONS = 5


CommandArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="FILE.toml | -- COMMAND...", help="A sweep in a file, or run, bench, traffic or replay."),
]
MachinesOption = Annotated[
    str | None, typer.Option("--machine", "-m", metavar="M,...", help="Machines; by default that of the command.")
]
GridOption = Annotated[
    list[str] | None,
    typer.Option(
        "--grid",
        metavar="KEY=VALUES",
        help="Vary a key of the machine, or an option of the command: 100:133:11 (from, to, how many), a,b,c or "
        "[...]; repeatable.",
    ),
]
RandomOption = Annotated[int | None, typer.Option("--random", metavar="N", help="N machines drawn at random.")]
LatinOption = Annotated[int | None, typer.Option("--latin", metavar="N", help="As a Latin hypercube.")]
SobolOption = Annotated[int | None, typer.Option("--sobol", metavar="N", help="As a Sobol' sequence.")]
VaryOption = Annotated[
    list[str] | None,
    typer.Option(
        "--vary",
        metavar="KEY=LOW:HIGH",
        help="Draw this number; by default all assumed numbers are drawn from their plausible ranges; repeatable.",
    ),
]
StudyOption = Annotated[
    Path | None,
    typer.Option(
        "--study",
        metavar="FILE",
        parser=path_of("--study", "a file"),
        help=f"The file of results; points that it has are not computed again. By default {DEFAULT_STUDY}.",
    ),
]
WorkersOption = Annotated[
    int | None, typer.Option("--workers", metavar="N", help="Processes, or jobs of a queue; by default one a core.")
]
OnOption = Annotated[str, typer.Option("--on", metavar="WHERE", help=f"Where the workers are: {EXPECTED}.")]


def sweep(
    context: typer.Context,
    arguments: CommandArgument = None,
    machine: MachinesOption = None,
    grid: GridOption = None,
    random: RandomOption = None,
    latin: LatinOption = None,
    sobol: SobolOption = None,
    ends: Annotated[
        bool, typer.Option("--ends", help="Each number at the two ends of its range, one at a time.")
    ] = False,
    vary: VaryOption = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the draws.")] = 1,
    study: StudyOption = None,
    count: WorkersOption = None,
    on: OnOption = LOCAL,
    report: MeasurementReportOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a command for many machines, settings and draws, and keep the results in one file."""
    methods = {"random": random, "latin": latin, "sobol": sobol, ENDS: 0 if ends else None}
    written = written_of(arguments or [], machine, grid or [], methods, vary or [], seed)
    plan = plan_of(written)
    file = study or written.study or DEFAULT_STUDY
    check_options(context.find_root().command, plan)
    if report is not None:
        keep_apart([("report", report)], [("study", file)])
    with MeasurementPage(report) as shown:
        result = _run(plan, file, workers(on, count, prepare), partial(simulate, context.obj))
        with Study(file) as kept:
            rows = list(kept.rows())
            if as_json:
                print_json(rows)
            else:
                print_study(kept, rows)
            _say_failures(kept, result, file)
            if rows:
                shown.keep(rows, command=f"apenet sweep: {' '.join(kept.command)}", axes=kept.axis_names)
    raise typer.Exit(_FAILED if result.refused or result.failed else 0)


def written_of(
    words: Sequence[str],
    machine: str | None,
    grid: Sequence[str],
    methods: Mapping[str, int | None],
    vary: Sequence[str],
    seed: int,
) -> Written:
    """What the file says that is the only word, or else the options and the command."""
    drawn = Draws.chosen(methods, [parse_interval("--vary", one) for one in vary], seed)
    if len(words) == 1 and words[0].endswith(".toml"):
        given = [name for name, value in (("--machine", machine), ("--grid", grid), ("--vary", vary)) if value]
        if given or drawn is not None:
            raise InputError(given[0] if given else "--random", words[0], "no such option beside a file, which says it")
        return read_sweep_file(Path(words[0]))
    axes = tuple(parse_axis("--grid", one) for one in grid)
    return Written(tuple(words), _listed(machine), None, axes, drawn)


def _listed(machine: str | None) -> tuple[str, ...]:
    return () if machine is None else tuple(part.strip() for part in machine.split(","))


def plan_of(written: Written) -> Plan:
    """The command's own machine is taken if the sweep names none."""
    command, own = _without_machine(list(written.command))
    if own is not None and written.machines:
        raise InputError("--machine", own, "machines of the sweep, or one of the command")
    machines = written.machines or ((own,) if own is not None else ("ape16",))
    if len(set(machines)) < len(machines):
        raise InputError("--machine", ",".join(machines), "each machine once")
    return Plan(tuple(command), machines, written.axes, written.draws)


def _without_machine(command: list[str]) -> tuple[list[str], str | None]:
    end = command.index("--") if "--" in command else len(command)
    for place, word in enumerate(command[:end]):
        flag, equals, value = word.partition("=")
        if word in ("-m", "--machine") and place + 1 < end:
            return [*command[:place], *command[place + 2 :]], command[place + 1]
        if flag == "--machine" and equals:
            return [*command[:place], *command[place + 1 :]], value
    return command, None


def check_options(parser: Any, plan: Plan) -> None:  # noqa: ANN401 (what typer has made)
    """Parses the command with each value of each option, so that a wrong one is found before the first run."""
    root = parser.make_context("apenet", [], resilient_parsing=True)
    for arguments in plan.trials():
        command = parser
        parent, words = root, list(arguments)
        try:
            for word in words[: COMMANDS[words[0]]]:
                command = command.get_command(parent, word)
                words = words[1:]
                if words is not None and hasattr(command, "get_command"):
                    parent = command.make_context(word, [], parent=parent, resilient_parsing=True)
            command.make_context(arguments[0], words, parent=parent)
        except USAGE_ERROR as error:
            reason = error.format_message()  # type: ignore[attr-defined]
            raise InputError(
                "command", " ".join(plan.command), f"options of apenet {arguments[0]} ({reason})"
            ) from error


def _run(plan: Plan, file: Path, chosen: Workers, simulate_one: Simulate) -> SweepResult:
    with progress_bar(f"{' '.join(plan.command)}: {plan.count} points", plan.count) as progress:
        task = progress.task_ids[0]
        try:
            say = partial(progress.console.print, markup=False)
            return run_sweep(plan, file, chosen, simulate_one, lambda done: progress.update(task, completed=done), say)
        except (Interrupted, KeyboardInterrupt):
            messages().print(
                f"{printable(file)} has the points that are done; the same command computes the others", markup=False
            )
            raise


def _say_failures(kept: Study, result: SweepResult, file: Path) -> None:
    say = messages().print
    for state, number in ((State.REFUSED, result.refused), (State.FAILED, result.failed)):
        if not number:
            continue
        say(f"{number} of {result.points} points {state}:", markup=False)
        for axes, reason in kept.reasons(state, _MOST_REASONS):
            say(f"  {axes}: {reason}", markup=False)
        if number > _MOST_REASONS:
            say(
                f"  and {number - _MOST_REASONS} more (apenet study show --state {state} {printable(file)})",
                markup=False,
            )
