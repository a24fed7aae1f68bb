"""Runs the command in a forked process: saves the half second of CPU that a new interpreter and its imports take."""

import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import apenet_command
from apenet import cli  # noqa: F401 (imported before the fork)

_APENET = Path(sys.executable).with_name("apenet")
_BROKEN_TEST = 70


def run_forked(
    arguments: Sequence[str | Path],
    folder: Path,
    *,
    prepare: Callable[[], None] = lambda: None,
    timeout_s: int = 60,
    is_merged: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Runs `apenet ARGUMENTS...` in `folder` in a session of its own; `prepare` is called in the new process before.

    Merged, the errors are part of the output.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            _be_the_command(
                [str(argument) for argument in arguments],
                folder,
                [out.fileno(), (out if is_merged else err).fileno()],
                prepare,
                timeout_s,
            )
        _, status = os.waitpid(child, 0)
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return subprocess.CompletedProcess([_APENET, *arguments], os.waitstatus_to_exitcode(status), *texts)


def _be_the_command(
    arguments: list[str], folder: Path, outputs: list[int], prepare: Callable[[], None], timeout_s: int
) -> None:
    """Never returns."""
    status = _BROKEN_TEST
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDONLY)
        for number, opened in enumerate([null, *outputs]):
            os.dup2(opened, number)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", 1, closefd=False)  # noqa: SIM115
        sys.argv = [str(_APENET), *arguments]
        signal.alarm(timeout_s)
        os.chdir(folder)
        prepare()
        apenet_command.main()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                status = _BROKEN_TEST + 1
        os._exit(status)
