"""Several programs in one run, as mpiexec has them: PROGRAM [ARGS]... : -n RANKS PROGRAM [ARGS]... ."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from apenet.base.errors import InputError
from apenet.host.toolchain import find_program

_SEPARATOR = ":"
_SHELL = Path("/bin/sh")
_OPTION = "-n"


@dataclass(frozen=True)
class Application:
    """A program of a run, and how many ranks it has."""

    ranks: int
    command: tuple[str, ...]


def has_several(command: Sequence[str]) -> bool:
    """Whether the command names several programs."""
    return len(split(command, 1)) > 1


def split(command: Sequence[str], ranks: int) -> list[Application]:
    """The programs of a command, of which the first has so many ranks. Raises InputError.

    A colon without -n behind it is an argument.
    """
    parts: list[list[str]] = [[]]
    for word, after in zip(command, [*command[1:], ""], strict=True):
        if word == _SEPARATOR and after == _OPTION:
            parts.append([])
        else:
            parts[-1].append(word)
    return [Application(ranks, tuple(parts[0])), *(_further(part) for part in parts[1:])]


def _further(part: Sequence[str]) -> Application:
    match part:
        case [option, number, *command] if option == _OPTION and number.isdecimal() and int(number) > 0 and command:
            return Application(int(number), tuple(command))
    expected = f"{_OPTION} RANKS PROGRAM [ARGS]... behind each {_SEPARATOR}"
    raise InputError("program", " ".join([_SEPARATOR, *part]), expected)


def as_applications(command: Sequence[str], ranks: int) -> tuple[Path, tuple[str, ...]]:
    """The command of every rank: a shell that executes the rank's program in its place. `ranks`: those of the run."""
    further = sum(application.ranks for application in split(command, 1)[1:])
    lines = []
    end = 0
    for application in split(command, ranks - further):
        end += application.ranks
        program = str(find_program(application.command[0]))
        words = shlex.join([program, *application.command[1:]])
        lines.append(f'if [ "$APENET_RANK" -lt {end} ]; then exec {words}; fi')
    return _SHELL, (_SHELL.name, "-c", "\n".join(lines))
