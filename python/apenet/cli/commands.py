"""The commands' answer to an option that they do not have: the one that was meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from typer.core import TyperCommand

from apenet.base.errors import ApenetError, InputError
from apenet.explain.report import DEFAULT
from apenet.machine import machine as read_machine
from apenet.machine.near import near_keys

_SHORTEST_WORD = len("--") + 3  # others are in too many keys
_RANKS = "the number of ranks"
_MEANT = {
    "-np": ("-n", _RANKS),
    "-N": ("-n", _RANKS),
    "--np": ("-n", _RANKS),
    "--ntasks": ("-n", _RANKS),
    "--nprocs": ("-n", _RANKS),
    "--ranks": ("-n", _RANKS),
    "--ppn": ("--ranks-per-node", "the ranks that share a node"),
    "--npernode": ("--ranks-per-node", "the ranks that share a node"),
    "--mapping": ("--map", "the placement of ranks"),
    "--placement": ("--map", "the placement of ranks"),
    "--mca": ("--set", "one parameter of the machine"),
}
"""Options of other launchers, and this package's for the same."""
_OPTIONAL = {"--report": DEFAULT}
"""Options whose value may be left out, and what it is then."""


class HelpfulCommand(TyperCommand):
    """A command that names the option which was meant by an unknown one, and the machine's parameter of that name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 (click has no public types here)
        """As of click. Raises InputError for an unknown option of which it knows what was meant."""
        args = self._with_values(args)
        for flag, value in self._unknown(args):
            own, meaning = _MEANT.get(flag, ("", ""))
            if own in self._flags():
                raise InputError(flag, value, f"{own} {value or 'VALUE'}: {meaning}")
            self.refuse(flag, value, args)
        return super().parse_args(ctx, args)

    def refuse(self, flag: str, value: str, args: list[str]) -> None:
        """Raises InputError for an unknown option that is a parameter of the machine."""
        flags = self._flags()
        is_word = flag.startswith("--") and len(flag) >= _SHORTEST_WORD
        if not is_word or "--set" not in flags or any(known.startswith(flag) for known in flags):
            return
        chosen = [args[place + 1] for place in range(len(args) - 1) if args[place] in ("-m", "--machine")]
        chosen += [argument.partition("=")[2] for argument in args if argument.startswith("--machine=")]
        try:
            keys = near_keys(flag.lstrip("-"), read_machine(chosen[0] if chosen else "ape16").table)
        except ApenetError:
            return  # the machine is refused when it is read
        if keys:
            expected = f"--set KEY=VALUE for a parameter of the machine, where KEY is {' or '.join(keys)}"
            raise InputError(flag, value, expected)

    def _with_values(self, args: list[str]) -> list[str]:
        """The arguments with a value behind each option that may stand without one."""
        flags = self._flags()
        is_interspersed = self.context_settings.get("allow_interspersed_args", True)
        place = 0
        while place < len(args) and args[place] != "--":
            flag, equals, _ = args[place].partition("=")
            if not flag.startswith("-") and not is_interspersed:
                break
            following = next(iter(args[place + 1 : place + 2]), "-")
            if flag in _OPTIONAL and flag in flags and not equals:
                if following.startswith("-"):
                    args = [*args[: place + 1], _OPTIONAL[flag], *args[place + 1 :]]
                elif not is_interspersed and place + 2 == len(args):
                    raise InputError(flag, following, "a file and then the program, or -- before the program")
            place += 2 if flags.get(flag, False) and not equals else 1
        return args

    def _flags(self) -> dict[str, bool]:
        """The command's own options, and whether they take a value."""
        flags = {"--help": False, "-h": False}
        for parameter in self.params:
            takes_value = not getattr(parameter, "is_flag", False)
            flags |= dict.fromkeys((*parameter.opts, *parameter.secondary_opts), takes_value)
        return flags

    def _unknown(self, args: list[str]) -> Iterator[tuple[str, str]]:
        """Options before the program, or in all arguments, that the command does not have; and their values."""
        flags = self._flags()
        is_interspersed = self.context_settings.get("allow_interspersed_args", True)
        place = 0
        while place < len(args) and args[place] != "--":
            flag, equals, value = args[place].partition("=")
            place += 1
            if not flag.startswith("-"):
                if not is_interspersed:
                    return
                continue
            following = next(iter(args[place : place + 1]), "")
            if flag in flags:
                place += 1 if flags[flag] and not equals else 0
            elif flag in _MEANT or flag.startswith("--") or flag[:2] not in flags:
                yield flag, value if equals else "" if following.startswith("-") else following
