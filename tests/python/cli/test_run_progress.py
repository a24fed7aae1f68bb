"""A run of more than two seconds says on a terminal how far it is, and nothing elsewhere."""

import os
import pty
import re
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

APENET = Path(sys.executable).with_name("apenet")
PROGRAM = Path(__file__).parents[1] / "explain" / "stopped_programs.c"
GUARD_S = 300
LINE = re.compile(r"apenet: \d+ s: \d+\.\d+ \S+ of virtual time, [1-9]\d* messages, [1-9]\d* a second")


@pytest.fixture(scope="module")
def program(build):
    """It sends messages for ever."""
    return build(PROGRAM)


def test_on_a_terminal(program):
    ours, theirs = pty.openpty()
    command = [APENET, "run", "-n", "2", "--", program]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs) as running:
        os.close(theirs)
        guard = threading.Timer(GUARD_S, running.kill)
        guard.start()
        text = ""
        while not LINE.search(text):
            text += os.read(ours, 4096).decode()
        running.send_signal(signal.SIGINT)
        with suppress(OSError):  # the terminal has no writer any more
            while os.read(ours, 4096):
                pass
        guard.cancel()
    os.close(ours)
    assert running.returncode == 130


def test_elsewhere(program):
    command = [APENET, "run", "-n", "2", "--limit-wall", "4", "--", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 124
    assert not LINE.search(done.stderr)
