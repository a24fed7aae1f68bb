"""The page of a long run is made in memory that grows slowly with its messages."""

import subprocess
import sys

import apenet

MESSAGES = 100_000  # each is waited for
EXPLAIN = """
import resource, sys
from apenet.explain import explain
def most_bytes():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
explain(sys.argv[1])
small = most_bytes()
explain(sys.argv[2])
print((most_bytes() - small) / 100_000)
"""


def folder(path, messages):
    ranks = [["rank 0 {", "l0: calc 1"], ["rank 1 {", "l0: calc 1"]]
    for number in range(1, messages + 1):
        for rank in range(2):
            sends = number % 2 == rank
            verb, to = ("send", "to") if sends else ("recv", "from")
            ranks[rank].append(f"l{number}: {verb} 64b {to} {1 - rank} // in MPI_{verb.capitalize()}")
            ranks[rank].append(f"l{number} requires l{number - 1}")
    lines = ["num_ranks 2", *(line for rank in ranks for line in [*rank, "}"])]
    trace = path.with_suffix(".goal")
    trace.write_text("\n".join([*lines, ""]))
    apenet.replay(trace, machine="ideal", out=path)
    return path


def test_memory_grows_by_less_than_500_bytes_for_each_message(tmp_path):
    folders = [folder(tmp_path / "small", 10), folder(tmp_path / "large", MESSAGES)]
    done = subprocess.run([sys.executable, "-c", EXPLAIN, *folders], check=True, capture_output=True, timeout=600)
    assert float(done.stdout) < 500
