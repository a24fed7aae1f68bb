"""What a test counts as left behind: the segments of its own run, not those of runs beside it."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

MAKE = """
import _posixshmem, os, sys
os.close(_posixshmem.shm_open(sys.argv[1], os.O_CREAT | os.O_RDWR, mode=0o600))
"""


def test_segments_of_other_runs_are_not_counted(surroundings):
    if surroundings.group is None:
        pytest.skip("this user may not choose a group")
    own, others = (f"left_{uuid.uuid4().hex}" for _ in range(2))
    try:
        for name, group in ((own, None), (others, 0)):
            command = [sys.executable, "-c", MAKE, f"/{name}"]
            subprocess.run(command, check=True, env=surroundings.environment, group=group)
        assert surroundings.segments_left() == [own]
    finally:
        for name in (own, others):
            Path("/dev/shm", name).unlink(missing_ok=True)


def test_the_group_ends_with_the_test():
    assert os.getegid() not in range(20_000, 60_000)
