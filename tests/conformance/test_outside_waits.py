"""Sleeps of a rank that waits for something outside the simulation take real time, others take none."""

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

OUTSIDE = Path(__file__).with_name("outside")
SLEPT = "slept in real time"


def test_a_rank_finds_what_comes_from_outside_within_its_limit(apenet, build, tmp_path):
    program = build(OUTSIDE / "waits_outside.c")
    done = apenet("run", "-n", "1", "--out", tmp_path / "run", "--", program, tmp_path, "all", "all")
    assert (done.returncode, done.stdout) == (0, "336 cases\n"), done.stderr
    warnings = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["warnings"]
    slept = next(one for one in warnings if one.startswith(f"rank 0 {SLEPT}"))
    # A process that the host holds up while it starts may be among them.
    causes = slept.removeprefix(f"rank 0 {SLEPT}, waiting for ").replace("another process, ", "")
    assert causes == (
        "a connection that was refused, a lock, data in a pipe, socket or file, a file: "
        "the times of this run may not repeat"
    )


def test_libraries_of_python_wait_for_processes_threads_and_servers(apenet):
    done = apenet("run", "-n", "1", "--", sys.executable, OUTSIDE / "waits_outside.py")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 19
    assert [line for line in lines if not line.endswith(": right")] == []


@pytest.mark.parametrize("beside", ["none", "idle"])
def test_sleeps_beside_an_idle_process_take_no_real_time(apenet, build, beside):
    done = apenet("run", "-n", "1", "--", build(OUTSIDE / "sleeps_beside.c"), beside)
    assert (done.returncode, done.stdout) == (0, "3600.000 s\n"), done.stderr
    assert SLEPT not in done.stderr


def test_a_process_for_which_the_rank_does_not_wait_delays_it_for_a_limited_time(apenet, build):
    program = build(OUTSIDE / "sleeps_beside.c")
    done = apenet("run", "-n", "1", "--stall-timeout", "0.3", "--", program, "ticks")
    assert (done.returncode, done.stdout) == (0, "3600.000 s\n"), done.stderr
    waits = [line.removeprefix("apenet: warning: ") for line in done.stderr.splitlines() if SLEPT in line]
    assert waits == [
        "rank 0 slept in real time, waiting for a child process: the times of this run may not repeat",
        "rank 0 slept in real time for as long as the stall timeout, waiting for a child process, and nothing changed: "
        "further sleeps took no real time; --stall-timeout allows for more",
    ]


def test_ranks_communicate_while_one_waits_for_its_child(apenet, build):
    done = apenet("run", "-n", "4", "--", build(OUTSIDE / "asks_beside.c"))
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr
    assert SLEPT not in done.stderr
    assert "busy in the host" not in done.stderr


@pytest.mark.parametrize("check", ["access", "stat"])
def test_a_check_for_a_file_between_two_steps_of_work_takes_no_real_time(apenet, build, tmp_path, check):
    done = apenet("run", "-n", "2", "--", build(OUTSIDE / "stop_file.c"), check, tmp_path / "STOP")
    assert (done.returncode, done.stdout) == (0, "0, 1000 s\n"), done.stderr
    assert SLEPT not in done.stderr


@pytest.mark.parametrize("check", ["chmod", "freopen", "bind", "dlopen"])
def test_a_rank_finds_what_a_process_changes_by_a_call_that_fails_until_then(apenet, build, tmp_path, check):
    done = apenet("run", "-n", "1", "--", build(OUTSIDE / "checks_outside.c"), tmp_path, check)
    assert (done.returncode, done.stdout) == (0, "1 things\n"), done.stderr
    assert SLEPT in done.stderr


@pytest.mark.parametrize("call", ["getpgid", "getsid", "getpriority", "sched_getscheduler", "sched_getparam"])
def test_a_rank_finds_that_a_process_has_ended_by_a_call_that_fails_then(apenet, build, tmp_path, call):
    process = subprocess.Popen(["sleep", "100"])

    def ends_it():
        while not (tmp_path / "begun").exists():
            time.sleep(0.01)
        time.sleep(0.3)
        process.kill()
        process.wait()

    ending = threading.Thread(target=ends_it)
    ending.start()
    program = build(OUTSIDE / "ends_outside.c")
    done = apenet("run", "-n", "1", "--", program, call, process.pid, tmp_path / "begun")
    (tmp_path / "begun").touch()
    ending.join()
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr
    assert SLEPT in done.stderr


