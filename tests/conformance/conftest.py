"""Detection of what a run leaves behind; mpi4py's test suite, from its source distribution."""

import contextlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

MARK = "APENET_TEST_MARK"


def unpacked_suite() -> Path:
    """The folder `test` of mpi4py's source distribution, in the installed version.

    It is kept in the environment; pip downloads it from its configured source.
    """
    version = importlib.metadata.version("mpi4py")
    kept = Path(sys.prefix) / "conformance" / f"mpi4py-{version}"
    if not kept.exists():
        kept.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
            command += ["--no-deps", "--no-binary", "mpi4py", "--dest", folder, f"mpi4py=={version}"]
            subprocess.run(command, check=True)
            (archive,) = Path(folder).glob("*.tar.gz")
            with tarfile.open(archive) as tar:
                # Python before 3.11.4 has no filters.
                tar.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
            archive.unlink()
            (sources,) = (path for path in Path(folder).iterdir() if path.is_dir())
            try:
                sources.rename(kept)
            except OSError:  # another test run was faster
                shutil.rmtree(sources)
    return kept / "test"


def pytest_configure(config: pytest.Config) -> None:
    # Needed for the generation of tests, which precedes all fixtures.
    config.suite_folder = unpacked_suite


@pytest.fixture(scope="session")
def mpi4py_suite() -> Path:
    return unpacked_suite()


@dataclass(frozen=True)
class Surroundings:
    """Environment of one run, with a mark by which its remaining processes are recognised.

    group: the group of the run's processes, and so of the segments that they make; None if this user may not choose it.
    """

    mark: str
    folder: Path
    shared_memory: frozenset[str]
    group: int | None

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, MARK: self.mark, "TMPDIR": str(self.folder)}

    def processes_left(self) -> list[str]:
        left = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if f"{MARK}={self.mark}".encode() in (entry / "environ").read_bytes():
                    left.append(f"{entry.name}: {(entry / 'cmdline').read_bytes()!r}")
            except OSError:
                continue  # has ended, or belongs to another user
        return left

    def segments_left(self) -> list[str]:
        """The run's segments that no process has mapped; other runs leave some, too, or have not mapped theirs yet."""
        new = {path.name: path for path in Path("/dev/shm").iterdir() if path.name not in self.shared_memory}
        mapped = b"".join(self._maps())
        return [name for name, path in new.items() if name.encode() not in mapped and self._is_own(path)]

    def _is_own(self, segment: Path) -> bool:
        try:
            return self.group is None or segment.stat().st_gid == self.group
        except FileNotFoundError:
            return False

    @staticmethod
    def _maps() -> list[bytes]:
        texts = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    texts.append((entry / "maps").read_bytes())
                except OSError:
                    continue
        return texts

    def check_nothing_left(self) -> None:
        give_up = time.monotonic() + 5
        while time.monotonic() < give_up and (self.processes_left() or self.segments_left()):
            time.sleep(0.1)
        assert self.processes_left() == []
        assert self.segments_left() == []
        assert list(self.folder.iterdir()) == []


@contextlib.contextmanager
def group_of_its_own() -> Iterator[int | None]:
    """Gives this process, and all that it starts, a group that no other test has."""
    before = os.getresgid()
    group = 20_000 + os.getpid() % 40_000
    try:
        os.setresgid(group, group, before[0])
    except OSError:
        yield None
        return
    try:
        yield group
    finally:
        os.setresgid(*before)


@pytest.fixture
def surroundings(tmp_path):
    folder = tmp_path / "tmp"
    folder.mkdir()
    before = frozenset(path.name for path in Path("/dev/shm").iterdir())
    with group_of_its_own() as group:
        here = Surroundings(uuid.uuid4().hex, folder, before, group)
        yield here
        here.check_nothing_left()
