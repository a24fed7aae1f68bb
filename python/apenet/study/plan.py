"""The points of a sweep: one command line for each combination of values, and for each draw."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from apenet.base.errors import InputError, MachineError
from apenet.machine import Machine
from apenet.machine import machine as read_machine
from apenet.machine.assumptions import METHODS, Assumption, assumptions, drawn_shares
from apenet.machine.build import build_digest
from apenet.machine.quantity import quantities
from apenet.study.axes import Axis, Interval

COMMANDS = {"run": 1, "bench": 2, "traffic": 1, "replay": 1}
"""The commands that can be swept, and how many words name one."""

_CHECKS_NOTHING = ("traffic",)
MACHINE = "machine"
ENDS = "ends"
"""The method that sets each number alone to the two ends of its range."""
DRAW = "draw"
FORMAT = 2
"""The version of the keys and of the study's tables."""

MOST_POINTS = 10_000_000
MOST_DRAWS = 100_000
MOST_INPUT_BYTES = 2**32
_FEW = 64
_BLOCK = 2**20


@dataclass(frozen=True)
class Draws:
    """Numbers drawn from ranges: those of `intervals`, or if there are none all assumed ones, from plausible ranges."""

    method: str
    samples: int = 0
    """None for `ENDS`, which takes each number's two ends, one at a time."""
    seed: int = 1
    intervals: tuple[Interval, ...] = ()

    def __post_init__(self) -> None:
        if self.method not in (*METHODS, ENDS):
            raise InputError("sample.method", self.method, " or ".join((*METHODS, ENDS)))
        if self.method != ENDS and not 1 <= self.samples <= MOST_DRAWS:
            raise InputError(f"--{self.method}", self.samples, f"a number of draws from 1 to {MOST_DRAWS}")

    @classmethod
    def chosen(
        cls, numbers: Mapping[str, int | None], intervals: Sequence[Interval], seed: int, option: str = "--"
    ) -> Draws | None:
        """Those of the one method that has a number of draws; None if none has. `option` begins the options' names.

        Raises InputError for two methods, and for intervals without one.
        """
        given = [(method, number) for method, number in numbers.items() if number is not None]
        if len(given) > 1:
            raise InputError(option + given[1][0], given[1][1], f"one way of drawing, not also {option}{given[0][0]}")
        if not given:
            if intervals:
                expected = f"one of {', '.join(option + method for method in numbers)} with it"
                raise InputError(f"{option}vary", intervals[0].key, expected)
            return None
        method, samples = given[0]
        return cls(method, samples, seed, tuple(intervals))

    def count(self, machine: Machine, with_sockets: bool) -> int:
        """The number of draws."""
        return 2 * len(self._drawn(machine, with_sockets)) if self.method == ENDS else self.samples

    def of(self, machine: Machine, with_sockets: bool = False) -> list[tuple[str, ...]]:
        """The settings of each draw. Raises InputError for a machine without numbers to draw."""
        drawn = self._drawn(machine, with_sockets)
        if self.method == ENDS:
            return [(one.at(share),) for one in drawn for share in (0.0, 1.0)]
        shares = drawn_shares(len(drawn), self.samples, self.method, self.seed)
        return [tuple(one.at(share) for one, share in zip(drawn, row, strict=True)) for row in shares]

    def _drawn(self, machine: Machine, with_sockets: bool) -> list[Assumption]:
        if not self.intervals:
            found = assumptions(machine, with_sockets)
            if not found:
                raise InputError("machine", machine.name, "one with assumed numbers that have a range, or --vary")
            return found
        return [
            Assumption(one.key, 0.0, one.low, one.high, "", _is_whole(machine, one.key), fits_ends=False)
            for one in self.intervals
        ]


def _is_whole(machine: Machine, key: str) -> bool:
    return any(isinstance(one.value, int) for name, one in quantities(machine.file) if name == key)


@dataclass(frozen=True)
class Point:
    """One simulation."""

    key: str
    """A digest of all that decides its result."""
    arguments: tuple[str, ...]
    """What follows `apenet`."""
    values: tuple[tuple[str, str], ...]
    """Each axis with its value; the number of the draw is one of them, 0 for the machine as it is."""