def test_a_rank_finds_what_a_process_makes_by_any_call_that_checks_for_it(apenet, build, tmp_path):
    done = apenet("run", "-n", "1", "--", build(OUTSIDE / "checks_outside.c"), tmp_path, "all")
    assert (done.returncode, done.stdout) == (0, "33 things\n"), done.stderr
    assert SLEPT in done.stderr


def test_a_rank_finds_what_comes_from_outside_by_calls_that_the_shim_does_not_replace(apenet, build, tmp_path):
    program = build(OUTSIDE / "any_call.c")
    with subprocess.Popen([program, tmp_path, "all", "outside"]) as outside:
        try:
            done = apenet("run", "-n", "1", "--", program, tmp_path, "all")
        finally:
            outside.kill()
    assert (done.returncode, done.stdout) == (0, "20 checks\n"), done.stderr
    assert SLEPT in done.stderr


BEATS = ["write", "append", "replace", "allocate", "print the date", "read the load", "read its size", "change a file"]
BEATS += ["change an open file", "ask about itself"]


@pytest.mark.parametrize("beat", BEATS)
def test_a_loop_that_waits_for_nothing_takes_no_real_time(apenet, build, tmp_path, beat):
    done = apenet("run", "-n", "1", "--", build(OUTSIDE / "heartbeats.c"), tmp_path / "file", beat)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "1000.000 s"), done.stderr
    assert "real time" not in done.stderr


@pytest.mark.parametrize(
    ("what", "cause"),
    [
        ("child", "a child process"),
        ("there", "a file"),
        ("gone", "a file"),
        ("taken", "a file"),
        ("made", "a file"),
        ("listed", "a file"),
        ("byte", "data in a pipe, socket or file"),
    ],
)
def test_a_run_says_that_checks_without_a_sleep_end_at_a_time_of_the_host(apenet, build, tmp_path, what, cause):
    done = apenet("run", "-n", "2", "--", build(OUTSIDE / "checks_without_sleep.c"), what, tmp_path / "file")
    assert done.returncode == 0, done.stderr
    warning = f"rank 0 checked {cause} until it changed, at a time of the host: the times of this run may not repeat"
    assert warning in done.stderr


def test_what_the_run_itself_makes_comes_at_no_time_of_the_host(apenet, build, tmp_path):
    done = apenet("run", "-n", "2", "--", build(OUTSIDE / "checks_without_sleep.c"), "own", tmp_path / "file")
    assert done.returncode == 0, done.stderr
    assert "may not repeat" not in done.stderr


def test_calls_on_sockets_with_a_time_limit_take_it_in_virtual_time(apenet, build):
    done = apenet("run", "-n", "1", "--", build(OUTSIDE / "socket_limits.c"))
    kinds = ["read", "readv", "recv", "recvmsg", "accept", "write", "sendmsg"]
    assert (done.returncode, done.stdout) == (0, "".join(f"{kind} 1.000 s\n" for kind in kinds)), done.stderr


@pytest.mark.parametrize("options", [(), ("--ip",)])
def test_calls_that_do_not_wait_have_no_time_limit(apenet, build, options):
    program = build(OUTSIDE / "no_limited_waits.c")
    done = apenet("run", "-n", "1", "--machine", "ape16", *options, "--", program)
    assert (done.returncode, done.stdout) == (0, "0.000 s\n"), done.stderr


@pytest.mark.parametrize("means", ["queue", "semaphore"])
def test_ranks_meet_in_waits_with_a_time_limit(apenet, build, means):
    done = apenet("run", "-n", "2", "--", build(OUTSIDE / "limited_meetings.c"), means)
    assert (done.returncode, done.stdout.split()) == (0, ["met", "met"]), done.stderr


# Loops that give up after 60 s of virtual time, and find what comes after a second of the host.
LOOPS = {
    "a shell that asks itself": 'for i in $(seq 600); do [ -e "$1" ] && exit 0; sleep 0.1; done; exit 1',
    "a shell that asks a program": 'for i in $(seq 600); do grep -qs x "$1" && exit 0; sleep 0.1; done; exit 1',
    "a shell that asks a pipeline": 'for i in $(seq 600); do cat "$1" 2>&1|grep -q ^x && exit; sleep .1; done; exit 1',
    "awk": """awk -v f="$1" 'BEGIN { for (; i < 600; ++i) { if (!system("test -e " f)) exit 0; system("sleep 0.1") }
        exit 1 }'""",
    "make": r"""printf 'all:\n\t@for i in $$(seq 600); do [ -e %s ] && exit 0; sleep 0.1; done; exit 1\n' "$1" |
        make -s -f -""",
}
SHELL = "import subprocess, sys; from mpi4py import MPI; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
ASKS = """
import subprocess, sys, time
from mpi4py import MPI
open(sys.argv[2] + ".begun", "w").close()
for _ in range(600):
    if subprocess.call(["test", "-e", sys.argv[2]]) == 0:
        sys.exit(0)
    time.sleep(0.1)
sys.exit(1)
"""
# Makes the file a second after the loop has begun.
MAKER = 'until [ -e "$1.begun" ]; do sleep 0.02; done; sleep 1; echo x > "$1"'


