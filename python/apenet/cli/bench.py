"""apenet bench: a subcommand for each test, made from its request. See apenet.bench.request."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from apenet.base.errors import InputError
from apenet.bench import CATALOGUE
from apenet.bench.lqcd_scaling import TEST as LQCD
from apenet.bench.request import MachineRequest, OptionField, Request, options_of
from apenet.bench.settings_effect import with_settings_judged
from apenet.cli import lqcd
from apenet.cli.commands import HelpfulCommand
from apenet.cli.common import (
    CheckSettingsOption,
    EngineOption,
    FaultOption,
    JsonOption,
    MeasurementReportOption,
    PartitionOption,
    PinOption,
    RailOption,
    SeedOption,
    SetOption,
    output,
    print_json,
    progress_bar,
)
from apenet.cli.measured import MeasurementPage
from apenet.machine import machine as read_machine

COMMON = {"engine": EngineOption, "pin": PinOption, "seed": SeedOption}
"""Options of requests that other commands have as well."""
MACHINE = {
    "machine": (Annotated[str, typer.Option("--machine", "-m", metavar="NAME", help="A machine, or a file.")], "ape16"),
    "settings": (SetOption, None),
    "rail": (RailOption, None),
    "partition": (PartitionOption, None),
    "faults": (FaultOption, None),
    "check_settings": (CheckSettingsOption, True),
}
"""The options that choose the machine."""


def run(kind: type[MachineRequest[Any]], machine: str, **given: Any) -> None:  # noqa: ANN401 (the request's options)
    """Makes a request, measures it, and prints the result."""
    as_json, report = given.pop("as_json"), given.pop("report")
    options = [given.pop(name) for name in ("settings", "faults", "rail", "partition")]
    chosen = read_machine(machine, options[0] or (), options[1] or (), *options[2:])
    chosen = chosen.with_settings_checked(given.pop("check_settings"))
    steps: list[Callable[[], None]] = []
    request = kind(chosen, **given, progress=lambda _size: steps[0]())
    where = "" if request.layer is None else f", layer {request.layer}"
    with MeasurementPage(report) as shown:
        with progress_bar(f"{kind.traits.test} on {chosen.name}{where}", request.steps) as progress:
            task = progress.task_ids[0]
            progress.update(task, completed=-1)  # progress is called before each measurement
            steps.append(lambda: progress.advance(task))
            result = with_settings_judged(request, request.measure())
        if as_json:
            print_json(result.to_json())
        else:
            output().print(result.to_table(), markup=False)
        shown.keep(result.to_json())


def _parameter(one: OptionField) -> inspect.Parameter:
    """The command's parameter for an option of a request."""
    if one.name in COMMON:
        annotation, default = COMMON[one.name], one.default
    else:
        shown = one.option
        default = one.default if shown.default is None else shown.default
        given = one.type if default is not None else one.type | None
        annotation = Annotated[given, typer.Option(one.flag, metavar=shown.metavar, help=shown.help)]
    return inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _function(test: str) -> Callable[..., None]:
    """The function of a subcommand, with a parameter for each option."""
    kind = CATALOGUE.requests[test]
    chosen = {**MACHINE, **(lqcd.OPTIONS if test == LQCD else {})}
    last = {"report": (MeasurementReportOption, None), "as_json": (JsonOption, False)}
    fixed = [
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in some.items()
        ]
        for some in (chosen, last)
    ]

    def command(**given: Any) -> None:  # noqa: ANN401 (the parameters below)
        if issubclass(kind, MachineRequest):
            run(kind, **given)
        else:
            lqcd.run(**given)

    parameters = [*fixed[0], *map(_parameter, options_of(kind)), *fixed[1]]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    command.__doc__ = _sentence(kind)
    return command


def _sentence(kind: type[Request[Any]]) -> str:
    text = kind.traits.definition
    return f"{text[0].upper()}{text[1:]}."


class TestCommand(HelpfulCommand):
    """A subcommand, which names the tests of an option that it does not have."""

    def refuse(self, flag: str, value: str, args: list[str]) -> None:
        """Raises InputError also for an option of other tests."""
        if flag in _flags():
            raise CATALOGUE.foreign(self.name or "", _flags()[flag], value)
        super().refuse(flag, value, args)


class TestGroup(TyperGroup):
    """All tests. A subcommand is made when it is needed."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401
        """The tests."""
        return list(CATALOGUE.requests)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        """Raises InputError for a test that does not exist."""
        if cmd_name not in CATALOGUE.requests:
            raise InputError("test", cmd_name, "one of " + ", ".join(CATALOGUE.requests))
        single = typer.Typer(rich_markup_mode=None, add_completion=False)
        function = _function(cmd_name)
        brief = (function.__doc__ or "").rstrip(".").partition(";")[0]
        single.command(cmd_name, cls=TestCommand, short_help=brief)(function)
        return typer.main.get_command(single)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """As of click, but the options may also stand before the test."""
        place = _place_of_test(args)
        test = args[place : place + 1]
        if test and test[0] not in HELP:
            test += args[:place] + args[place + 1 :]
        return super().parse_args(ctx, test)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401
        """The line of the usage."""
        return ["TEST", "[OPTIONS]"]


@cache
def _flags() -> dict[str, str]:
    """The flags of all tests, and the names of their options."""
    return {one.flag: one.name for kind in CATALOGUE.requests.values() for one in options_of(kind)}


HELP = ("-h", "--help")
WITHOUT_VALUE = {"--json", "--pin", "--no-pin", "--allow-long", "--check-settings", "--no-check-settings"}


def _place_of_test(args: list[str]) -> int:
    """The index of the first argument that is no option, nor the value of one; or of --help."""
    place = 0
    while place < len(args) and args[place].startswith("-") and args[place] not in HELP:
        place += 1 if _has_its_value(args[place]) else 2
    return place


def _has_its_value(argument: str) -> bool:
    is_short_and_value = len(argument) > len("-m") and argument[1] != "-"
    return argument in WITHOUT_VALUE or "=" in argument or is_short_and_value


app = typer.Typer(cls=TestGroup)


@app.callback()
def bench() -> None:
    """Measure a simulated machine. Prints time and bandwidth over message sizes, or the scaling of lattice QCD."""