@dataclass(frozen=True)
class Plan:
    """A sweep: the command, and what varies."""

    command: tuple[str, ...]
    machines: tuple[str, ...]
    axes: tuple[Axis, ...] = ()
    draws: Draws | None = None

    def __post_init__(self) -> None:
        """Raises InputError for what cannot be swept."""
        words = COMMANDS.get(self.command[0]) if self.command else None
        if words is None or len(self.command) < words:
            raise InputError("command", " ".join(self.command), "one of " + ", ".join(COMMANDS) + " after --")
        self._refuse_set_twice()
        if self.count > MOST_POINTS:
            raise InputError("--grid", self.count, f"at most {MOST_POINTS} points")
        self._check_values()

    @property
    def _has_sockets(self) -> bool:
        """Whether the command simulates sockets, whose numbers are then drawn, too."""
        return "--ip" in self.command

    @property
    def axis_names(self) -> tuple[str, ...]:
        """In the order of a point's values."""
        drawn = (DRAW,) if self.draws is not None else ()
        return (MACHINE, *(axis.name for axis in self.axes), *drawn)

    @cached_property
    def count(self) -> int:
        """The number of points."""
        draws = self.draws
        if draws is None:
            of_machines = len(self.machines)
        else:
            of_machines = sum(draws.count(read_machine(machine), self._has_sockets) + 1 for machine in self.machines)
        return of_machines * math.prod(len(axis.values) for axis in self.axes)

    @cached_property
    def inputs(self) -> tuple[InputFile, ...]:
        """The files that the command names, its program among them."""
        return tuple(_inputs(self.command))

    @cached_property
    def sources(self) -> dict[str, str]:
        """What decides all results, beside the machine: apenet itself and each input file, with a digest of it."""
        return {"apenet itself": build_digest(), **{one.path: one.digest for one in self.inputs}}

    @cached_property
    def machine_digests(self) -> dict[str, str]:
        """For each machine a digest of its file, and of the files that it names."""
        return {machine: _machine_digest(read_machine(machine)) for machine in self.machines}

    def points(self) -> Iterator[Point]:
        """In the order of the axes; draws vary fastest."""
        for machine in self.machines:
            _, drawn = self._origins[machine]
            for combination in itertools.product(*(axis.values for axis in self.axes)):
                for draw in range(len(drawn)):
                    yield self.point(machine, combination, draw)

    def point(self, machine: str, combination: Sequence[str], draw: int = 0) -> Point:
        """That of a value of each axis, and of a draw; draw 0 is the machine as it is."""
        base, drawn = self._origins[machine]
        drawn_settings, repeat = drawn[draw]
        named = tuple(zip((axis.name for axis in self.axes), combination, strict=True))
        given = [axis.arguments(value) for axis, value in zip(self.axes, combination, strict=True)]
        values = ((MACHINE, machine), *named)
        if self.draws is not None:
            values = (*values, (DRAW, str(draw)))
        drawn_options = [part for one in drawn_settings for part in ("--set", one)]
        options = (*drawn_options, *itertools.chain.from_iterable(given))
        content = [base, self._arguments("", options), *([repeat] if repeat else [])]
        return Point(_digest(content), self._arguments(machine, options), values)

    @cached_property
    def _origins(self) -> dict[str, tuple[str, list[tuple[tuple[str, ...], int]]]]:
        """For each machine a digest of all that its points share, and the settings of each draw.

        Beside them the number of earlier draws that have the same ones, as draws of few whole numbers do.
        """
        digest = _digest([FORMAT, self.sources])
        found = {}
        for machine, machine_digest in self.machine_digests.items():
            described = read_machine(machine)
            drawn: list[tuple[str, ...]] = (
                [()] if self.draws is None else [(), *self.draws.of(described, self._has_sockets)]
            )
            seen: Counter[tuple[str, ...]] = Counter()
            numbered = []
            for settings in drawn:
                numbered.append((settings, seen[settings]))
                seen[settings] += 1
            found[machine] = (_digest([digest, machine_digest]), numbered)
        return found

    def trials(self) -> Iterator[tuple[str, ...]]:
        """Command lines in which each value of each option stands once, beside the first ones of the others."""
        first = [axis.values[0] for axis in self.axes]
        for number, axis in enumerate(self.axes):
            for value in axis.values[:_FEW] if axis.is_option else axis.values[:1]:
                chosen = [*first[:number], value, *first[number + 1 :]]
                given = [one.arguments(text) for one, text in zip(self.axes, chosen, strict=True)]
                yield self._arguments(self.machines[0], tuple(itertools.chain.from_iterable(given)))
        if not self.axes:
            yield self._arguments(self.machines[0], ())

    def _arguments(self, machine: str, options: Sequence[str]) -> tuple[str, ...]:
        words = COMMANDS[self.command[0]]
        checks = () if self.command[0] in _CHECKS_NOTHING else ("--no-check-settings",)  # the study compares all points
        return (*self.command[:words], "--json", *checks, "--machine", machine, *options, *self.command[words:])

    def _refuse_set_twice(self) -> None:
        """What the command itself sets cannot vary."""
        before = list(itertools.takewhile(lambda word: word != "--", self.command))
        for axis in self.axes:
            start = axis.name if axis.is_option else f"{axis.name}="
            told = [
                word for word in before if word.split("=")[0] == axis.name or (not axis.is_option and start in word)
            ]
            if told:
                raise InputError("--grid", axis.name, f"what the command does not set itself: {told[0]}")
        names = [axis.name for axis in self.axes]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise InputError("--grid", min(twice), "each key once")
        for option, instead in (("--json", "no --json"), ("--out", "no --out"), ("--trace", "no --trace")):
            if any(word.split("=")[0] == option for word in before):
                raise InputError("command", option, f"{instead}: a study keeps each point's result")

    def _check_values(self) -> None:
        """Each value of each axis with the first ones of the others, so that a wrong one is found before the first run.

        Of a long axis, the ends.
        """
        for machine in self.machines:
            self._check_machine(machine, tuple(axis.values[0] for axis in self.axes))
            for number, axis in enumerate(self.axes):
                if axis.is_option:
                    continue
                values = axis.values if len(axis.values) <= _FEW else (axis.values[0], axis.values[-1])
                for value in values[1:]:
                    chosen = [one.values[0] for one in self.axes]
                    chosen[number] = value
                    self._check_machine(machine, tuple(chosen))
            if self.draws is not None:
                for interval in self.draws.intervals:
                    for bound in (interval.low, interval.high):
                        self._check_interval(machine, interval, bound)

    def _check_machine(self, machine: str, values: Sequence[str]) -> None:
        settings = [f"{axis.name}={value}" for axis, value in zip(self.axes, values, strict=True) if not axis.is_option]
        read_machine(machine, settings)

    def _check_interval(self, machine: str, interval: Interval, bound: float) -> None:
        described = read_machine(machine)
        value = int(bound) if _is_whole(described, interval.key) else bound
        try:
            described.with_settings(f"{interval.key}={value!r}")
        except MachineError as error:
            raise InputError(
                "--vary", f"{interval.key}={interval.low:g}:{interval.high:g}", f"a range of {error}"
            ) from error


