"""Signals, and calls by syscall(), in virtual time."""

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "signals"

# Result, error, and virtual time in milliseconds: see signals/both_ways.c.
BOTH_WAYS = """\
sleeps 0 0 20
sleep_is_interrupted 60 0 20
sleeps_until 0 0 20
polls 0 0 20
polls_pipe 0 0 20
ppolls 0 0 20
ppoll_is_interrupted -1 EINTR 20
selects 0 0 20
pselects 0 0 20
epolls 0 0 60
futex_times_out -1 ETIMEDOUT 20
sigtimedwait_ends -1 EAGAIN 20
sigtimedwait_takes 1 0 0
alarms 100 0 20
itimers 607 0 20
waits_for_alarm -1 EINTR 20
suspends -1 EINTR 20
timers 45 0 65
timer_files 35 0 45
dates 12989 0 0
resolution 1 0 0
sets_clock -1 EPERM 0
sets_day -1 EPERM 0
cpu_times 0 0 20
node_name 0 0 0
yields 0 0 0
kills 1 0 0
tgkills 1 0 0
tkills 1 0 0
queues 1 0 0
queues_to_thread 1 0 0
status_of_child 3 0 0
info_of_child 4 0 0
semaphore_times_out -1 EAGAIN 20
event_files 5 0 20
pipes 3 0 20
bad_call -1 EINVAL 0
"""


def test_calls_by_number_answer_as_those_by_name(apenet, build):
    """The program prints a second line for each call whose two answers differ."""
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build(HERE / "both_ways.c"))
    assert (done.returncode, done.stdout) == (0, BOTH_WAYS), done.stderr


def test_a_library_before_the_shim_may_pass_its_calls_on_by_syscall(apenet, build, tmp_path):
    """Each call passes it once, and takes virtual time."""
    library = tmp_path / "counts.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, HERE / "counts_sleeps.c"], check=True)
    program = build(HERE / "is_counted.c")
    done = apenet("run", "-n", "1", "--", program, env={**os.environ, "LD_PRELOAD": str(library)})
    assert (done.returncode, done.stdout) == (0, "0.040 s, 2 counted\n"), done.stderr


# How the wait ended, runs of the handler, when it ran, when the wait ended, and what was left of it, in
# milliseconds; the value that came with the signal, and the sender: see signals/between_ranks.c.
BETWEEN_RANKS = """\
nanosleep EINTR 1 20 20 30 0 rank 0
clock_nanosleep EINTR 1 20 20 30 0 rank 0
usleep EINTR 1 20 20 0 42 rank 0
poll EINTR 1 20 20 0 0 rank 0
select EINTR 1 20 20 30 0 rank 0
poll_of_pipe EINTR 1 20 20 0 42 rank 0
sigtimedwait 0 0 0 20 0 0 -
recv 0 1 20 40 0 0 rank 0
ignored 0 0 0 50 0 -1 -
"""


@pytest.mark.parametrize("ranks", [2, 16])
def test_ranks_signal_each_other_at_a_virtual_time(apenet, build, ranks):
    done = apenet("run", "-n", str(ranks), "--machine", "ape16", "--", build(HERE / "between_ranks.c"))
    wanted = [f"{rank} {line}" for line in BETWEEN_RANKS.splitlines() for rank in range(1, ranks)]
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, sorted(wanted)), done.stderr
    assert "may not repeat" not in done.stderr


def test_a_signal_from_outside_ends_a_sleep(apenet, build, tmp_path):
    """What the sleep took and what was left of it are its length; at which time it ended, the host decides."""
    program = build(HERE / "from_outside.c")
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", program, tmp_path / "sleeps", tmp_path / "handled")
    assert (done.returncode, done.stdout) == (0, "-1 EINTR, handled 1, early 1, sum 1000.000\n"), done.stderr
    warning = "a signal from outside the ranks has ended a sleep of rank 1: the times of this run may not repeat"
    assert done.stderr.count(warning) == 1


def test_a_thread_sets_a_handler_while_another_one_loads_a_library(apenet, tmp_path):
    """The loader's lock is taken then."""
    library = tmp_path / "libwaits.so"
    source = HERE / "handler_in_initialiser.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-pthread", "-o", library, source], check=True)
    program = "import mpi4py.MPI, ctypes, sys; ctypes.CDLL(sys.argv[1])"
    done = apenet("run", "-n", "2", "--", "python", "-c", program, library)
    assert (done.returncode, done.stdout) == (0, "initialised\n" * 2), done.stderr
