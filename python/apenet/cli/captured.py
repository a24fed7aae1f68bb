"""A command in a worker of a sweep: run in this process, its JSON object returned, all else silent."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import typer

from apenet.base.errors import ApenetError, InputError, MachineError
from apenet.host.parent import end_with
from apenet.study.study import Outcome, State

Parser = Callable[[], Callable[..., Any]]
"""Makes the parser of the command line: a function of a module, so that a worker can find it."""

USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
_ONE_AT_A_TIME = threading.Lock()  # a worker may have threads; a command has its process to itself
_OUTPUTS = (1, 2)


def prepare(parent: int) -> None:
    """Prepares a worker's process. The sweep ends it, and not the terminal's Ctrl-C; it ends with the sweep."""
    end_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def simulate(parser: Parser, arguments: tuple[str, ...]) -> Outcome:
    """Runs `apenet ARGUMENTS`, which print one JSON object."""
    with _ONE_AT_A_TIME, _silence():
        began = time.perf_counter()
        printed = io.StringIO()
        try:
            with redirect_stdout(printed), redirect_stderr(io.StringIO()):
                status = parser()(args=list(arguments), prog_name="apenet", standalone_mode=False)
        except USAGE_ERROR as error:
            return Outcome(State.REFUSED, error.format_message())  # type: ignore[attr-defined]
        except (InputError, MachineError) as error:
            return Outcome(State.REFUSED, str(error))
        except ApenetError as error:
            return Outcome(State.FAILED, str(error))
        except Exception as error:
            return Outcome(State.FAILED, f"{type(error).__name__}: {error}")
        return _outcome(status if isinstance(status, int) else 0, printed.getvalue(), time.perf_counter() - began)


def _outcome(status: int, printed: str, wall_s: float) -> Outcome:
    try:
        result: Any = json.loads(printed)
    except ValueError:
        result = None
    if not isinstance(result, dict):
        return Outcome(State.FAILED, f"no result; status {status}")
    if status != 0:
        reason = result.get("message") or result.get("outcome") or "it failed"
        return Outcome(State.FAILED, f"{reason}; status {status}")
    return Outcome(State.DONE, "", json.dumps(result), wall_s)


@contextmanager
def _silence() -> Iterator[None]:
    """The descriptors of the outputs lead nowhere: programs write to them, too."""
    kept = [os.dup(number) for number in _OUTPUTS]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in _OUTPUTS:
            os.dup2(nowhere, number)
        yield
    finally:
        for number, copy in zip(_OUTPUTS, kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
