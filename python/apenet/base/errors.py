"""The errors of this package. Errors of input give name, value and what was expected; the CLI exits with 2."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from apenet.base.escape import escape_line


class ApenetError(Exception):
    """Base of all errors that this package raises on purpose."""


class FailedError(ApenetError):
    """The input was valid, and what it asked for failed. The CLI exits with 1."""


class Interrupted(BaseException):
    """A command received SIGINT, SIGTERM or SIGHUP. Not an Exception, so that no handler catches it and goes on."""


class InputError(ApenetError):
    """An invalid option or argument: its name, its value, and what was expected."""

    def __init__(self, name: str, value: object, expected: str) -> None:
        super().__init__(f"{_named(name)} = {shown(value)}: expected {escape_line(expected)}")
        self.name = name
        self.value = value
        self.expected = expected


def from_core(error: ValueError) -> InputError:
    """Turns an error of the C++ core, `KEY = VALUE: expected ...`, into an InputError."""
    name, equals, rest = str(error).partition(" = ")
    value, colon, expected = rest.partition(": expected ")
    if not equals or not colon:
        return InputError("input", str(error), "what the simulated machine can do")
    return InputError(name, Literal(value), expected)


class Literal:
    """A value that error messages print without quotes."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def texts(name: str, given: Iterable[str]) -> tuple[str, ...]:
    """Checks a list of strings for the core. Raises InputError for a text that is no UTF-8.

    Also for a single string, which would iterate over its letters.
    """
    if isinstance(given, str):
        raise InputError(name, given, "a list of texts")
    return tuple(text(name, one) for one in given)


def text(name: str, given: str) -> str:
    """Checks a string for the core. Raises InputError for bytes that are no UTF-8, as arguments may have."""
    try:
        given.encode()
    except UnicodeEncodeError as error:
        raise InputError(name, given, "a text in UTF-8") from error
    return given


class NotWrittenError(ApenetError):
    """An output file could not be written: which one, and why. `result` is its content."""

    def __init__(self, name: str, path: Path | str, reason: str, result: object = None) -> None:
        super().__init__(f"{name} = {shown(path)}: could not be written: {reason}")
        self.reason = reason
        self.result = result

    @classmethod
    def together(cls, errors: Sequence[NotWrittenError], result: object) -> NotWrittenError:
        """Joins several errors into one; `result` is what the files would have held."""
        joined = cls("", "", "", result)
        joined.args = ("\n".join(map(str, errors)),)
        return joined


class PartitionError(FailedError):
    """Faults have cut the network, and a packet has no path: which nodes, since when, by which fault."""


class EndOfTimeError(FailedError):
    """A message would end after the end of virtual time, 104 days."""


class LimitError(ApenetError):
    """The resource limits of this process are too low: memory, descriptors."""


class HostError(FailedError):
    """The host lacks something that the command needs (a compiler, an MPI, a library of the package)."""


MOST_PROBLEMS = 8  # problems of one file in one message; one wrong line can cause many


@dataclass(frozen=True)
class Problem:
    """One error in a machine file."""

    key: str
    value: object
    expected: str

    def __str__(self) -> str:
        if self.value is ABSENT:
            return f"{_named(self.key)} is missing: expected {escape_line(self.expected)}"
        return f"{_named(self.key)} = {shown(self.value)}: expected {escape_line(self.expected)}"


class MachineError(ApenetError):
    """An invalid machine description: file, key, value, what was expected.

    Further problems of the same file are in ``others``, so that one message shows all of them.
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
        name = shortened(escape_line(self.file), MOST_OF_PATH)
        lines = [f"{name}: {problem}" for problem in problems[:MOST_PROBLEMS]]
        if len(problems) > MOST_PROBLEMS:
            lines.append(f"{name}: and {len(problems) - MOST_PROBLEMS} more")
        super().__init__("\n".join(lines))


class _Absent:
    """The value of a missing key."""

    def __repr__(self) -> str:
        return "nothing"


ABSENT = _Absent()


def _of_number(value: float) -> str:
    try:
        return str(value)
    except ValueError:  # Python writes no number of thousands of digits
        return f"a number of {value.bit_length() if isinstance(value, int) else 0} bits"


def shown(value: object, limit: int = 80) -> str:
    """A value as an error message prints it: as the user wrote it, but shortened.

    A long value keeps both ends, control characters are escaped; the path of a file is whole, so that it can be copied.
    """
    if isinstance(value, Path):
        return shortened(escape_line(f'"{value}"'), MOST_OF_PATH)
    if isinstance(value, dict):
        text = "a table"
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, str):
        text = f'"{value}"'
    else:
        text = _of_number(value) if isinstance(value, int | float) else repr(value)
    return shortened(escape_line(text), limit)


MOST_OF_PATH = 5000  # no file has a path of more than 4096 bytes


def _named(name: str) -> str:
    """The name of a setting, which may be a key of the user's."""
    return shortened(escape_line(name))


def shortened(text: str, limit: int = 200) -> str:
    """Both ends of a long text."""
    half = (limit - 3) // 2
    return text if len(text) <= limit else f"{text[:half]}...{text[-half:]}"
