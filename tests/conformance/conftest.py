"""The option that runs mpi4py's test suite whole, and the suite itself, from its source distribution."""

import importlib.metadata
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--whole",
        action="store_true",
        help="all of mpi4py's tests at 1 to 4 ranks, not a telling part of them",
    )


def unpacked_suite() -> Path:
    """The folder `test` of mpi4py's source distribution, in the installed version.

    Kept in the environment; pip gets it from wherever it gets packages.
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
                tar.extractall(folder, filter="data")
            archive.unlink()
            (sources,) = (path for path in Path(folder).iterdir() if path.is_dir())
            try:
                sources.rename(kept)
            except OSError:  # another test run was faster
                shutil.rmtree(sources)
    return kept / "test"


def pytest_configure(config: pytest.Config) -> None:
    # For the generation of tests, which comes before all fixtures.
    config.suite_folder = unpacked_suite


@pytest.fixture(scope="session")
def mpi4py_suite() -> Path:
    return unpacked_suite()
