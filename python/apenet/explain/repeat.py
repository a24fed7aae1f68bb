"""The command that makes a run again, for its page."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from apenet.base.errors import ApenetError
from apenet.explain.folder import RunFolder
from apenet.machine import machine as read_machine
from apenet.machine import machine_names

_MACHINE = "machine.toml"
_GIVEN = "given"
_OPTIONS = (
    ("partition", "--partition", None),
    ("ranks_per_node", "--ranks-per-node", 1),
    ("mapping", "--map", "linear"),
    ("compute", "--compute", "none"),
    ("size", "--size", None),
    ("engine", "--engine", "packet"),
    ("seed", "--seed", 1),
    ("limit_virtual", "--limit-virtual", None),
    ("limit_wall", "--limit-wall", None),
)
"""Keys of command.json, the options that set them, and what they are without."""


def repeating(run: RunFolder) -> str:
    """The command as words of a shell, without options that are as by default.

    The machine is machine.toml of the run's folder if it is no machine of the package, as changed by `--set`. The
    placement of a list from Python is FILE.
    """
    command = run.command
    is_replay = "replay" in command
    words = (
        ["apenet", "replay", str(command["replay"])] if is_replay else ["apenet", "run", "-n", str(run.request.ranks)]
    )
    words += _machine(run, [str(one) for one in command.get("settings") or ()], command.get("rail"))
    for fault in command.get("faults") or ():
        words += ["--fault", str(fault)]
    for key, option, default in _OPTIONS:
        value = command.get(key, default)
        if value != default:
            words += [option, "FILE" if key == "mapping" and value == _GIVEN else str(value)]
    if command.get("trap_tsc"):
        words.append("--trap-tsc")
    if not is_replay:
        words += ["--", *(str(word) for word in command.get("command") or ())]
    return shlex.join(words)


def _machine(run: RunFolder, settings: Sequence[str], rail: str | None) -> list[str]:
    """The file of the folder has the chosen rail alone."""
    name = run.machine.name
    saved = (run.path / _MACHINE).read_bytes()
    try:
        is_shipped = name in machine_names() and read_machine(name, settings, (), rail).saved()[_MACHINE] == saved
    except ApenetError:  # a key that only the user's own machine has
        is_shipped = False
    if not is_shipped:
        return ["-m", _MACHINE]
    chosen = [] if rail is None else ["--rail", rail]
    return ["-m", name, *(word for one in settings for word in ("--set", one)), *chosen]