@pytest.mark.parametrize("loop", [*LOOPS, "python"])
def test_loops_that_check_or_sleep_by_programs_of_their_own_wait_for_the_host(apenet, tmp_path, loop):
    file = tmp_path / "file"
    if loop == "python":
        command = ["-c", ASKS, "", file]
    else:
        command = ["-c", SHELL, "sh", "-c", f': > "$1.begun"; {LOOPS[loop]}', "sh", file]
    with subprocess.Popen(["sh", "-c", MAKER, "sh", file]):
        done = apenet("run", "-n", "1", "--", sys.executable, *command)
    assert done.returncode == 0, done.stderr
    assert "may not repeat" in done.stderr


# Steps that are each a process of their own, of which nothing is recognised once virtual time has begun.
STEPS = {
    "xargs": """seq 600 | xargs -I{} sh -c '[ -e "$0" ] && exit 255; sleep 0.1' "$1"; [ -e "$1" ]""",
    "itself": """printf '[ -e "$2" ] && exit; [ $1 -gt 600 ] && exit 1
        sleep 0.1; exec sh "$0" $(($1 + 1)) "$2"' > "$1.sh"
        sh "$1.sh" 0 "$1" """,
}


@pytest.mark.parametrize("loop", STEPS)
def test_sleeps_of_a_script_before_virtual_time_take_real_time(apenet, tmp_path, loop):
    file = tmp_path / "file"
    script = f': > "$1.begun"; {STEPS[loop]} && exec "$2" -c "from mpi4py import MPI"'
    with subprocess.Popen(["sh", "-c", MAKER, "sh", file]):
        done = apenet("run", "-n", "1", "--", "sh", "-c", script, "sh", file, sys.executable)
    assert done.returncode == 0, done.stderr
    assert " us of virtual time" in done.stderr


def test_programs_that_fail_between_sleeps_of_work_cost_no_more_real_time_than_the_stall_timeout(apenet):
    program = (
        "import subprocess, time; from mpi4py import MPI\nfor _ in range(5): subprocess.call('false'); time.sleep(60)"
    )
    done = apenet("run", "-n", "1", "--stall-timeout", "0.3", "--", sys.executable, "-c", program)
    assert done.returncode == 0, done.stderr
    assert "for as long as the stall timeout, waiting for another answer of a program" in done.stderr


BESIDE_A_THREAD = """
import os, sys, threading
from mpi4py import MPI
threading.Thread(target=threading.Event().wait, daemon=True).start()
lock = threading.Lock()
lock.acquire()
open(sys.argv[1] + "/ready", "w").close()
end = MPI.Wtime() + 100
while not os.access(sys.argv[1] + "/made", os.F_OK) and MPI.Wtime() < end:
    lock.acquire(timeout=0.01)
print("found" if MPI.Wtime() < end else "gave up")
"""


def test_waits_with_a_limit_beside_a_thread_take_real_time_too(apenet, tmp_path):
    """They are in the order of the rank's threads."""

    def makes_file():
        while not (tmp_path / "ready").exists():
            time.sleep(0.01)
        time.sleep(0.5)
        (tmp_path / "made").touch()

    threading.Thread(target=makes_file, daemon=True).start()
    done = apenet("run", "-n", "1", "--", sys.executable, "-c", BESIDE_A_THREAD, tmp_path)
    assert (done.returncode, done.stdout) == (0, "found\n"), done.stderr
    assert SLEPT in done.stderr


def test_a_poll_of_a_fifo_beside_a_thread_lasts_as_long_as_its_limit(apenet, build, tmp_path):
    """The thread's sleep ends meanwhile, and does not move the limit."""
    done = apenet("run", "-n", "1", "--", build(OUTSIDE / "fifo_beside_thread.c"), tmp_path / "fifo")
    assert (done.returncode, done.stdout) == (0, "0 20.0\n"), done.stderr
