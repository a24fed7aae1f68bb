"""Waits of tests for steps on a shared network, and for their simulator: each with a deadline."""

import os
import select
import subprocess
import time

import pytest

from apenet.live import messages

DEADLINE_S = 120.0


def until(condition, what: str):
    """Returns what the condition gives, once it gives something."""
    deadline = time.monotonic() + DEADLINE_S
    while not (found := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"{what}: not within {DEADLINE_S:g} s")
        time.sleep(0.05)
    return found


def await_readable(source, what: str) -> None:
    if not select.select([source], [], [], DEADLINE_S)[0]:
        pytest.fail(f"{what}: nothing within {DEADLINE_S:g} s")


def first_line(step: subprocess.Popen[str]) -> str:
    """The first line that a step prints."""
    await_readable(step.stdout, "the first line of a step")
    return step.stdout.readline()


def answer(channel: messages.Channel) -> messages.Message:
    """What the simulator, or a step, says next. Raises ClosedError."""
    await_readable(channel, "an answer")
    message, descriptors = channel.hear()
    for descriptor in descriptors:
        os.close(descriptor)
    return message
