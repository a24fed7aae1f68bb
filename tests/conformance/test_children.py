"""Processes that a rank starts act in its order: their clocks and sleeps are virtual, and their end has a time."""

import sys
from pathlib import Path

PROGRAMS = Path(__file__).with_name("children")

# The name of a case, the virtual time that it takes in ms, and what the program finds.
CASES = [
    ("fork", 250, 3),
    ("polls", 320, 8),
    ("any of four", 400, 1302),
    ("programs", 2000, 0),
    ("programs at once", 200, 0),
    ("computes", 0, 0),
    ("killed", 500, 9),
    ("handles", 500, 7),
    ("stopped", 500, 0),
    ("its end ends a sleep", 300, 1),
    ("system", 100, 5),
    ("popen", 200, 42),
    ("children of a child", 400, 6),
    ("vfork", 150, 0),
    ("no program", 0, 9),
    ("waitid", 600, 3),
]


def test_children_take_virtual_time(apenet, build):
    program = build(PROGRAMS / "children.c")
    done = apenet("run", "-n", "1", "--", program)
    assert done.returncode == 0, done.stderr
    found = [line.replace(",", ":").split(":") for line in done.stdout.splitlines()]
    seen = [(name, round(float(time.split()[0]), 1), int(value)) for name, time, value in found]
    assert seen == CASES
    assert apenet("run", "-n", "1", "--", program).stdout == done.stdout


def test_a_rank_reads_its_child_in_virtual_time(apenet, build):
    done = apenet("run", "-n", "1", "--", build(PROGRAMS / "pipes.c"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "read: 100.0 ms, 1",
        "read: 100.0 ms, 2",
        "end: 100.0 ms, 2",
        "limit: 30.0 ms, 0",
        "poll: 70.0 ms, 1",
        "left: 0.0 ms, 1",
        "select: 100.0 ms, 9900",
        "two: 100.0 ms, 2",
        "child: 100.0 ms, 1",
        "children: 200.0 ms, 0",
    ]
    assert "warning" not in done.stderr


def test_children_read_from_their_rank_in_virtual_time(apenet, build):
    done = apenet("run", "-n", "1", "--", build(PROGRAMS / "fed.c"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "coprocess: 107.0 ms, 2",
        "coprocess: 107.0 ms, 4",
        "coprocess: 107.0 ms, 6",
        "its end: 50.0 ms, 0",
        "cat: 0.0 ms, 120",
        "limit: 10.0 ms, 1",
        "byte: 0.0 ms, 121",
        "no more: 20.0 ms, 0",
        "a mebibyte: 0.0 ms, 1048576",
        "pipeline: 200.0 ms, 5",
        "a full pipe: 83.0 ms, 100",
        "parts: 17.0 ms, 100",
        "socket pair: 30.0 ms, 6",
        "epoll, before: 10.0 ms, 0",
        "epoll: 30.0 ms, 1",
        "of epoll: 0.0 ms, 8",
        "eventfd: 40.0 ms, 3",
    ]
    assert "warning" not in done.stderr


def test_python_feeds_its_subprocesses_in_virtual_time(apenet):
    done = apenet("run", "-n", "1", "--", sys.executable, PROGRAMS / "communicates.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "cat: 0.0 ms, 300000",
        "shell: 200.0 ms, ['a', 'b', 'c']",
        "coprocess: 100.0 ms, ONE",
        "coprocess: 100.0 ms, TWO",
        "coprocess: 100.0 ms, THREE",
        "its end: 0.0 ms, 0",
        "pipeline: 100.0 ms, 1",
        "pipeline: 100.0 ms, 2",
        "pipeline: 100.0 ms, 3",
        "timeout: 500.0 ms, expired",
    ]
    assert "warning" not in done.stderr


def test_sleeps_between_polls_keep_their_length(apenet, build):
    """The host tells a sleeping rank of its child's end at any time; that is not the child's end in virtual time."""
    done = apenet("run", "-n", "1", "--", build(PROGRAMS / "polls.c"))
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.splitlines()) == {"10 polls, 1001.00 us"}
    assert len(done.stdout.splitlines()) == 40


def test_what_a_program_does_at_the_begin_of_a_child_harms_neither(apenet, build):
    """Its handler waits, locks and reads the clock where nothing is ordered yet."""
    program = build(PROGRAMS / "fork_handlers.c")
    done = apenet("run", "-n", "2", "--", program)
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["0: 0 0", "1: 0 0"]), done.stderr
