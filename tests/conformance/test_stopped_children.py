"""Processes that a rank starts, and that a signal stops: their waits, and what their parent hears of it."""

from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("children")

HEARD = {
    "at-once": ["stopped 0.0", "nothing 0.0", "continued 4.0", "ended 24.0"],
    "itself": ["stopped 10.0", "nothing 10.0", "continued 14.0", "ended 24.0"],
    "thread": ["stopped 10.0", "nothing 10.0", "continued 14.0", "ended 24.0"],
    "tkill": ["stopped 10.0", "nothing 10.0", "continued 14.0", "ended 24.0"],
    "unblocks": ["stopped 10.0", "nothing 10.0", "continued 14.0", "ended 24.0"],
    "pidfd": ["stopped 5.0", "nothing 5.0", "continued 9.0", "ended 20.0"],
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


# The result of each wait, and its end: at the signal, but a lock is waited for until it is free.
ENDS = {"sleep": "-1 10.0", "poll": "-1 10.0", "read": "-1 10.0", "pause": "-1 10.0", "lock": "0 30.0"}
CODES = {"exits": 1, "killed": 2, "stops": 5, "stopped": 5}  # CLD_EXITED, CLD_KILLED, CLD_STOPPED


@pytest.mark.parametrize("how", CODES)
@pytest.mark.parametrize("wait", [*ENDS, "waitpid", "untraced"])
def test_a_handler_that_interrupts_a_wait_reads_the_time_of_the_childs_end_or_stop(apenet, build, wait, how):
    """As on Linux, waitpid() returns the child rather than EINTR, if it waits for what has happened."""
    is_heard = wait == "untraced" or how in ("exits", "killed")
    end = ENDS.get(wait, "1 10.0" if is_heard else "0 10.0")
    done = apenet("run", "-n", "1", "--", build(PROGRAMS / "child_signals.c"), wait, how)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == f"{end}, {CODES[how]} 10.0"
    assert "warning" not in done.stderr


@pytest.mark.parametrize(("timer", "ends"), [("itimer", 1), ("timer", 3), ("file", 3)])
def test_a_timer_of_a_stopped_process_is_heard_once_when_it_goes_on(apenet, build, timer, ends):
    """Its ends at 30, 40 and 50 ms: one signal, which counts the others as overruns if it is of timer_create()."""
    done = apenet("run", "-n", "1", "--", build(PROGRAMS / "stopped_timer.c"), timer)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["10.0 1", "20.0 1", f"55.0 {ends}", "60.0 1", "70.0 1"]
    assert "warning" not in done.stderr


def test_signals_of_the_terminal_do_not_stop_an_orphaned_group(apenet, build):
    """The run waited two seconds of the host's time for each, and said after ten that the rank is busy."""
    done = apenet("run", "-n", "1", "--", build(PROGRAMS / "orphaned_group.c"))
    assert (done.returncode, done.stdout) == (0, "3 at 0.200 s\n"), done.stderr
    assert "busy in the host" not in done.stderr


def test_a_parent_that_stops_its_own_child_hears_of_it_at_once(apenet, build):
    """Its calls of kill() last until the host has sent SIGCHLD."""
    done = apenet("run", "-n", "1", "--", build(PROGRAMS / "stops_own_child.c"))
    codes = {"stopped": 5, "goes on": 6, "exits": 1}
    told = [("stopped", 10), ("goes on", 20), ("exits", 50), ("stopped", 10)]
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [f"{codes[what]} at {at_ms}.0" for what, at_ms in told],
    ), done.stderr
