"""`apenet.optimise`: the search of `apenet optimise`, from Python."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from apenet.study.answer import OptimiseResult
from apenet.study.axes import axis_of, interval_of
from apenet.study.executors import LOCAL
from apenet.study.executors import workers as workers_on
from apenet.study.optimise import DEFAULT_EVALUATIONS, Goal
from apenet.study.optimise import optimise as search
from apenet.study.parts import Budget
from apenet.study.plan import Draws, Plan


def optimise(
    command: str | Sequence[str],
    machine: str | Iterable[str],
    *,
    grid: Mapping[str, object],
    value: str | None = None,
    maximise: bool = False,
    price: Mapping[str, float] | None = None,
    limit: Mapping[str, float] | None = None,
    evaluations: int = DEFAULT_EVALUATIONS,
    random: int | None = None,
    latin: int | None = None,
    sobol: int | None = None,
    vary: Mapping[str, object] | None = None,
    seed: int = 1,
    study: str | Path = "study.sqlite",
    on: str = LOCAL,
    workers: int | None = None,
) -> OptimiseResult:
    """The best setting of machines and axes within a budget, and what cannot be told from it.

    `command` is one of `run`, `bench`, `traffic` or `replay` with its options, as a text or as words. `machine` names
    one machine or several, by name or file. The other arguments are the options of `apenet optimise`: `grid` has for
    each key its values, `vary` for each key [LOW, HIGH], `price` "PART" or "MACHINE:PART"; one of `random`, `latin` and
    `sobol` has the number of draws. `to_json()` of the result is what `apenet optimise --json` prints.

    Local workers are new processes, which import the program that calls this: a script calls it below
    `if __name__ == "__main__":`.

    Raises InputError and MachineError for a wrong value, and SweepError if no setting gives a result.
    """
    from apenet.cli import command as parser  # noqa: PLC0415 (slow import)
    from apenet.cli.captured import prepare, simulate  # noqa: PLC0415
    from apenet.cli.sweep import check_options  # noqa: PLC0415

    words = shlex.split(command) if isinstance(command, str) else list(command)
    machines = (machine,) if isinstance(machine, str) else tuple(machine)
    axes = tuple(axis_of(f"grid.{key}", key, values) for key, values in grid.items())
    intervals = tuple(interval_of(f"vary.{key}", key, bounds) for key, bounds in (vary or {}).items())
    drawn = Draws.chosen({"random": random, "latin": latin, "sobol": sobol}, intervals, seed, option="")
    plan = Plan(tuple(words), machines, axes, drawn)
    goal = Goal(Budget.of(price or {}, limit or {}), value, maximise, evaluations, seed)
    goal.check(plan)
    check_options(parser(), plan)
    return search(plan, goal, Path(study), workers_on(on, workers, prepare), partial(simulate, parser))
