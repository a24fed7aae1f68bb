"""Searches the best setting of a sweep's machines and axes within a budget, on the sweep's workers and study."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from apenet import _core
from apenet.base.errors import InputError, MachineError
from apenet.base.gather import gather_warnings
from apenet.machine import machine as read_machine
from apenet.study.answer import Found, OptimiseResult, Setting, is_open, ranked
from apenet.study.executors import Workers
from apenet.study.parts import PRICE, Budget
from apenet.study.plan import DRAW, ENDS, MACHINE, Plan
from apenet.study.rows import columns, default_value, is_number, row_values
from apenet.study.study import Outcome, State, SweptStudy
from apenet.study.sweep import Filling, Simulate, SweepError

VALUE_OPTION, EVALUATIONS_OPTION = "--value", "--evaluations"
DEFAULT_EVALUATIONS = 200
MOST_EVALUATIONS = 1_000_000

_DRAWN_AT_A_TIME = 4
_OTHERS_SHOWN = 5
_GENERATIONS = 6  # a population is so small that the evaluations are enough for this many
_LEAST_POPULATION = 5
_STALE_GENERATIONS = 20
_BEYOND = 1e30  # greater than any value
_IMPOSSIBLE = 1e40


@dataclass(frozen=True)
class Goal:
    """What a search makes small, or large, and what it may spend."""

    budget: Budget
    value: str | None = None
    """A column of the results; None: the time."""
    maximise: bool = False
    evaluations: int = DEFAULT_EVALUATIONS
    """The most settings that are simulated with the machines as they are."""
    seed: int = 1

    def check(self, plan: Plan) -> None:
        """Raises InputError for what cannot be searched."""
        if not 1 <= self.evaluations <= MOST_EVALUATIONS:
            raise InputError(EVALUATIONS_OPTION, self.evaluations, f"a number from 1 to {MOST_EVALUATIONS}")
        if plan.draws is not None and plan.draws.method == ENDS:
            raise InputError("sample.method", ENDS, "random, latin or sobol: a search compares whole draws")
        self.budget.check(plan.machines)


def optimise(
    plan: Plan,
    goal: Goal,
    study: Path,
    workers: Workers,
    simulate: Simulate,
    progress: Callable[[int], None] = lambda _done: None,
    say: Callable[[str], None] = lambda _text: None,
) -> OptimiseResult:
    """The best setting of `plan`, and what cannot be told from it. `simulate`, `progress` and `say` are as for `sweep`.

    Simulates each setting within the limits if the evaluations are enough, and else those that differential evolution
    (Storn and Price 1997, by SciPy) asks for, and then single changes of the best one. With draws, the best settings of
    each machine are simulated again with each draw, in steps, until all of a step can be told from the best one.

    Raises what `sweep` raises, InputError for a goal that the results do not have, and SweepError if no setting is
    within the limits and gives a result.
    """
    goal.check(plan)
    search = _Search(plan, goal)
    search.check_parts()
    with SweptStudy(study, plan, _core.version) as kept, workers:
        result = search.run(kept, Filling(kept, plan, simulate, workers, progress, say))
        workers.stop()
        return result


class _Search:
    def __init__(self, plan: Plan, goal: Goal) -> None:
        self._plan = plan
        self._goal = goal
        self._sign = -1 if goal.maximise else 1
        self._axes: list[Sequence[str]] = [plan.machines, *(axis.values for axis in plan.axes)]
        self._parts: dict[tuple[str, ...], dict[str, float]] = {}
        self._value = goal.value
        self._found: dict[Setting, Found] = {}
        self._lost: dict[Setting, State] = {}  # settings without a result
        self._beyond: dict[Setting, float] = {}  # settings beyond the limits, and by how much
        self._asked: set[Setting] = set()  # that the search wanted to have simulated, in the study or not

    def check_parts(self) -> None:
        """Raises InputError for a machine whose parts cannot be counted."""
        for machine in self._plan.machines:
            self._amounts(Setting(machine, tuple(axis.values[0] for axis in self._plan.axes)))

    def run(self, study: SweptStudy, filling: Filling) -> OptimiseResult:
        self._study, self._filling = study, filling
        self._take_known()
        if self._count <= self._goal.evaluations:
            self._evaluate(self._setting(words) for words in itertools.product(*self._axes))
        else:
            self._evolve()
            self._climb()
        if not self._found:
            raise SweepError(self._why_nothing())
        drawn = self._draw() if self._plan.draws is not None else 0
        order = self._order(self._found)
        names = [axis.name for axis in self._plan.axes]
        shown = ranked(order, names, maximise=self._goal.maximise, others=_OTHERS_SHOWN)
        kept = {(one.machine, *one.values.values()) for one in shown}
        lost = list(self._lost.values())
        evaluated = len(self._found) + len(lost)
        return OptimiseResult(
            command=self._plan.command,
            value=self._value or "",
            maximise=self._goal.maximise,
            settings=self._count,
            evaluated=evaluated,
            beyond=len(self._beyond),
            refused=lost.count(State.REFUSED),
            failed=lost.count(State.FAILED),
            is_complete=evaluated + len(self._beyond) == self._count,
            is_local=all(self._is_known(one) for one in self._neighbours(order[0].setting)),
            drawn=drawn,
            ranked=shown,
            warnings=gather_warnings(
                one.warnings for one in order if (one.setting.machine, *one.setting.values) in kept
            ),
        )

    @property
    def _count(self) -> int:
        return math.prod(map(len, self._axes))

    @staticmethod
    def _setting(words: Sequence[str]) -> Setting:
        return Setting(words[0], tuple(words[1:]))

    def _is_known(self, one: Setting) -> bool:
        return one in self._found or one in self._lost or one in self._beyond

    def _order(self, settings: Iterable[Setting]) -> list[Found]:
        """The best first; equal ones by price, and then in the order of the plan."""
        places = [{value: place for place, value in enumerate(axis)} for axis in self._axes]

        def key(one: Found) -> tuple[float, float, list[int]]:
            words = (one.setting.machine, *one.setting.values)
            at = [place[word] for place, word in zip(places, words, strict=True)]
            return self._sign * one.value, one.amounts.get(PRICE, 0.0), at

        return sorted((self._found[one] for one in settings if one in self._found), key=key)

    def _take_known(self) -> None:
        """Results that the study has already count too, if they are of this program and machine."""
        names = [MACHINE, *(axis.name for axis in self._plan.axes)]
        known = [set(axis) for axis in self._axes]
        settings = []
        for axes in self._study.done_axes():
            words = [axes[name] for name in names]
            if axes.get(DRAW, "0") == "0" and all(word in some for word, some in zip(words, known, strict=True)):
                settings.append(self._setting(words))
        self._simulate([one for one in settings if not self._leave(one)])

    def _evaluate(self, settings: Iterable[Setting]) -> None:
        """Those that are within the limits, as many as the evaluations leave."""
        new = []
        for one in dict.fromkeys(settings):
            if one in self._asked or self._leave(one):
                continue
            if len(self._asked) == self._goal.evaluations:
                break
            self._asked.add(one)
            if not self._is_known(one):
                new.append(one)
        self._simulate(new)

    def _leave(self, one: Setting) -> bool:
        """Whether a setting is beyond the limits, or there is no such machine."""
        if one in self._beyond:
            return True
        try:
            amounts = self._amounts(one)
        except MachineError:
            self._lost[one] = State.REFUSED
            return True
        excess = self._goal.budget.excess(amounts)
        if excess > 0:
            self._beyond[one] = excess
        return excess > 0

    def _amounts(self, one: Setting) -> dict[str, float]:
        if not self._goal.budget.is_needed:
            return {}
        chosen = zip(self._plan.axes, one.values, strict=True)
        settings = tuple(f"{axis.name}={value}" for axis, value in chosen if not axis.is_option)
        key = (one.machine, *settings)
        if key not in self._parts:
            self._parts[key] = self._goal.budget.amounts(one.machine, read_machine(one.machine, settings))
        return self._parts[key]

    def _simulate(self, settings: Sequence[Setting]) -> None:
        """Before it is known which value there is, one setting alone: the others wait for what the user may mistake."""
        while settings:
            now, settings = (settings, ()) if self._found else (settings[:1], settings[1:])
            points = [self._plan.point(one.machine, one.values) for one in now]
            self._filling.run(self._study.add(points))
            for one, point in zip(now, points, strict=True):
                self._take(one, self._study.outcome(point))

    def _take(self, one: Setting, outcome: Outcome) -> None:
        if outcome.state is not State.DONE:
            self._lost[one] = outcome.state
            return
        result = json.loads(outcome.result)
        self._found[one] = Found(one, self._number(result), self._amounts(one), {}, tuple(result.get("warnings", ())))

    def _number(self, result: dict[str, Any]) -> float:
        """The value in a result. Raises InputError if there is none, or several."""
        rows = list(row_values({}, result))
        name = self._value or default_value(rows)
        numbers = {name: [row[name] for row in rows if is_number(row.get(name))] for name in columns(rows)}
        if name is None or not numbers.get(name):
            known = ", ".join(key for key, some in numbers.items() if some)
            raise InputError(VALUE_OPTION, name or "", f"one of {known}")
        self._value = name
        if len(rows) > 1:
            command = " ".join(self._plan.command)
            raise InputError("command", command, f"one that measures one {name}, such as one of its --sizes or --loads")
        return float(numbers[name][0])

    def _neighbours(self, one: Setting) -> Iterator[Setting]:
        """The settings that differ from one on one axis."""
        words = (one.machine, *one.values)
        for place, axis in enumerate(self._axes):
            for word in axis:
                if word != words[place]:
                    yield self._setting((*words[:place], word, *words[place + 1 :]))

    def _evolve(self) -> None:
        """Differential evolution over the places of values on their axes."""
        import numpy as np  # noqa: PLC0415 (slow import)
        from scipy.optimize import Bounds, differential_evolution  # noqa: PLC0415

        free = [place for place, axis in enumerate(self._axes) if len(axis) > 1]
        stale = 0

        def energies(places: Any) -> Any:  # noqa: ANN401 (numpy: a column each)
            nonlocal stale
            columns_of = [[int(number) for number in column] for column in np.rint(places).T]
            settings = []
            for column in columns_of:
                at = dict(zip(free, column, strict=True))
                settings.append(self._setting([axis[at.get(place, 0)] for place, axis in enumerate(self._axes)]))
            before = len(self._asked)
            self._evaluate(settings)
            stale = 0 if len(self._asked) > before else stale + 1
            return np.array([self._energy(one) for one in settings])

        differential_evolution(
            energies,
            Bounds([0] * len(free), [len(self._axes[place]) - 1 for place in free]),
            integrality=[True] * len(free),
            vectorized=True,
            updating="deferred",
            polish=False,
            seed=self._goal.seed,
            popsize=math.ceil(max(_LEAST_POPULATION, self._goal.evaluations // _GENERATIONS) / len(free)),
            maxiter=MOST_EVALUATIONS,
            callback=lambda *_, **__: stale >= _STALE_GENERATIONS or len(self._asked) == self._goal.evaluations,
        )

    def _energy(self, one: Setting) -> float:
        """What is made small; a setting beyond the limits is worse the further it is beyond."""
        if one in self._found:
            return self._sign * self._found[one].value
        return _BEYOND * (1 + self._beyond[one]) if one in self._beyond else _IMPOSSIBLE

    def _climb(self) -> None:
        """Single changes of the best setting, until none is better or the evaluations are used up."""
        best = None
        while order := self._order(self._asked):
            if order[0].setting == best:
                return
            best = order[0].setting
            self._evaluate(self._neighbours(best))

    def _draw(self) -> int:
        """Simulates the best settings of each machine with each draw. Returns the number of settings."""
        drawn: set[Setting] = set()
        best = self._order(self._found)[0].setting
        waiting = {
            machine: [one.setting for one in self._order(self._found) if one.setting.machine == machine]
            for machine in self._plan.machines
        }
        while any(waiting.values()):
            step = {machine: some[:_DRAWN_AT_A_TIME] for machine, some in waiting.items() if some}
            self._take_draws([one for some in step.values() for one in some])
            for machine, some in step.items():
                drawn.update(some)
                is_any_open = any(
                    is_open(self._found[one], self._found[best], maximise=self._goal.maximise) for one in some
                )
                waiting[machine] = waiting[machine][_DRAWN_AT_A_TIME:] if is_any_open else []
        return len(drawn)

    def _take_draws(self, settings: Sequence[Setting]) -> None:
        draws = self._plan.draws
        if draws is None:
            return
        points = {
            (one, draw): self._plan.point(one.machine, one.values, draw)
            for one in settings
            for draw in range(1, draws.samples + 1)
        }
        self._filling.run(self._study.add(points.values()))
        for one in settings:
            outcomes = {draw: self._study.outcome(points[one, draw]) for draw in range(1, draws.samples + 1)}
            drawn = {
                draw: self._number(json.loads(outcome.result))
                for draw, outcome in outcomes.items()
                if outcome.state is State.DONE
            }
            self._found[one] = replace(self._found[one], drawn=drawn)

    def _why_nothing(self) -> str:
        counts = [
            (len(self._beyond), "beyond the limits"),
            *((list(self._lost.values()).count(state), str(state)) for state in (State.REFUSED, State.FAILED)),
        ]
        met = ", ".join(f"{number} {what}" for number, what in counts if number)
        return f"no setting gives a result: of {self._count}, {met}"
