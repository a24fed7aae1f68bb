"""What this package raises. Bad input names what is wrong, its value and what was expected; the CLI exits with 2."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


class ApenetError(Exception):
    """Base of everything that is raised here on purpose."""


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP came while a command was at work. No error: nothing is to catch and go on."""


class InputError(ApenetError):
    """An option or argument that cannot be: its name, its value, and what was expected."""

    def __init__(self, name: str, value: object, expected: str) -> None:
        super().__init__(f"{name} = {shown(value)}: expected {expected}")
        self.name = name
        self.value = value
        self.expected = expected


def from_core(error: ValueError) -> InputError:
    """What the C++ core refuses, `KEY = VALUE: expected ...`, as the same error that Python raises."""
    name, equals, rest = str(error).partition(" = ")
    value, colon, expected = rest.partition(": expected ")
    if not equals or not colon:
        return InputError("input", str(error), "what the simulated machine can do")
    return InputError(name, Literal(value), expected)


class Literal:
    """A value that an error message prints as it is."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def texts(name: str, given: Iterable[str]) -> tuple[str, ...]:
    """Several texts. Raises InputError for a single one, whose letters would each be taken for one."""
    if isinstance(given, str):
        raise InputError(name, given, "a list of texts")
    return tuple(given)


class NotWrittenError(ApenetError):
    """What was asked for could not be kept in a file: which one, and why. `result` is what would be in it."""

    def __init__(self, name: str, path: Path | str, reason: str, result: object = None) -> None:
        super().__init__(f"{name} = {shown(path)}: could not be written: {reason}")
        self.reason = reason
        self.result = result

    @classmethod
    def together(cls, errors: Sequence[NotWrittenError], result: object) -> NotWrittenError:
        """Several of them as one, with the result that they would have held."""
        joined = cls("", "", "", result)
        joined.args = ("\n".join(map(str, errors)),)
        return joined


class PartitionError(ApenetError):
    """Faults have cut the network, and a packet has no path: who cannot reach whom, since when, by which fault."""


class LimitError(ApenetError):
    """The limits of this process are too low: memory, descriptors."""


class HostError(ApenetError):
    """The host lacks something that the command needs (a compiler, an MPI, a library of the package)."""


MOST_PROBLEMS = 8  # of one file, in one message: one wrong line can make many


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in a machine file."""

    key: str
    value: object
    expected: str

    def __str__(self) -> str:
        if self.value is ABSENT:
            return f"{self.key} is missing: expected {self.expected}"
        return f"{self.key} = {shown(self.value)}: expected {self.expected}"


class MachineError(ApenetError):
    """A machine description that cannot be: file, key, value, what was expected.

    Further problems of the same file are in ``others``, so that one look shows all of them.
    """

    def __init__(
        self,
        file: Path | str,
        key: str,
        value: object,
        expected: str,
        others: tuple[Problem, ...] = (),
    ) -> None:
        self.file = str(file)
        self.key = key
        self.value = value
        self.expected = expected
        self.others = others
        problems = (Problem(key, value, expected), *others)
        lines = [f"{self.file}: {problem}" for problem in problems[:MOST_PROBLEMS]]
        if len(problems) > MOST_PROBLEMS:
            lines.append(f"{self.file}: and {len(problems) - MOST_PROBLEMS} more")
        super().__init__("\n".join(lines))


class _Absent:
    """The value of a key that is not there."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()


def shown(value: object, limit: int = 80) -> str:
    """A value as an error message prints it: as the user wrote it, and never pages of it.

    Of a long one both ends are kept; a path is whole, so that it can be copied.
    """
    if isinstance(value, Path):
        return f'"{value}"'
    if isinstance(value, dict):
        text = "a table"
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, str):
        text = f'"{value}"'
    else:
        text = str(value) if isinstance(value, int | float) else repr(value)
    half = (limit - 3) // 2
    return text if len(text) <= limit else f"{text[:half]}...{text[-half:]}"
