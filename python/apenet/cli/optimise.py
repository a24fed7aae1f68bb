"""apenet optimise: the best setting of machines and options within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from apenet.base.errors import InputError, Interrupted
from apenet.base.infiles import printable
from apenet.cli.captured import prepare, simulate
from apenet.cli.common import JsonOption, messages, output, print_json, print_tables, progress_bar
from apenet.cli.study import shown_value
from apenet.cli.sweep import (
    DEFAULT_STUDY,
    CommandArgument,
    GridOption,
    LatinOption,
    MachinesOption,
    OnOption,
    RandomOption,
    SobolOption,
    StudyOption,
    VaryOption,
    WorkersOption,
    check_options,
    plan_of,
    written_of,
)
from apenet.study.answer import OPEN_PERCENT, OptimiseResult, Ranked
from apenet.study.executors import LOCAL, Workers, workers
from apenet.study.optimise import DEFAULT_EVALUATIONS, EVALUATIONS_OPTION, VALUE_OPTION, Goal
from apenet.study.optimise import optimise as search
from apenet.study.parts import BOUNDS, LIMIT_OPTION, PARTS, PRICE_OPTION, Budget
from apenet.study.plan import Plan
from apenet.study.rows import typed, varying
from apenet.study.sweep import Simulate


def optimise(
    context: typer.Context,
    arguments: CommandArgument = None,
    machine: MachinesOption = None,
    grid: GridOption = None,
    value: Annotated[
        str | None,
        typer.Option(VALUE_OPTION, metavar="COLUMN", help="The result to make small; by default the time."),
    ] = None,
    maximise: Annotated[bool, typer.Option("--maximise", help="Make it large.")] = False,
    price: Annotated[
        list[str] | None,
        typer.Option(
            PRICE_OPTION,
            metavar="[M:]PART=AMOUNT",
            help=f"What a {', '.join(PARTS[:-1])} or {PARTS[-1]} costs, on machine M or on all; repeatable.",
        ),
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            LIMIT_OPTION, metavar="NAME=MOST", help=f"The most of {', '.join(BOUNDS[:-1])} or {BOUNDS[-1]}; repeatable."
        ),
    ] = None,
    evaluations: Annotated[
        int, typer.Option(EVALUATIONS_OPTION, metavar="N", help="Simulate at most N settings, without their draws.")
    ] = DEFAULT_EVALUATIONS,
    random: RandomOption = None,
    latin: LatinOption = None,
    sobol: SobolOption = None,
    vary: VaryOption = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the search and of the draws.")] = 1,
    study: StudyOption = None,
    count: WorkersOption = None,
    on: OnOption = LOCAL,
    as_json: JsonOption = False,
) -> None:
    """Find the best setting of machines and options within a budget, and what cannot be told from it."""
    methods = {"random": random, "latin": latin, "sobol": sobol}
    written = written_of(arguments or [], machine, grid or [], methods, vary or [], seed)
    plan = plan_of(written)
    budget = Budget.of(_amounts(PRICE_OPTION, price or []), _amounts(LIMIT_OPTION, limit or []))
    goal = Goal(budget, value, maximise, evaluations, seed)
    goal.check(plan)
    file = study or written.study or DEFAULT_STUDY
    check_options(context.find_root().command, plan)
    result = _run(plan, goal, file, workers(on, count, prepare), partial(simulate, context.obj))
    if as_json:
        print_json(result.to_json())
    else:
        print_answer(result)


def _amounts(option: str, given: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for one in given:
        key, equals, text = one.rpartition("=")
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        if not equals or not key or number != number:  # noqa: PLR0124 (no number)
            raise InputError(option, one, "a name and a number, such as node=3000")
        if key in found:
            raise InputError(option, one, f"{key} once")
        found[key] = number
    return found


def _run(plan: Plan, goal: Goal, file: Path, chosen: Workers, simulate_one: Simulate) -> OptimiseResult:
    with progress_bar(f"{' '.join(plan.command)}: simulations", None) as progress:
        task = progress.task_ids[0]
        try:
            say = partial(progress.console.print, markup=False)
            return search(
                plan, goal, file, chosen, simulate_one, lambda done: progress.update(task, completed=done), say
            )
        except (Interrupted, KeyboardInterrupt):
            messages().print(
                f"{printable(file)} has the points that are done; the same command computes the others", markup=False
            )
            raise


def print_answer(result: OptimiseResult) -> None:
    """The settings in order, and what the search can say of them."""
    say = partial(output().print, markup=False, highlight=False)
    goal = "largest" if result.maximise else "smallest"
    say(f"# apenet {' '.join(result.command)}: {goal} {result.value}; {_coverage(result)}")
    _print_ranked(result)
    say(f"best: {_named(result.best, result)}")
    for sentence in _judgement(result):
        say(sentence)
    for warning in result.warnings:
        say(f"# warning: {warning}")


def _coverage(result: OptimiseResult) -> str:
    counts = [
        (result.evaluated, "evaluated"),
        (result.beyond, "beyond the limits"),
        (result.settings - result.evaluated - result.beyond, "not evaluated"),
        (result.refused, "refused"),
        (result.failed, "failed"),
    ]
    return f"of {result.settings} settings, " + ", ".join(f"{number} {what}" for number, what in counts if number)


def _axes(result: OptimiseResult) -> list[str]:
    rows = [{"machine": one.machine, **one.values} for one in result.ranked]
    return varying(rows, list(rows[0]))


def _named(one: Ranked, result: OptimiseResult) -> str:
    words = {"machine": one.machine, **one.values}
    return ", ".join(f"{name} {words[name]}" for name in _axes(result)) or one.machine


def _print_ranked(result: OptimiseResult) -> None:
    names = _axes(result)
    has_draws = any(one.draws for one in result.ranked)
    table = Table(box=None, pad_edge=False)
    for title in (*names, *result.best.amounts, result.value):
        words = [{"machine": one.machine, **one.values}.get(title, "0") for one in result.ranked]
        is_text = any(isinstance(typed(word), str) for word in words)
        table.add_column(title, justify="left" if is_text else "right")
    for title in ("median", "5 %", "95 %", "draws", "as good (%)") if has_draws else ():
        table.add_column(title, justify="right")
    table.add_column("")
    for one in result.ranked:
        chosen = {"machine": one.machine, **one.values}
        cells = [*(chosen[name] for name in names), *map(shown_value, (*one.amounts.values(), one.value))]
        if has_draws:
            cells += map(shown_value, (one.median, one.low, one.high, one.draws or None, one.as_good_percent))
        table.add_row(*cells, "best" if one is result.best else "open" if one.is_open else "")
    print_tables(table)


def _judgement(result: OptimiseResult) -> list[str]:
    said = []
    if result.open:
        number = len(result.open)
        said.append(f"{number} other setting{'s' * (number > 1)} cannot be told from it (open)")
    elif result.drawn:
        said.append(f"each other one that was drawn is as good in less than {OPEN_PERCENT} % of the draws")
    if result.drawn:
        seldom = 100 * (1 - (OPEN_PERCENT / 100) ** (1 / max(1, result.best.draws)))
        said.append(f"{result.best.draws} draws can miss what happens in less than {seldom:.0f} % of the cases")
    else:
        said.append("nothing is known of what assumed numbers leave open: no draws (--latin, --sobol, --random)")
    if not result.is_complete:
        rest = "none that differs from it in one value is better" if result.is_local else "not even all close to it"
        said.append(f"not all settings were evaluated, {rest}; more with {EVALUATIONS_OPTION}")
    return said
