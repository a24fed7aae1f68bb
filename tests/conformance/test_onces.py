"""Initialisations by pthread_once and std::call_once that wait for each other for ever are reported as deadlocks."""

import re
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("failing_runs") / "onces.cpp"
THREADS = "deadlock: every thread of the ranks waits, and none of them can wake another"
OTHER = "rank 0, thread 2: waits in pthread_once, for another thread"
JOIN = "rank 0: waits in pthread_join for thread 2 to end"
REPORTS = {
    "of-thread": (JOIN, OTHER),
    "call-of-thread": (JOIN, OTHER),
    "itself": ("rank 0: waits in pthread_once, for another thread",),
    "crossed": ("rank 0, threads 1, 2: waits in pthread_once, for another thread",),
    "with-lock": (
        "rank 0: waits in pthread_once, for another thread",
        "rank 0, thread 2: waits in pthread_mutex_lock, for a lock that thread 1 holds",
    ),
    "nested": (JOIN, OTHER),
}


def lines_of(stderr: str) -> list[str]:
    return [re.sub(r" \([^()]*:[0-9]+\)$", "", line.removeprefix("apenet: ").strip()) for line in stderr.splitlines()]


@pytest.mark.parametrize("case", REPORTS)
def test_initialisations_that_wait_for_each_other_are_a_deadlock(apenet, build, case):
    done = apenet("run", "-n", "1", "--", build(PROGRAM, "mpicxx"), case, timeout_s=100)
    lines = lines_of(done.stderr)
    assert done.returncode == 1
    assert tuple(lines[lines.index(THREADS) + 1 :]) == REPORTS[case]


def test_an_initialisation_that_waits_for_a_message_is_a_deadlock(apenet, build):
    done = apenet("run", "-n", "1", "--", build(PROGRAM, "mpicxx"), "with-message", timeout_s=100)
    assert done.returncode == 1
    assert "rank 0: MPI_Recv from rank 0, tag 7" in lines_of(done.stderr)


@pytest.mark.parametrize("case", ["thrown", "forked"])
def test_an_initialisation_that_has_not_ended_is_begun_anew(apenet, build, case):
    done = apenet("run", "-n", "1", "--", build(PROGRAM, "mpicxx"), case, timeout_s=100)
    assert (done.returncode, done.stdout) == (0, "again\n"), done.stderr
