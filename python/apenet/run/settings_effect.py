"""Finds the settings of a machine without which a run would be the same, by replays of its messages.

If the replay has the events of the run, and a replay without a setting has them too, at the same times, then so has the
program: all that it learns from the hardware is when its messages end. If the replay has the messages of the run at
other times (the program polls), it is compared with a replay without the setting, and the warning speaks of the replay
alone. If it has other messages, nothing is said.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import NamedTuple, Self

from apenet import _core
from apenet.base.errors import ApenetError, NotWrittenError
from apenet.base.gather import NO_EFFECT, NO_EFFECT_REPLAYED
from apenet.base.outfiles import Held
from apenet.machine import Machine
from apenet.machine import machine as read_machine
from apenet.run.recording import Recording
from apenet.run.results import Request, Result

MOST_MESSAGES = 100_000
"""A run of more is not replayed."""
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
            if recording is None and any(_candidates(machine)):
                self._file = stack.enter_context(tempfile.TemporaryFile())
            self._closing = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which the ranks find the file."""
        return {} if self._file is None else {"APENET_RECORD": _core.descriptor_path(self._file.fileno())}

    def warnings(self, request: Request, result: Result) -> tuple[str, ...]:
        """A sentence for each setting without effect of a run with this result."""
        file = self._file if self._recording is None else self._recording.file
        if file is None or result.messages > MOST_MESSAGES or not any(_candidates(request.machine)):
            return ()
        with tempfile.TemporaryFile() as trace:
            path = f"/proc/self/fd/{trace.fileno()}"
            try:
                _core.write_goal(file.fileno(), request.ranks, "apenet", path)
                schedule = _core.read_goal(path, "recording")
            except (RuntimeError, ValueError, NotWrittenError):  # a full disk; messages that no trace can express
                return ()
        return warnings_of(request, schedule, result)


def warnings_of(request: Request, schedule: _core.GoalSchedule, result: Result) -> tuple[str, ...]:
    """A sentence for each setting without effect of a run or replay that has this schedule and this result."""
    found = []
    given: Events | None = None
    for setting, machine in _candidates(request.machine):
        given = given or _events(request, schedule)
        if given is None or (given.messages, given.bytes) != (result.messages, result.bytes):
            return ()
        is_exact = f"{given.trace_hash:016x}" == result.trace_hash
        if _events(replace(request, machine=machine), schedule) == given:
            found.append(f"--set {setting} {NO_EFFECT if is_exact else NO_EFFECT_REPLAYED}")
    return tuple(found)


def _candidates(machine: Machine) -> Iterator[tuple[str, Machine]]:
    """The settings of the hardware, and the machine without each of them."""
    for setting, other in machines_without(machine):
        steps = setting.split(".")
        section = steps[2:3] if steps[0] == "rail" else steps[:1]
        if set(section) <= set(_HARDWARE):
            yield setting, other


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