@dataclass(frozen=True)
class InputFile:
    """A file that decides the results."""

    path: str
    digest: str
    size: int
    changed_ns: int

    def is_unchanged(self) -> bool:
        """Whether the file is as it was: by its size and time, and else by its content."""
        try:
            status = os.stat(self.path)  # noqa: PTH116 (a million times)
            if (status.st_size, status.st_mtime_ns) == (self.size, self.changed_ns):
                return True
            return status.st_size == self.size and _file_digest(Path(self.path)) == self.digest
        except OSError:
            return False


def _inputs(command: Sequence[str]) -> Iterator[InputFile]:
    """The program after `--`, found as a shell does, and every other word that names a file."""
    words = list(command[COMMANDS[command[0]] :])
    program = words.index("--") + 1 if "--" in words else len(words)
    seen = set()
    for position, word in enumerate(words):
        found = shutil.which(word) if position == program else word.split("=", 1)[-1]
        if found is None:
            raise InputError("program", word, "a program that can be run")
        if not found or found in seen:
            continue
        seen.add(found)
        path = Path(found)
        try:
            if not path.is_file():
                continue
            status = path.stat()
            if status.st_size > MOST_INPUT_BYTES:
                raise InputError("command", word, f"files of at most {MOST_INPUT_BYTES >> 30} GiB")
            yield InputFile(str(path.absolute()), _file_digest(path), status.st_size, status.st_mtime_ns)
        except (OSError, ValueError) as error:
            raise InputError("command", word, f"a file that can be read: {error}") from error


def _file_digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _machine_digest(machine: Machine) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(machine.saved().items()):
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode(errors="surrogateescape")).hexdigest()
