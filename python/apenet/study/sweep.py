"""Runs the points of a plan on an executor, and keeps their results in a study."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from apenet import _core
from apenet.base.errors import ApenetError
from apenet.study.executors import Workers
from apenet.study.plan import InputFile, Plan
from apenet.study.study import Outcome, State, SweptStudy

Simulate = Callable[[tuple[str, ...]], Outcome]
"""Runs a command line of `apenet`, in a process of a worker."""

MOST_TRIES = 3
_QUEUED_PER_WORKER = 4
_PATIENCE_S = 10
"""After so long without a first point the user learns that no worker is there. It changes no result."""


class SweepError(ApenetError):
    """The sweep could not go on. What it has computed is in the study."""


@dataclass(frozen=True)
class SweepResult:
    """The end of a sweep."""

    points: int
    known: int
    """Points that the study had already."""
    done: int
    refused: int
    failed: int


def sweep(
    plan: Plan,
    study: Path,
    workers: Workers,
    simulate: Simulate,
    progress: Callable[[int], None] = lambda _done: None,
    say: Callable[[str], None] = lambda _text: None,
) -> SweepResult:
    """Computes the points that the study does not have, and returns how many there are of each state.

    `simulate` is a function of a module, which each worker imports. `progress` gets the number of points that are
    done, `say` gets why none is computed for long.

    Raises InputError for a study that does not fit the plan, HostError for workers that cannot be had, NotWrittenError
    if the study cannot be written, and SweepError if the program or an input changes meanwhile.
    """
    with SweptStudy(study, plan, _core.version) as kept:
        wanted = kept.add(plan.points())
        done = plan.count - len(wanted)
        progress(done)
        if wanted:
            with workers:
                Filling(kept, plan, simulate, workers, lambda more: progress(done + more), say).run(wanted)
                workers.stop()
        counts = kept.counts()
        return SweepResult(plan.count, done, counts[State.DONE], counts[State.REFUSED], counts[State.FAILED])


@dataclass
class _Try:
    number: int
    arguments: tuple[str, ...]
    tries: int = 1


class Filling:
    """Computes points of an open study on workers, which its user has entered and closes."""

    def __init__(
        self,
        study: SweptStudy,
        plan: Plan,
        simulate: Simulate,
        workers: Workers,
        progress: Callable[[int], None],
        say: Callable[[str], None],
    ) -> None:
        self._study = study
        self._inputs = plan.inputs
        self._simulate = simulate
        self._workers = workers
        self._executor: Executor | None = None
        self._progress = progress
        self._say = say
        self._may_lack_workers = True
        self._done = 0
        self._again: deque[_Try] = deque()

    def run(self, wanted: Sequence[int]) -> None:
        """Until each of these points has an outcome. The workers stay for the next ones."""
        waiting = deque(wanted)
        while waiting or self._again:
            if self._executor is None:
                self._executor = self._workers.start()
            if self._feed(self._executor, waiting, self._workers.count * _QUEUED_PER_WORKER):
                self._workers.discard()
                self._executor = None

    def _feed(self, executor: Executor, waiting: deque[int], most: int) -> bool:
        """Until all is done, or the executor has lost a worker and takes no more: returns True then."""
        running: dict[Future[Outcome], _Try] = {}
        is_broken = False
        while running or (not is_broken and (waiting or self._again)):
            while not is_broken and self._may_submit(running, waiting, most):
                is_broken = not self._submit(executor, waiting, running)
            patience_s = _PATIENCE_S if self._may_lack_workers else None
            ended, _ = wait(running, timeout=patience_s, return_when=FIRST_COMPLETED)
            self._note_workers(found_one=bool(ended))
            for future in ended:
                is_broken = not self._take(future, running.pop(future)) or is_broken
            self._study.commit()
            self._progress(self._done)
        return is_broken

    def _note_workers(self, *, found_one: bool) -> None:
        if found_one or not self._may_lack_workers:
            self._may_lack_workers = False
        elif reason := self._workers.why_idle():
            self._may_lack_workers = False
            self._say(reason)

    def _may_submit(self, running: dict[Future[Outcome], _Try], waiting: deque[int], most: int) -> bool:
        """A point whose worker has died runs alone, so that no other is suspected if it kills another worker."""
        if any(one.tries > 1 for one in running.values()):
            return False
        return not running if self._again else bool(waiting) and len(running) < most

    def _submit(self, executor: Executor, waiting: deque[int], running: dict[Future[Outcome], _Try]) -> bool:
        one = self._again.popleft() if self._again else self._next(waiting)
        try:
            running[executor.submit(simulated, self._simulate, one.arguments, self._inputs)] = one
        except BrokenProcessPool:
            self._again.appendleft(one)
            return False
        return True

    def _next(self, waiting: deque[int]) -> _Try:
        number = waiting.popleft()
        return _Try(number, self._study.arguments(number))

    def _take(self, future: Future[Outcome], one: _Try) -> bool:
        """Keeps an outcome. Returns False if a worker has died, whose points are tried again."""
        try:
            outcome = future.result()
        except InputChangedError as error:
            self._study.commit()
            raise SweepError(f"{error}: a study is of one program; the points that are done are kept") from error
        except Exception as error:
            if one.tries < MOST_TRIES:
                self._again.append(_Try(one.number, one.arguments, one.tries + 1))
                return not isinstance(error, BrokenProcessPool)
            outcome = Outcome(State.FAILED, f"its worker ended {MOST_TRIES} times: {type(error).__name__}: {error}")
        self._study.keep(one.number, outcome)
        self._done += 1
        return True


class InputChangedError(Exception):
    """A file that decides the results is not what it was when the sweep began."""


def simulated(simulate: Simulate, arguments: tuple[str, ...], inputs: tuple[InputFile, ...]) -> Outcome:
    """A worker's task. Raises InputChangedError."""
    for one in inputs:
        if not one.is_unchanged():
            raise InputChangedError(f"{one.path} has changed")
    outcome = simulate(arguments)
    for one in inputs:
        if not one.is_unchanged():
            raise InputChangedError(f"{one.path} has changed")
    return outcome
