"""Ranks that write what they like into the memory that they share with the simulator, against a whole run."""

import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import apenet as package

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent


@pytest.fixture
def second_thread():
    """A further thread of the simulator's process, as any host program may have."""
    ends = threading.Event()
    thread = threading.Thread(target=ends.wait)
    thread.start()
    yield
    ends.set()
    thread.join()


@pytest.mark.usefixtures("second_thread")
def test_a_rank_cannot_name_a_thread_of_the_simulator_as_its_process(tmp_path):
    """Otherwise its puts would go into the simulator's own memory."""
    program = tmp_path / "names_a_thread"
    command = ["c++", "-std=c++20", f"-I{ROOT / 'src'}", HERE / "names_a_thread.cpp", "-o", program]
    subprocess.run(command, check=True)
    result = package.run([program], n=2, machine="ideal", capture=True, check=False)
    assert (result.outcome, result.exit_status) == ("failed", 1)
    # The put that follows may be noticed first.
    identity = (
        r"rank 1 wrote an invalid identity: process_id = \d+, "
        "expected the process that was started for this rank, or one that it has started"
    )
    put = "rank 1 posted a put of 128 bytes without a key to memory that has not been offered to it by rank 1"
    assert re.search(f"{identity}|{put}", result.message)


NAMES_A_LAUNCHER = """
import os
import sys
from pathlib import Path

folder = Path(sys.argv[1])
(folder / "bin").mkdir()
launcher = folder / "bin" / "mpirun"
launcher.write_text("#!/bin/sh\\ntouch " + str(folder / "executed") + "\\necho 'mpirun (Open MPI) 5.0.10'\\n")
launcher.chmod(0o755)
manager = int(os.environ["PMI_FD"])
os.write(manager, b"cmd=apenet_launcher library=" + bytes(folder / "lib" / "libmpi.so.40") + b"\\n")
print(os.read(manager, 4096).decode())
"""


def test_a_rank_cannot_let_the_simulator_execute_a_program_of_its_own(tmp_path):
    program = tmp_path / "names_a_launcher.py"
    program.write_text(NAMES_A_LAUNCHER, encoding="utf-8")
    result = package.run([sys.executable, program, tmp_path], n=1, machine="ideal", capture=True, check=False)
    assert f"{tmp_path}/bin/mpirun was written after the run had begun" in result.stdout.decode()
    assert not (tmp_path / "executed").exists()


def test_a_rank_that_names_no_process_and_sleeps_ends_the_run(tmp_path):
    """Nothing can be asked of it, so the others cannot go on without it."""
    program = tmp_path / "hides_itself"
    command = ["c++", "-std=c++20", f"-I{ROOT / 'src'}", HERE / "hides_itself.cpp", "-o", program]
    subprocess.run(command, check=True)
    result = package.run([program], n=2, machine="ideal", capture=True, check=False)
    assert (result.outcome, result.exit_status) == ("deadlock", 1)
    assert "every thread of the ranks waits, and none of them can wake another" in result.message
    assert "rank 1: waits in pause for a signal" in result.message


def test_a_rank_cannot_write_the_memory_of_another_by_its_address(tmp_path):
    program = tmp_path / "puts_by_address"
    compiler = Path(sys.executable).with_name("mpicxx")
    command = [compiler, "-std=c++20", f"-I{ROOT / 'src'}", HERE / "puts_by_address.cpp", "-o", program]
    subprocess.run(command, check=True)
    result = package.run([program], n=2, machine="ideal", capture=True, check=False)
    assert (result.outcome, result.exit_status) == ("failed", 1)
    expected = "rank 1 posted a put of 64 bytes without a key to memory that has not been offered to it by rank 0"
    assert expected in result.message
    assert b"overwritten" not in result.stdout
