"""Runs the command in a forked process: saves the half second of CPU that a new interpreter and its imports take."""

import contextlib
import faulthandler
import functools
import gc
import importlib
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from inherited_state import begin_like_an_interpreter

import apenet_command
from apenet import cli, machine

_APENET = Path(sys.executable).with_name("apenet")
_BROKEN_TEST = 70
_ALONE = {"stdin": subprocess.DEVNULL, "start_new_session": True}


def start_forked(
    arguments: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    prepare: Callable[[], None] = lambda: None,
    **options: object,
) -> subprocess.Popen:
    """Starts `apenet ARGUMENTS...` in a session of its own; `prepare` is called in the new process before.

    The environment must hold no variable that Python or a library reads while `apenet` is imported. Other options are
    those of Popen.
    """
    _prepare()
    command = [str(_APENET), *map(str, arguments)]
    before = _descriptors()

    def be_the_command() -> None:
        begin_like_an_interpreter()
        for descriptor in _descriptors() - before:
            if descriptor > 2:
                with contextlib.suppress(OSError):  # one was that of the listing
                    os.close(descriptor)  # Popen takes the end of its pipe for the begin of the command
        _be_the_command(command, env, prepare)  # does not return, so nothing is executed

    options = {**_ALONE, "restore_signals": False, **options}
    return subprocess.Popen(command, preexec_fn=be_the_command, **options)  # noqa: PLW1509


@functools.cache
def _prepare() -> None:
    """Imports and builds what each command would by itself: slow libraries, the parser, the checks of machine files."""
    for module in ("matplotlib.pyplot", "scipy.optimize", "apenet.explain.analysis"):
        importlib.import_module(module)
    list(cli.command().commands.values())
    machine("ape16")


def start_interpreter(arguments: Sequence[str | Path], **options: object) -> subprocess.Popen:
    """As `start_forked`, but in a new interpreter."""
    return subprocess.Popen([str(_APENET), *map(str, arguments)], **_ALONE, **options)


def _descriptors() -> set[int]:
    return {int(path.name) for path in Path("/proc/self/fd").iterdir()}


def run_forked(
    arguments: Sequence[str | Path],
    folder: str | Path,
    *,
    env: Mapping[str, str] | None = None,
    prepare: Callable[[], None] = lambda: None,
    timeout_s: int = 60,
    is_merged: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Runs `apenet ARGUMENTS...` as `start_forked` does, to its end. Merged, the errors are part of the output."""

    def prepare_limited() -> None:
        signal.alarm(timeout_s)
        prepare()

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        stderr = subprocess.STDOUT if is_merged else err
        options = {"stdout": out, "stderr": stderr, "cwd": folder}
        status = start_forked(arguments, env=env, prepare=prepare_limited, **options).wait()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return subprocess.CompletedProcess([_APENET, *arguments], status, *texts)


def _be_the_command(command: list[str], env: Mapping[str, str] | None, prepare: Callable[[], None]) -> None:
    """Never returns."""
    status = _BROKEN_TEST
    try:
        faulthandler.disable()
        gc.enable()
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", 1, closefd=False)  # noqa: SIM115
        sys.argv = command
        if env is not None:
            os.environ.clear()
            os.environ.update(env)
        tempfile.tempdir = None
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
