"""A study: the points of a sweep and their results, in one SQLite file."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from apenet.base.errors import InputError, NotWrittenError
from apenet.base.frames import pandas_for
from apenet.study.plan import DRAW, FORMAT, MACHINE, Plan, Point
from apenet.study.rows import Row, drawn_numbers, row_values

OPTION = "--study"
_MAGIC = b"SQLite format 3\0"
_APPLICATION = 0x41504554  # PRAGMA application_id: "APET"
_SCHEMA = """
CREATE TABLE study (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE point (
  number INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  arguments TEXT NOT NULL,
  axes TEXT NOT NULL UNIQUE,
  state TEXT NOT NULL DEFAULT 'planned',
  reason TEXT NOT NULL DEFAULT '',
  result TEXT,
  wall_s REAL
);
"""
_LOCKED_BYTE = 2**62
_NEW_POINTS = 10_000


class State(StrEnum):
    """The state of a point."""

    PLANNED = "planned"
    DONE = "done"
    REFUSED = "refused"
    """There can be no such simulation: a bad value, or values that do not fit each other."""
    FAILED = "failed"
    """It failed, and is tried again by the next sweep."""


@dataclass(frozen=True)
class Outcome:
    """What one simulation gave."""

    state: State
    reason: str = ""
    result: str = ""
    """JSON, as the command prints it."""
    wall_s: float = 0.0


class Study:
    """An open study. Reading needs nothing else; a sweep opens it for writing, one at a time.

    Raises InputError for a file that is no study, or one of another format.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise InputError("study", path, "the file of a study, as apenet sweep writes it")
        try:
            self._database = sqlite3.connect(f"file:{_quoted(self.path)}?mode=rw", uri=True, timeout=30)
            self._check()
        except sqlite3.Error as error:
            raise InputError("study", path, f"the file of a study, as apenet sweep writes it: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the use of the file."""
        self._database.close()

    def _check(self) -> None:
        with self.path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise InputError("study", self.path, "the file of a study, as apenet sweep writes it")
        (application,) = self._database.execute("PRAGMA application_id").fetchone()
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if application != _APPLICATION:
            raise InputError("study", self.path, "the file of a study: this is another SQLite database")
        if version != FORMAT:
            raise InputError("study", self.path, f"a study of format {FORMAT}, not of format {version}")

    @property
    def command(self) -> tuple[str, ...]:
        """The command that was swept."""
        return tuple(self._parsed(self._value("command")))

    @property
    def axis_names(self) -> tuple[str, ...]:
        """What was varied."""
        return tuple(self._parsed(self._value("axes")))

    @property
    def version(self) -> str:
        """That of the package which began the study."""
        return self._value("version")

    def _read(self, statement: str, values: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows of a SELECT. Raises InputError for a damaged file."""
        try:
            yield from self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise self._damaged(error) from error

    def _parsed(self, text: str) -> Any:  # noqa: ANN401 (whatever stands there)
        try:
            return json.loads(text)
        except (ValueError, TypeError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> InputError:
        return InputError("study", self.path, f"the file of a study that is whole: {error}")

    def _value(self, name: str) -> str:
        found = next(self._read("SELECT value FROM study WHERE name = ?", (name,)), None)
        if found is None:
            raise InputError("study", self.path, f"the file of a study: {name} is missing in it")
        return str(found[0])

    def counts(self) -> dict[State, int]:
        """How many points are in each state."""
        found = dict(self._read("SELECT state, count(*) FROM point GROUP BY state"))
        return {state: found.get(str(state), 0) for state in State}

    def reasons(self, state: State, most: int) -> list[tuple[str, str]]:
        """The first points in a state: values of the axes, and why."""
        rows = self._read("SELECT axes, reason FROM point WHERE state = ? ORDER BY number LIMIT ?", (str(state), most))
        return [(shown_axes(self._parsed(axes)), reason) for axes, reason in rows]

    def rows(self) -> Iterator[Row]:
        """The results, in the order of the plan: one row a point, or one for each size or load that it measured."""
        for axes, result in self._read("SELECT axes, result FROM point WHERE state = 'done' ORDER BY number"):
            yield from row_values(self._parsed(axes), self._parsed(result))

    @property
    def draw_method(self) -> str | None:
        """How numbers were drawn, one of `METHODS` or `ENDS`; None if none were."""
        draws = self._parsed(self._value("draws"))
        return None if draws is None else str(draws["method"])

    def drawn_values(self) -> dict[str, dict[int, dict[str, float]]]:
        """For each machine and draw, the numbers that were drawn."""
        found: dict[str, dict[int, dict[str, float]]] = defaultdict(dict)
        for arguments, axes in self._read("SELECT arguments, axes FROM point ORDER BY number"):
            values = self._parsed(axes)
            if DRAW in values:
                draws = found[values[MACHINE]]
                draws.setdefault(int(values[DRAW]), drawn_numbers(self._parsed(arguments), self.axis_names))
        return found

    def frame(self) -> Any:  # noqa: ANN401 (pandas is not a dependency)
        """The rows as a pandas frame. Raises InputError if pandas is not installed."""
        return pandas_for("frame").DataFrame(list(self.rows()))


class SweptStudy(Study):
    """A study that a sweep fills. It is made if there is none. Raises InputError if another sweep is filling it."""

    def __init__(self, path: Path, plan: Plan, version: str) -> None:
        _check_place(path)
        self._lock = _lock(path)
        try:
            if path.stat().st_size == 0:
                _create(path, plan, version)
            super().__init__(path)
            self._require_same(plan, version)
        except BaseException:
            os.close(self._lock)
            raise

    def close(self) -> None:
        """Ends the use of the file, and lets another sweep have it."""
        super().close()
        os.close(self._lock)

    def _require_same(self, plan: Plan, version: str) -> None:
        other = "or another --study"
        if self.command != plan.command:
            raise InputError(
                OPTION, self.path, f"the study of this command, not of `{' '.join(self.command)}`, {other}"
            )
        if self.axis_names != plan.axis_names:
            raise InputError(
                OPTION,
                self.path,
                f"a study over {', '.join(plan.axis_names)}, {other}: it is over {', '.join(self.axis_names)}",
            )
        if self._value("draws") != _draws(plan):
            raise InputError(OPTION, self.path, f"a study of the same draws, {other}")
        if self.version != version:
            raise InputError(OPTION, self.path, f"a study of apenet {version}, {other}: it is of {self.version}")
        self._require_unchanged(plan)

    def _require_unchanged(self, plan: Plan) -> None:
        """All results are those of one program, and for each machine of one file. A study without results takes any."""
        known = self._parsed(self._value("sources"))
        machines = self._parsed(self._value("machines"))
        changed = [what for what in {**known, **plan.sources} if known.get(what) != plan.sources.get(what)]
        changed += [
            f"machine {name}" for name, digest in plan.machine_digests.items() if machines.get(name, digest) != digest
        ]
        if changed:
            if self.counts()[State.DONE]:
                expected = f"results of this program and machine, or another --study: {changed[0]} has changed since"
                raise InputError(OPTION, self.path, expected)
            self._execute("DELETE FROM point")
            machines = {}
        for name, value in (("sources", plan.sources), ("machines", {**machines, **plan.machine_digests})):
            self._execute("UPDATE study SET value = ? WHERE name = ?", (json.dumps(value), name))
        self.commit()

    def add(self, points: Iterable[Point]) -> tuple[int, ...]:
        """Adds those that are not in it. Returns the numbers of those that are to be computed, in the order given.

        Raises NotWrittenError.
        """
        wanted = []
        for batch in _batches(points):
            for point in batch:
                axes = json.dumps(dict(point.values))
                self._execute(
                    "INSERT OR IGNORE INTO point (key, arguments, axes) VALUES (?, ?, ?)",
                    (point.key, json.dumps(point.arguments), axes),
                )
                number, state = self._database.execute(
                    "SELECT number, state FROM point WHERE axes = ?", (axes,)
                ).fetchone()
                if state in (State.PLANNED, State.FAILED):
                    wanted.append(number)
            self.commit()
        return tuple(wanted)

    def outcome(self, point: Point) -> Outcome:
        """What it has of a point that was added."""
        found = self._database.execute(
            "SELECT state, reason, result, wall_s FROM point WHERE key = ?", (point.key,)
        ).fetchone()
        state, reason, result, wall_s = found
        return Outcome(State(state), reason, result or "", wall_s or 0.0)

    def done_axes(self) -> list[dict[str, str]]:
        """The values of the axes of each point that is done."""
        rows = self._database.execute("SELECT axes FROM point WHERE state = 'done' ORDER BY number").fetchall()
        return [json.loads(axes) for (axes,) in rows]

    def arguments(self, number: int) -> tuple[str, ...]:
        """The command line of a point."""
        (found,) = self._database.execute("SELECT arguments FROM point WHERE number = ?", (number,)).fetchone()
        return tuple(json.loads(found))

    def keep(self, number: int, outcome: Outcome) -> None:
        """Stores a result, which `commit` makes permanent. Raises NotWrittenError."""
        self._execute(
            "UPDATE point SET state = ?, reason = ?, result = ?, wall_s = ? WHERE number = ?",
            (str(outcome.state), outcome.reason, outcome.result or None, outcome.wall_s, number),
        )

    def commit(self) -> None:
        """Raises NotWrittenError."""
        with _written(self.path):
            self._database.commit()

    def _execute(self, statement: str, values: Sequence[object] = ()) -> None:
        with _written(self.path):
            self._database.execute(statement, values)


@contextmanager
def _written(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise NotWrittenError(OPTION, path, str(error)) from error


def _create(path: Path, plan: Plan, version: str) -> None:
    with _written(path):
        database = sqlite3.connect(path)
        try:
            database.executescript(
                f"BEGIN; PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {FORMAT}; {_SCHEMA} COMMIT;"
            )
            entries = {
                "command": json.dumps(plan.command),
                "axes": json.dumps(plan.axis_names),
                "draws": _draws(plan),
                "machines": json.dumps(plan.machine_digests),
                "sources": json.dumps(plan.sources),
                "version": version,
            }
            database.executemany("INSERT INTO study VALUES (?, ?)", sorted(entries.items()))
            database.commit()
        finally:
            database.close()


def _draws(plan: Plan) -> str:
    return json.dumps(None if plan.draws is None else asdict(plan.draws))


def _check_place(path: Path) -> None:
    """Nothing but a study, or an empty file, is written to."""
    if path.is_symlink():
        raise InputError(OPTION, path, "no symbolic link")
    if path.exists() and not path.is_file():
        raise InputError(OPTION, path, "a file")
    if path.exists() and path.stat().st_size:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise InputError(OPTION, path, "a study, or no file: this is a file of another origin")


def _lock(path: Path) -> int:
    """A lock of this open file, which ends with its process, on a byte that SQLite does not use."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise InputError(OPTION, path, f"a file that can be written: {error.strerror}") from error
    request = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, _LOCKED_BYTE, 1, 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, request)
    except OSError as error:
        os.close(descriptor)
        raise InputError(OPTION, path, "a study that no other sweep is filling now") from error
    return descriptor


def _batches(points: Iterable[Point]) -> Iterator[list[Point]]:
    batch: list[Point] = []
    for point in points:
        batch.append(point)
        if len(batch) == _NEW_POINTS:
            yield batch
            batch = []
    yield batch


def _quoted(path: Path) -> str:
    return str(path.absolute()).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def shown_axes(axes: dict[str, str]) -> str:
    """The values of a point, in one line."""
    return " ".join(f"{name}={value}" for name, value in axes.items())
