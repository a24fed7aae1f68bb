"""Finds the settings of a machine without which a run would be the same, by replays of its messages.

If the replay has the events of the run, and a replay without a setting has them too, at the same times, then so has the
program: all that it learns from the hardware is when its messages end. If the replay has the messages of the run at
other times (the program polls), it is compared with a replay without the setting, and the warning speaks of the replay
alone. If it has other messages, or there is no replay, the run says that the settings were not checked. A value that
the machine has anyway needs no replay.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple, Self

from apenet import _core
from apenet.base.errors import ApenetError, NotWrittenError, shortened
from apenet.base.gather import NO_EFFECT, NO_EFFECT_REPLAYED
from apenet.base.outfiles import Held
from apenet.machine import Machine
from apenet.machine import machine as read_machine
from apenet.run.recording import Recording
from apenet.run.results import Request, Result

MOST_MESSAGES = 100_000
"""A run of more is not replayed."""
_TOO_LONG = "the run has too many messages to be replayed for it"
_BEYOND_MESSAGES = "it changes no message of a replay, which does not have all that programs do"
_HARDWARE = ("network", "router", "card", "bus")
"""The sections whose values act on messages alone: those of software and host are also in what a program computes."""


class Events(NamedTuple):
    """All that the cards report and when the ranks end, of a replay."""

    trace_hash: int
    finish_ps: bytes
    messages: int
    bytes: int


class WatchedSettings(Held):
    """The settings of a program's run, which is recorded if they may be without effect."""

    def __init__(self, machine: Machine, recording: Recording | None) -> None:
        self._recording = recording
        with ExitStack() as stack:
            self._file = None
            if recording is None and any(machines_without(machine)):
                self._file = stack.enter_context(tempfile.TemporaryFile())
            self._closing = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which the ranks find the file."""
        return {} if self._file is None else {"APENET_RECORD": _core.descriptor_path(self._file.fileno())}

    def warnings(self, request: Request, result: Result) -> tuple[str, ...]:
        """A sentence for each setting without effect of a run with this result, and on those that are not checked."""
        return warnings_of(request, self._schedule(request, result), result)

    def _schedule(self, request: Request, result: Result) -> _core.GoalSchedule | str:
        """The operations that were recorded, or why there are none."""
        file = self._file if self._recording is None else self._recording.file
        if file is None or result.messages > MOST_MESSAGES:
            return _TOO_LONG
        with tempfile.TemporaryFile() as trace:
            path = f"/proc/self/fd/{trace.fileno()}"
            try:
                lacking = _core.write_goal(file.fileno(), request.ranks, "apenet", path).unrecorded
                return (
                    f"messages of {', '.join(lacking)} cannot be replayed"
                    if lacking
                    else _core.read_goal(path, "recording")
                )
            except (RuntimeError, ValueError, NotWrittenError):  # a full disk; messages that no trace can express
                return "its messages could not be recorded"


def warnings_of(
    request: Request, schedule: _core.GoalSchedule | str, result: Result, *, is_replay: bool = False
) -> tuple[str, ...]:
    """A sentence for each setting without effect of a run or replay that has this schedule and this result.

    And one for each reason for which settings are not checked; `schedule` is such a reason if there is none.
    """
    found = []
    unchecked: dict[str, list[str]] = {}
    given: Events | None = None
    if result.messages > MOST_MESSAGES:
        schedule = _TOO_LONG
    for setting, machine in machines_without(request.machine):
        if _values(machine) == _values(request.machine):
            found.append(f"--set {shortened(setting)} {NO_EFFECT}")
            continue
        if not isinstance(schedule, str):
            given = given or _events(request, schedule)
            if given is None or (given.messages, given.bytes) != (result.messages, result.bytes):
                schedule = "a replay has other messages"
        if isinstance(schedule, str):
            unchecked.setdefault(schedule, []).append(setting)
        elif _events(replace(request, machine=machine), schedule) == given:
            if is_replay or _acts_on_messages_alone(setting):
                is_exact = given is not None and f"{given.trace_hash:016x}" == result.trace_hash
                found.append(f"--set {shortened(setting)} {NO_EFFECT if is_exact else NO_EFFECT_REPLAYED}")
            else:
                unchecked.setdefault(_BEYOND_MESSAGES, []).append(setting)
    for reason, settings in unchecked.items():
        named = ", ".join(f"--set {shortened(setting)}" for setting in settings)
        found.append(f"not checked whether {named} had an effect: {reason}")
    return tuple(found)


def _values(machine: Machine) -> Any:  # noqa: ANN401 (a tree of tables)
    """The values of a machine file, without their sources."""

    def value(node: Any) -> Any:  # noqa: ANN401
        if not isinstance(node, dict):
            return node
        return node["value"] if {"value", "source"} <= node.keys() else {key: value(one) for key, one in node.items()}

    return value(machine.file.model_dump())


def _acts_on_messages_alone(setting: str) -> bool:
    steps = setting.split(".")
    return set(steps[2:3] if steps[0] == "rail" else steps[:1]) <= set(_HARDWARE)


def machines_without(machine: Machine) -> Iterator[tuple[str, Machine]]:
    """Each setting, and the machine without it."""
    if not machine.checks_settings or not machine.path.is_file():
        return
    for number, setting in enumerate(machine.settings):
        others: Sequence[str] = [other for place, other in enumerate(machine.settings) if place != number]
        try:
            part = None if machine.partition is None else machine.partition.given
            yield setting, read_machine(machine.path, others, machine.faults, machine.rail, part)
        except ApenetError:  # another setting needs it
            continue


def _events(request: Request, schedule: _core.GoalSchedule) -> Events | None:
    """The events of a replay; None if it cannot end."""
    try:
        report = _core.replay_goal(
            request.description(),
            list(request.nodes),
            schedule,
            _core.ObservationOptions(),
        )
    except (ApenetError, ValueError, RuntimeError, _core.ReplayDeadlock):
        return None
    return Events(report.trace_hash, report.finish_ps.tobytes(), report.messages, report.bytes)
