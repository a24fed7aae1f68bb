"""The types of the C++ module that mypy sees are those that the module has."""

import subprocess
import sys
from pathlib import Path

STUB = Path(__file__).parents[2] / "python" / "apenet" / "_core.pyi"


def test_the_stub_is_that_of_the_module(tmp_path):
    made = tmp_path / "core.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "apenet._core", "-o", str(made)]
    subprocess.run(command, check=True)
    assert made.read_text() == STUB.read_text(), f"make it anew: {' '.join(command[:-1])} {STUB.name}"
