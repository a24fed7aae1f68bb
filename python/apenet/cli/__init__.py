"""The command `apenet`. Every command only calls a function of the package with the values of its options."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from apenet._core import version as __version__
from apenet.base.errors import ApenetError, EndOfTimeError, HostError, PartitionError
from apenet.bench import BenchError
from apenet.cli import (
    bench,
    calibrate,
    cc,
    cluster,
    completion,
    doctor,
    examples,
    explain,
    fit,
    fit_compute,
    gate,
    machine,
    optimise,
    partition,
    perf,
    placing,
    replay,
    reproduce,
    run,
    streams,
    study,
    sweep,
    traffic,
)
from apenet.cli.commands import HelpfulCommand
from apenet.perf import PerfError

if TYPE_CHECKING:
    from collections.abc import Callable

BAD_INPUT = 2
FAILED = 1

app = typer.Typer(
    name="apenet",
    help="Run unmodified MPI programs on a simulated interconnect, in virtual time.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# Arguments after the name of the program that `run` runs belong to that program.
app.command(cls=HelpfulCommand, context_settings={"allow_interspersed_args": False})(run.run)
app.add_typer(bench.app, name="bench")
app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})(cc.cc)
app.command(cls=HelpfulCommand)(replay.replay)
app.command(cls=HelpfulCommand)(explain.explain)
app.command("map", cls=HelpfulCommand)(placing.place)
app.command(cls=HelpfulCommand, context_settings={"allow_interspersed_args": False})(gate.gate)
app.command(cls=HelpfulCommand)(reproduce.reproduce)
app.command(cls=HelpfulCommand)(traffic.traffic)
app.command(cls=HelpfulCommand)(sweep.sweep)
app.command(cls=HelpfulCommand)(optimise.optimise)
app.add_typer(study.app, name="study")
app.command(cls=HelpfulCommand)(fit.fit)
app.command(cls=HelpfulCommand)(fit_compute.fit_compute)
app.command(cls=HelpfulCommand)(calibrate.calibrate)
app.command("machines", cls=HelpfulCommand)(machine.list_machines)
app.add_typer(machine.app, name="machine")
app.add_typer(partition.app, name="partition")
app.add_typer(cluster.app, name="cluster")
app.command(cls=HelpfulCommand)(doctor.doctor)
app.command(cls=HelpfulCommand)(perf.perf)
app.add_typer(examples.app, name="examples")
app.command("completion", cls=HelpfulCommand)(completion.complete)
app.command("man", cls=HelpfulCommand)(completion.man)


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
        failed = isinstance(error, EndOfTimeError | HostError | PartitionError | BenchError | PerfError)
        sys.exit(FAILED if failed else BAD_INPUT)
    except MemoryError:
        streams.say("memory: more than this process may have (see ulimit -v)")
        sys.exit(BAD_INPUT)
    except OSError as error:
        streams.say(f"{error.filename or 'this host'}: {error.strerror or error}")
        sys.exit(BAD_INPUT)
