"""Python scripts, whose ranks are forked from one interpreter: each must see the same state as a fresh process."""

import subprocess
import sys

import pytest

SURROUNDINGS = """
import os, sys
import helper
from mpi4py import MPI
import numpy

class Point:
    pass

def main():
    import pickle
    world = MPI.COMM_WORLD
    assert sys.argv == [sys.argv[0], "one", "two words"]
    assert sys.path[0] == os.path.dirname(os.path.realpath(__file__)) == os.path.dirname(helper.__file__)
    assert sys.modules["__main__"].Point is Point and __name__ == "__main__" and __spec__ is None
    assert isinstance(pickle.loads(pickle.dumps(Point())), Point)
    assert os.getpgid(0) == os.getpid()
    assert not sys.stdin.isatty() and not sys.stdin.read()
    assert "APENET_MAPPING" in os.environ and os.environ["PMI_RANK"] == str(world.rank)
    open_now = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    counts = world.gather(len(open_now))
    draws = world.gather(numpy.random.random())
    if world.rank == 0:
        assert len(set(counts)) == 1, counts
        assert len(set(draws)) == len(draws), draws
        print("passed")

main()
"""


def run(apenet, tmp_path, text, ranks=2, *arguments):
    script = tmp_path / "script.py"
    script.write_text(text, encoding="utf-8")
    return apenet("run", "-n", str(ranks), "--machine", "ape16", "--", "python", script, *arguments)


def test_a_rank_sees_what_a_fresh_process_sees(apenet, tmp_path):
    (tmp_path / "helper.py").write_text("", encoding="utf-8")
    done = run(apenet, tmp_path, SURROUNDINGS, 5, "one", "two words")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["passed"]


def test_a_traceback_is_the_scripts_own(apenet, tmp_path):
    text = "def fail():\n    raise ValueError('on purpose')\n\nfail()\n"
    done = run(apenet, tmp_path, text, 1)
    alone = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, check=False)
    assert done.returncode == alone.returncode == 1
    assert done.stderr.startswith(alone.stderr)


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ("sys.exit(7)", 7),
        ("sys.exit('a message')", 1),
        ("os._exit(9)", 9),
        ("os.kill(os.getpid(), 9)", 137),
        ("os.abort()", 134),
    ],
)
def test_statuses_are_exact(apenet, tmp_path, ending, status):
    done = run(apenet, tmp_path, f"import os, sys\nfrom mpi4py import MPI\n{ending}\n")
    assert done.returncode == status, done.stderr


def test_a_script_that_does_not_compile(apenet, tmp_path):
    done = run(apenet, tmp_path, "def def\n")
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr


@pytest.mark.parametrize(("deed", "status"), [("sys.exit(0)", 0), ("world.send(1, 1 - world.rank)", -11)])
def test_a_forked_child_does_not_disturb_its_parent(apenet, tmp_path, deed, status):
    """It runs mpi4py's end, or calls MPI, which it may not."""
    script = tmp_path / "forks.py"
    script.write_text(
        "import os, sys\nfrom mpi4py import MPI\nworld = MPI.COMM_WORLD\nworld.barrier()\n"
        f"child = os.fork()\nif child == 0:\n    {deed}\n    os._exit(9)\n"
        "status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "world.barrier()\nprint(world.rank, status)\n"
    )
    done = apenet("run", "-n", "2", "--", sys.executable, script)
    assert (done.returncode, done.stdout) == (0, f"0 {status}\n1 {status}\n"), done.stderr
    assert "4 messages, 96 B" in done.stderr
