"""A trace of many messages is made in little memory: what the ranks have written is read block by block."""

import subprocess
import sys

import numpy as np

ENTRY = np.dtype(
    "u1, u1, u1, u1, u4, u4, u2, u2, u8, i8, u8, u8, u4, u4"  # as ipc::RecordingEntry
)
SENT, RECEIVED, MATCHED, ENDED, CLOSED = 1, 2, 3, 6, 7
MESSAGES = 400_000  # each of two ranks sends so many to the other
IN_CHUNK = 292
WRITE = """
import resource, sys
from apenet import _core
with open(sys.argv[1], "rb") as file:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _core.write_goal(file.fileno(), 2, "apenet a test", sys.argv[2])
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def recording(file):
    """Each message has 280 bytes here: its send, its receive, what that matched, and the ends of both."""
    for rank in range(2):
        entries = np.zeros(5 * MESSAGES + 1, dtype=ENTRY)
        body = entries[:-1].reshape(MESSAGES, 5)
        body["f0"] = (SENT, RECEIVED, ENDED, MATCHED, ENDED)
        body["f1"] = (1, 0, 0, 1, 0)
        sends = 2 * np.arange(MESSAGES) + 1
        body["f4"] = np.stack([sends, sends + 1, sends, sends + 1, sends + 1], axis=1)
        body["f5"] = 1 - rank
        body["f9"] = 8
        entries["f0"][-1] = CLOSED
        for start in range(0, len(entries), IN_CHUNK):
            part = entries[start : start + IN_CHUNK]
            header = np.array([0x41505243, rank, 24 + part.nbytes, len(part), 0, 0], dtype=np.uint32)
            file.write(header.tobytes() + part.tobytes())


def test_memory_grows_with_a_part_of_what_one_rank_wrote(tmp_path):
    with (tmp_path / "recording").open("wb") as file:
        recording(file)
    trace = tmp_path / "trace.goal"
    done = subprocess.run(
        [sys.executable, "-c", WRITE, tmp_path / "recording", trace], check=True, capture_output=True, timeout=600
    )
    written = (tmp_path / "recording").stat().st_size
    assert written > 190e6
    assert int(done.stdout) * 1024 < 0.3 * written
    with trace.open() as lines:
        assert sum("send 8b" in line for line in lines) == 2 * MESSAGES
