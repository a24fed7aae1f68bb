"""Waits that only the waiting process can end are sleeps in virtual time: exact, at no real time, without a warning."""

import sys
from pathlib import Path

import pytest

OUTSIDE = Path(__file__).with_name("outside")
HOUR = "3600000"
OVER = [
    "pipe",
    "socket",
    "eventfd",
    "signalfd",
    "timerfd",
    "duplicate",
    "select",
    "ppoll",
    "masked ppoll",
    "epoll",
    "nested epoll",
    "epoll_pwait2",
]
LIMITS = [f"{name} 0 {HOUR}" for name in OVER]
LIMITS.insert(OVER.index("select") + 1, "left 0.000000")
LIMITS += [
    f"sigtimedwait -1 {HOUR}",
    "timer and pipe 1 2000",
    f"semaphore -1 {HOUR}",
    "ready pipe 1 0",
    "ready epoll 1 0",
]
CHILDREN = ["sent 1", "child 1", "grandchild 1", f"beside a child 0 {HOUR}"]
THREADS = ["thread 1 2000", f"no thread 0 {HOUR}"] * 4 + ["read 8 2000"]


@pytest.mark.parametrize(("what", "lines"), [("limits", LIMITS), ("children", CHILDREN), ("threads", THREADS)])
def test_a_wait_for_files_of_the_process_is_a_sleep(apenet, build, what, lines):
    done = apenet("run", "-n", "1", "--", build(OUTSIDE / "own_files.c"), what)
    assert (done.returncode, done.stdout.splitlines()) == (0, lines), done.stderr
    assert "warning: rank 0 slept in real time" not in done.stderr


@pytest.mark.parametrize("ranks", [1, 2])
def test_waits_of_python_for_its_own_threads_and_loops_are_sleeps(apenet, ranks):
    done = apenet("run", "-n", str(ranks), "--", sys.executable, OUTSIDE / "own_waits.py")
    assert done.returncode == 0, done.stderr
    alone = [
        "event False 3600.00",
        "lock False 3600.00",
        "queue empty 3600.00",
        "asyncio.sleep None 3600.00",
        "call_later 7 3600.00",
        "wait_for late 3600.00",
        "gather 11 3600.00",
    ]
    lines = [*alone, "event of a thread True 2", *alone, "to_thread 5 2", "wait_for to_thread 6 3602"]
    if ranks == 1:
        lines.append("process 0 3600")
    for rank in range(ranks):
        assert [line[2:] for line in done.stdout.splitlines() if line.startswith(f"{rank} ")] == lines
    assert "slept in real time" not in done.stderr
