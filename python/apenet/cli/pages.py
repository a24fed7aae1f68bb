"""The commands and options as data, from which completion scripts and man pages are made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apenet.machine import machine_names


@dataclass(frozen=True)
class OptionPage:
    """An option of a command: its flags, its value as the help shows it (empty for none), its text."""

    flags: tuple[str, ...]
    value: str
    help: str

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that its value may be, without those that stand for something else (FILE, cart:PxQ)."""
        if self.value == "MACHINE":
            return tuple(machine_names())
        return tuple(word for word in self.value.split("|") if re.fullmatch("[a-z][a-z0-9-]*", word))


@dataclass(frozen=True)
class CommandPage:
    """A command: its words after `apenet`, its text, its arguments and options, and the commands below it."""

    words: tuple[str, ...]
    help: str
    arguments: tuple[str, ...]
    options: tuple[OptionPage, ...]
    below: tuple[str, ...]


def pages(command: Any, words: tuple[str, ...] = ()) -> Iterator[CommandPage]:  # noqa: ANN401 (typer's are not public)
    """A page for the command and for each one below it, in their order."""
    group = getattr(command, "list_commands", None)
    below = tuple(group(None)) if group is not None else ()
    options = tuple(_option(one) for one in command.params if one.param_type_name == "option")
    arguments = tuple(one.metavar or one.name for one in command.params if one.param_type_name == "argument")
    flags = tuple(command.context_settings.get("help_option_names", ("-h", "--help")))
    helped = (*options, OptionPage(flags, "", "Show this message and exit."))
    yield CommandPage(words, command.help or "", arguments, helped, below)
    for name in below:
        yield from pages(command.get_command(None, name), (*words, name))


def _option(one: Any) -> OptionPage:  # noqa: ANN401 (as above)
    flags = (*one.opts, *one.secondary_opts)
    value = "" if one.is_flag else one.metavar or "VALUE"
    if "--machine" in flags:
        value = "MACHINE"
    return OptionPage(flags, value, one.help or "")
