"""Shared by the Python tests: the installed command, and C programs built with the installed MPI."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import inherited_state  # noqa: F401 (acts before the imports that read the environment)
import pytest
from forked import run_forked, start_forked, start_interpreter
from hypothesis import HealthCheck, settings
from shared import make_once, shared_folder

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
# Tests never judge wall time; this limit only ends hanging programs.
HANG_GUARD_S = 300
settings.register_profile("whatever the host does", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("whatever the host does")

WHOLE = Path(__file__).with_name("whole.txt")
UNKNOWN = pytest.StashKey[list[str]]()

Build = Callable[..., Path]
Apenet = Callable[..., subprocess.CompletedProcess[str]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="also the tests of whole.txt, and all cases of the others")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    listed = {line for line in WHOLE.read_text(encoding="utf-8").splitlines() if "::" in line}
    names = {name for item in items for name in (item.nodeid, item.nodeid.partition("[")[0])}
    files = {item.nodeid.partition("::")[0] for item in items if not any("::" in argument for argument in config.args)}
    config.stash[UNKNOWN] = sorted(line for line in listed - names if line.partition("::")[0] in files)
    if config.getoption("--whole"):
        return
    left_out = [item for item in items if {item.nodeid, item.nodeid.partition("[")[0]} & listed]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture
def unknown_in_whole(request: pytest.FixtureRequest) -> list[str]:
    """Lines of whole.txt that name no test, of the files that this run has collected."""
    return request.config.stash[UNKNOWN]


@pytest.fixture
def whole(request: pytest.FixtureRequest) -> bool:
    """Whether all cases are wanted, not a telling part of them."""
    return request.config.getoption("--whole")


@dataclass(frozen=True)
class Started:
    """A running command in its own session, so that a hanging command is ended with all its processes."""

    process: subprocess.Popen[str]

    def read_lines(self, count: int, timeout_s: float = HANG_GUARD_S) -> list[str]:
        """The next lines of its standard output; the command is ended if they do not come."""
        guard = threading.Timer(timeout_s, self.process.kill)
        guard.start()
        lines = [self.process.stdout.readline() for _ in range(count)]
        guard.cancel()
        return lines

    def finish(self, timeout_s: float = HANG_GUARD_S) -> subprocess.CompletedProcess[str]:
        try:
            out, err = self.process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            # SIGINT first: apenet ends its ranks, which lead process groups of their own.
            self.process.send_signal(signal.SIGINT)
            try:
                out, err = self.process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                out, err = self.process.communicate()
            pytest.fail(f"still running after {timeout_s} s\n{out[-4000:]}\n{err[-4000:]}")
        return subprocess.CompletedProcess(self.process.args, self.process.returncode, out, err)


_STREAMS = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace"}


@pytest.fixture(scope="session")
def start_apenet() -> Callable[..., Started]:
    """Starts `apenet ARGUMENTS...` and returns at once."""

    def start(*arguments: str | Path, is_forked: bool = True, **options: object) -> Started:
        begin = start_forked if is_forked else start_interpreter
        return Started(begin(arguments, **{**_STREAMS, **options}))

    return start


@pytest.fixture(scope="session")
def apenet() -> Apenet:
    """Runs `apenet ARGUMENTS...`, forked, to its end; `env` and `prepare` are those of `start_forked`."""

    def run(
        *arguments: str | Path,
        timeout_s: int = HANG_GUARD_S,
        cwd: str | Path = ".",
        **options: object,
    ) -> subprocess.CompletedProcess[str]:
        return run_forked(arguments, cwd, timeout_s=timeout_s, **options)

    return run


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compiles a C or C++ program once a session, by `mpicc`, `mpicc_abi` or `mpicxx` of the wheel."""
    folder = shared_folder(tmp_path_factory, "programs")

    def compile_program(source: Path, compiler: str = "mpicc") -> Path:
        program = folder / source.parent.name / f"{source.stem}-{compiler}"

        def make() -> None:
            options = [
                "-std=c++20" if source.suffix == ".cpp" else "-std=c11",
                "-O1",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-pthread",
            ]
            options += [f"-I{ROOT / 'src' / 'api' / part}" for part in ("compute", "gpu")]
            command = [BIN / compiler, *options, "-o", program, source, "-lm"]
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            assert made.returncode == 0, made.stderr

        program.parent.mkdir(exist_ok=True)
        return make_once(program, make)

    return compile_program
