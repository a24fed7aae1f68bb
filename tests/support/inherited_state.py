"""Replaces the state that the test process inherits: signals, limits, umask, environment.

Acts when it is imported, before apenet and numpy are: these read the environment. Tests and the commands that they
start then see the same state in a terminal, under nohup, in the background of a script, in a batch job and in CI.

    python inherited_state.py PROGRAM [ARGUMENT...]

becomes the program, in that state.
"""

import os
import re
import resource
import signal
import sys
import tempfile
from pathlib import Path
from types import FrameType

# Python itself ignores them, and subprocess restores them in what it starts.
_IGNORED_BY_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ}

# Everything else is a setting of the user's shell, of a batch system, of an MPI or of Python.
_KEPT = re.compile(
    r"""HOME | USER | LOGNAME | PATH | TMPDIR | XDG_CACHE_HOME
    | CCACHE_\w+ | PIP_\w+ | SSL_CERT_\w+ | REQUESTS_CA_BUNDLE | (https?|all|no)_proxy | (HTTPS?|ALL|NO)_PROXY
    | PYTEST_\w+ | GTEST_\w+ | (A|L|T|UB)SAN_OPTIONS | APENET_(ENVELOPE_DRAWS|FABTESTS|WHOLE(_SCHEDULES)?)
    | I_MPI_ROOT""",
    re.VERBOSE,
)
# OpenBLAS: its threads would spin beside the tests' own processes.
_SET = {"LC_ALL": "C.UTF-8", "TZ": "UTC", "OPENBLAS_NUM_THREADS": "1"}

FILES, STACK_BYTES = 1024, 8 << 20


def _outlive(_number: int, _frame: FrameType | None) -> None:
    """Ignores a signal in this process only: unlike SIG_IGN, a handler does not pass to the programs it starts."""


def replace_signals() -> None:
    """Blocks none, and lets no started program ignore one. What this process was told to outlive, it outlives."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in signal.valid_signals() - _IGNORED_BY_PYTHON:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL if number == signal.SIGCHLD else _outlive)


def begin_like_an_interpreter() -> None:
    """Gives a forked process the signal handlers of a new interpreter."""
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def replace_limits() -> None:
    """Sets the soft limits to what is usual, as far as the hard ones allow."""
    usual = {resource.RLIMIT_NOFILE: FILES, resource.RLIMIT_STACK: STACK_BYTES, resource.RLIMIT_CORE: 0}
    for limit in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_DATA, resource.RLIMIT_FSIZE):
        usual[limit] = resource.RLIM_INFINITY
    for limit, wanted in usual.items():
        _, hard = resource.getrlimit(limit)
        bounds = [each for each in (wanted, hard) if each != resource.RLIM_INFINITY]
        resource.setrlimit(limit, (min(bounds, default=resource.RLIM_INFINITY), hard))


def replace_environment() -> None:
    """Keeps what says where things are, drops the settings, and sets those that the tests depend on."""
    given = filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))
    own = Path(sys.base_prefix)
    libraries = [folder for folder in given if own != Path("/usr") and Path(folder).is_relative_to(own)]
    for name in [name for name in os.environ if _KEPT.fullmatch(name) is None]:
        del os.environ[name]
    os.environ.update(_SET)
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 (a container's user may have none)
    if not os.access(home, os.W_OK | os.X_OK):  # a system's user; matplotlib, Open MPI and the cache need a folder
        home = Path(tempfile.gettempdir(), f"apenet-tests-{os.getuid()}")
        home.mkdir(mode=0o700, exist_ok=True)
    os.environ["HOME"] = str(home)
    if libraries:  # this interpreter may need its own ones; other folders hold MPI libraries, or another libfabric
        os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(libraries)


replace_signals()
replace_limits()
replace_environment()
os.umask(0o022)

if __name__ == "__main__":
    for ignored in _IGNORED_BY_PYTHON:
        signal.signal(ignored, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
