"""cmake/show_progress.py, which `make` runs the build with."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "cmake" / "show_progress.py"
BUILD = 'for i in 0 5 20; do echo "[$i/40] Building"; done; '


def run(end: str, stderr: int = subprocess.PIPE):
    command = [sys.executable, SCRIPT, "sh", "-c", BUILD + end]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, text=True, timeout=60, check=False)


def test_a_build_that_succeeds_prints_nothing_to_a_file():
    done = run("true")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_build_that_fails_prints_all():
    done = run("echo broken >&2; exit 3")
    assert done.returncode == 3
    assert "[20/40] Building" in done.stderr
    assert "broken" in done.stderr


def test_a_terminal_shows_steps_and_an_estimate():
    master, terminal = pty.openpty()
    assert run("true", terminal).returncode == 0
    os.close(terminal)
    shown = os.read(master, 4096).decode()
    os.close(master)
    assert re.search(r"\b5 of 40 steps in \d+ s\r", shown)
    assert re.search(r"\b20 of 40 steps in \d+ s, about \d+ s left", shown)
    assert shown.endswith("\r\033[K")
