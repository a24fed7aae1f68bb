"""The command `apenet`. Every command only calls a function of the package with the values of its options."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from apenet._core import version as __version__
from apenet.base.errors import MOST_OF_PATH, ApenetError, FailedError, shortened
from apenet.cli import streams
from apenet.cli.commands import HelpfulCommand

BAD_INPUT = 2
FAILED = 1

_PROGRAM = {"allow_interspersed_args": False}
"""The arguments after the name of a program belong to that program."""
_FOREIGN = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": ["--help"]}
"""All other options are those of another program. With -h among its own, -lpthread would ask for help."""


@dataclass(frozen=True)
class _Place:
    """The module of apenet.cli with a command, and its name there: a function, or a group of commands."""

    module: str
    name: str = "app"
    kind: type[TyperCommand] = HelpfulCommand
    settings: dict[str, Any] = field(default_factory=dict)

    def load(self, name: str) -> Any:  # noqa: ANN401 (typer's commands are not public)
        """The command, under the name by which it is called."""
        found = getattr(importlib.import_module(f"{__name__}.{self.module}"), self.name)
        alone = typer.Typer(rich_markup_mode=None)
        if isinstance(found, typer.Typer):
            alone.add_typer(found, name=name)
        else:
            alone.command(name, cls=self.kind, context_settings=self.settings)(found)
        return typer.main.get_group(alone).commands[name]


_PLACES = {
    "run": _Place("run", "run", settings=_PROGRAM),
    "bench": _Place("bench"),
    "cc": _Place("cc", "cc", TyperCommand, _FOREIGN),
    "replay": _Place("replay", "replay"),
    "explain": _Place("explain", "explain"),
    "map": _Place("placing", "place"),
    "gate": _Place("gate", "gate", settings=_PROGRAM),
    "reproduce": _Place("reproduce", "reproduce"),
    "traffic": _Place("traffic", "traffic"),
    "sweep": _Place("sweep", "sweep"),
    "optimise": _Place("optimise", "optimise"),
    "study": _Place("study"),
    "fit": _Place("fit", "fit"),
    "fit-compute": _Place("fit_compute", "fit_compute"),
    "calibrate": _Place("calibrate", "calibrate"),
    "machines": _Place("machine", "list_machines"),
    "machine": _Place("machine"),
    "partition": _Place("partition"),
    "cluster": _Place("cluster"),
    "ip": _Place("ip"),
    "doctor": _Place("doctor", "doctor"),
    "perf": _Place("perf", "perf"),
    "examples": _Place("examples"),
    "completion": _Place("completion", "complete"),
    "man": _Place("completion", "man"),
}


class _Loading(Mapping[str, Any]):
    """The commands. Each is imported when it is needed: all together take half a second."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 (as above)
        if name not in self._loaded:
            self._loaded[name] = _PLACES[name].load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


class _Commands(TyperGroup):
    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 (those of typer)
        super().__init__(**settings)
        self.commands = _Loading()  # type: ignore[assignment]

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 (as above)
        """As of typer, but imports none."""
        return list(self.commands)


app = typer.Typer(
    name="apenet",
    cls=_Commands,
    help="Run unmodified MPI programs on a simulated interconnect, in virtual time.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"apenet {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Run unmodified MPI programs on a simulated interconnect, in virtual time."""


@functools.cache
def command() -> Callable[..., Any]:
    """The parser of the command line, with all commands."""
    return typer.main.get_command(app)


def main(arguments: list[str] | None = None) -> None:
    """The console script: exit status 2 for bad input, 1 when this host lacks something, else the command's own."""
    streams.prepare()
    try:
        try:
            command()(args=arguments, prog_name="apenet", obj=command)
        finally:
            streams.flush()
    except streams.StreamError as error:
        streams.give_up()
        if error.is_to_be_said:
            streams.say(str(error))
        sys.exit(error.status)
    except ApenetError as error:
        streams.say(str(error) or f"{type(error).__name__} without a reason")
        sys.exit(FAILED if isinstance(error, FailedError) else BAD_INPUT)
    except MemoryError:
        streams.say("memory: more than this process may have (see ulimit -v)")
        sys.exit(BAD_INPUT)
    except OSError as error:
        streams.say(f"{shortened(str(error.filename or 'this host'), MOST_OF_PATH)}: {error.strerror or error}")
        sys.exit(BAD_INPUT)
