"""The console script `apenet`: a separate package, so that it handles signals before it imports anything large."""

from __future__ import annotations

# The module `signal` imports ten more modules; a signal that arrives meanwhile would not be handled.
import _signal  # type: ignore[import-not-found]
import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_SIGNALS = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP)
_INTERRUPTED = 130
_BAD_INPUT = 2


def _answer_by(answer: Callable[[int, FrameType | None], None]) -> None:
    for number in _SIGNALS:
        if _signal.getsignal(number) != _signal.SIG_IGN:  # nohup
            _signal.signal(number, answer)


def _leave(_number: int, _frame: FrameType | None) -> None:
    """Exits at once: the command has not begun, or has been cleaned up."""
    os.write(2, b"apenet: interrupted\n")
    os._exit(_INTERRUPTED)


def main() -> None:
    """Runs the command. Exits with one line and status 130 on a signal, status 2 if the package cannot be loaded."""
    _answer_by(_leave)
    # The threads that numpy's library would start spin for a tenth of a second, and no command has work for them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # The objects of the imports stay: a search for garbage among them would take a fifth of the import time.
    gc.disable()
    try:
        from apenet.base.errors import Interrupted  # noqa: PLC0415
        from apenet.cli import main as run_command  # noqa: PLC0415 (half a second)
    except (ImportError, MemoryError, OSError) as error:  # as under a tight ulimit -v
        said = [line for line in str(error).splitlines() if line.strip()] or ["not enough memory (see ulimit -v)"]
        sys.stderr.write(f"apenet: the package cannot be loaded: {said[-1].strip()}\n")
        sys.exit(_BAD_INPUT)
    gc.freeze()
    gc.enable()

    is_interrupted = False

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        raise Interrupted

    try:
        _answer_by(interrupt)
        run_command()
    except (Interrupted, Exception) as error:
        # pydantic replaces an exception that is raised while it builds its validators by one of its own. A run has
        # handlers of its own, and the command that started it raises Interrupted.
        if not is_interrupted and not isinstance(error, Interrupted):
            raise
        _answer_by(_leave)
        sys.stderr.write("apenet: interrupted\n")
        sys.exit(_INTERRUPTED)
