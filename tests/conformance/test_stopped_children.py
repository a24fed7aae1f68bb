"""Processes that a rank starts, and that a signal stops: their waits, and what their parent hears of it."""

from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("children")

HEARD = {
    "at-once": ["stopped 0.0", "nothing 0.0", "continued 4.0", "ended 24.0"],
    "itself": ["stopped 10.0", "nothing 10.0", "continued 14.0", "ended 24.0"],
    "thread": ["stopped 10.0", "nothing 10.0", "continued 14.0", "ended 24.0"],
    "sibling": ["stopped 15.0", "nothing 15.0", "continued 19.0", "ended 20.0"],
    "waitid": ["stopped 15.0", "nothing 15.0", "continued 19.0", "ended 20.0"],
    "plain": ["ended 40.0"],
}


@pytest.mark.parametrize("how", HEARD)
def test_a_parent_hears_of_a_stop_at_its_time(apenet, build, how):
    done = apenet("run", "-n", "1", "--", build(PROGRAMS / "stopped_child.c"), how)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == HEARD[how]
    assert "warning" not in done.stderr


def test_a_sleep_that_ends_while_the_process_is_stopped_ends_when_it_goes_on(apenet, build):
    """The child writes after sleeps of 10 ms each, and is stopped from 15 to 35 ms."""
    done = apenet("run", "-n", "1", "--", build(PROGRAMS / "stopped_sleeper.c"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["10.0", "35.0", "45.0", "55.0"]
    assert "warning" not in done.stderr
