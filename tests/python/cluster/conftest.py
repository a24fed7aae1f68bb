"""The program of the jobs."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def exchange(tmp_path_factory):
    program = tmp_path_factory.mktemp("exchange") / "exchange"
    compiler = Path(sys.executable).with_name("mpicc")
    subprocess.run([compiler, "-O1", "-o", program, Path(__file__).with_name("exchange.c")], check=True)
    return program
