"""Ranks that wait for each other in the host for ever are reported; what can go on from outside is waited for."""

import json
import re
import socket
import sys
from pathlib import Path

import pytest

FAILING = Path(__file__).with_name("failing_runs")
HEADLINE = "deadlock: every thread of the ranks waits, and none of them can wake another"
IDLE_HEADLINE = "deadlock: every process waits and the network is empty"
WAITS = {
    "join": [
        "ranks 0, 1: waits in pthread_join for thread 2 to end",
        "ranks 0, 1, thread 2: waits in pthread_cond_wait, for another thread",
    ],
    "own-lock": ["ranks 0, 1: waits in pthread_mutex_lock, for a lock that thread 1 holds"],
    "own-pipe": ["ranks 0, 1: reads from a pipe"],
    "socket-pair": ["ranks 0, 1: reads from a Unix socket"],
    "socket-of-a-child": [
        "rank 0, process 'sleeps_in_host-': reads from a Unix socket, which rank 0 has open",
        "ranks 0, 1: reads from a Unix socket",
        "rank 1, process 'sleeps_in_host-': reads from a Unix socket, which rank 1 has open",
    ],
    "file-locks": [
        "rank 0: waits for a lock on the file {folder}/1.lock, which rank 1 has open",
        "rank 1: waits for a lock on the file {folder}/0.lock, which rank 0 has open",
    ],
    "fifos": [
        "rank 0: reads from the fifo {folder}/0.fifo, which rank 1 has open",
        "rank 1: reads from the fifo {folder}/1.fifo, which rank 0 has open",
    ],
}


@pytest.fixture
def start(start_apenet, build, tmp_path):
    """Starts a case of the program that sleeps in the host."""
    program = build(FAILING / "sleeps_in_host.c")

    def start_program(case: str, when: str, *options: str, ranks: int = 2, argument: str | Path = tmp_path):
        command = ("run", "-n", str(ranks), *options, "--", program, case, str(argument), when)
        return start_apenet(*command)

    return start_program


@pytest.fixture
def run(start):
    return lambda *arguments, **options: start(*arguments, **options).finish(100)


def report_of(stderr: str, headline: str = HEADLINE) -> list[str]:
    lines = [line.removeprefix("apenet: ") for line in stderr.splitlines()]
    return [line.strip() for line in lines[lines.index(headline) + 1 :]]


@pytest.mark.parametrize("case", WAITS)
def test_what_each_thread_waits_for_is_reported(run, tmp_path, case):
    done = run(case, "all")
    assert done.returncode == 1
    assert report_of(done.stderr) == [line.format(folder=tmp_path) for line in WAITS[case]]


KEPT_LOCKS = {
    "mutex": "pthread_mutex_lock, for a lock that a thread or process held that has ended",
    "reader-of-writer": "pthread_rwlock_rdlock, for a read-write lock that a thread or process held that has ended",
    "writer-of-writer": "pthread_rwlock_wrlock, for a read-write lock that a thread or process held that has ended",
    "writer-of-reader": "pthread_rwlock_wrlock, for a read-write lock",
    "read-twice": "pthread_rwlock_rdlock, for a read-write lock",
    "own": "pthread_mutex_lock, for a lock that thread 1 holds",
}


@pytest.mark.parametrize("which", KEPT_LOCKS)
def test_the_kind_of_a_lock_and_who_has_kept_it_are_named(apenet, build, which):
    program = build(FAILING / "locks_kept.c")
    done = apenet("run", "-n", "2", "--stall-timeout", "0.5", "--", program, which, timeout_s=100)
    assert done.returncode == 1
    assert f"rank 0: waits in {KEPT_LOCKS[which]}" in report_of(done.stderr)


EACH_WAY = [  # regular expressions for the ranks of waits_in_host.c
    "rank 0: waits in sigwait for SIGUSR1",
    "rank 1: waits in pause for a signal",
    "rank 2: waits in sigsuspend for a signal",
    "rank 3: reads from the signalfd, for SIGUSR1",
    "rank 4: waits in semop for the System V semaphores without a key",
    "rank 5: waits in msgrcv for a message of the System V queue without a key",
    r"rank 6: waits in mq_receive for a message of the queue /apenet-test\.\d+ \(deleted\)",
    "rank 7: reads from the eventfd",
    "rank 8: reads from the inotify",
    r"rank 9: waits for a connection to the Unix socket /tmp/apenet-test\.\d+",
    "ranks 10, 11: is blocked in opening {folder}/fifo, such as a fifo whose other end is not open",
    "rank 12: reads from a pipe",
    "rank 13: waits in poll",
]
CHILD = "waits for a process that it has started: waits_in_host.*"
STOPPED = "rank 14, process 'waits_in_host.*': is stopped by a signal, and SIGCONT would let it go on"
CHILDREN = {
    16: [STOPPED, f"ranks 14, 15: {CHILD}", "rank 15, process 'waits_in_host.*': is stopped by a debugger"],
    15: [f"rank 14: {CHILD}", STOPPED],
}


@pytest.mark.parametrize("waiting", CHILDREN)
def test_each_way_to_wait_in_the_host_for_ever_is_reported(apenet, build, tmp_path, waiting):
    """All ranks wait there, or the last one waits in MPI for the others."""
    program = build(FAILING / "waits_in_host.c")
    options = ("-n", "16", "--stall-timeout", "0.5")
    done = apenet("run", *options, "--", program, tmp_path, str(waiting), timeout_s=100)
    assert done.returncode == 1
    lines = report_of(done.stderr, HEADLINE if waiting == 16 else IDLE_HEADLINE)
    ways = EACH_WAY + CHILDREN[waiting]
    lines = lines[max(len(lines) - len(ways), 0) :]
    patterns = [way.format(folder=re.escape(str(tmp_path))) for way in ways]
    wrong = [(line, way) for line, way in zip(lines, patterns, strict=True) if not re.fullmatch(way, line)]
    assert wrong == []


def test_the_files_of_polls_are_named(apenet, build):
    """An eventfd or timerfd is named if the call waits for nothing else: libraries wake themselves by them."""
    done = apenet("run", "-n", "15", "--", build(FAILING / "polls_in_host.c"), timeout_s=100)
    assert done.returncode == 1, done.stderr
    files = ["the eventfd", "the timerfd", "a pipe", "the inotify", "a pipe"]
    wanted = [f"waits in {call} for {file}" for file in files for call in ("poll", "select", "epoll_wait")]
    found = {rank: line.split(": ")[1] for line in report_of(done.stderr) for rank in numbers_of(line)}
    assert [found[rank] for rank in range(15)] == wanted


def numbers_of(line: str) -> list[int]:
    """The ranks of "ranks 4, 5: waits in ..."."""
    return [int(number) for number in re.findall(r"\d+", line.partition(":")[0])]


def test_a_deadlock_of_locks_ends_at_one_time(run, tmp_path):
    """When the run ends one rank, another one gets its lock, and must not act any more."""
    ends = set()
    for number in range(6):
        folder = tmp_path / str(number)
        done = run("file-locks", "all", "--out", folder, argument=tmp_path)
        assert done.returncode == 1, done.stderr
        ranks = json.loads((folder / "run.json").read_text())["ranks"]
        ends.add(tuple(rank["virtual_time_us"] for rank in ranks))
    assert len(ends) == 1


def test_the_rank_that_has_a_shared_lock_is_named(apenet, build):
    done = apenet("run", "-n", "3", "--ranks-per-node", "3", "--", build(FAILING / "shared_lock.c"))
    assert done.returncode == 1, done.stderr
    assert "ranks 0, 2: waits in pthread_mutex_lock, for a lock that rank 1 holds" in done.stderr
    assert "rank 1: waits in pthread_mutex_lock, for a lock that thread 1 holds" in done.stderr


def test_threads_with_an_end_of_line_in_their_names_are_seen(apenet, build):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build(FAILING / "named_across_lines.c"))
    assert done.returncode == 1, done.stderr
    assert "ranks 0, 1: waits in pthread_join for thread 2 to end" in done.stderr


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_rank_may_sleep_for_ever_before_and_after_mpi(run, when):
    done = run("join", when)
    assert done.returncode == 1
    ended = ["ranks 0, 1: finished"] if when == "after" else []
    assert report_of(done.stderr) == ended + WAITS["join"]
    assert done.stdout == ("done\n" if when == "after" else "")
    assert "still ran" not in done.stderr


def test_a_rank_alone_may_wait_for_a_child_that_waits_for_it(run):
    done = run("child", "all", ranks=1)
    assert done.returncode == 1
    own, child = sorted(report_of(done.stderr))
    assert own == "rank 0, process 'sleeps_in_host-': reads from a pipe, which rank 0 has open"
    assert child == "rank 0: waits for a process that it has started: sleeps_in_host-"


def test_others_go_on_while_a_child_of_a_rank_waits_for_it(run):
    done = run("child", "one", "--stall-timeout", "0.5", ranks=3)
    assert done.returncode == 1
    assert report_of(done.stderr, IDLE_HEADLINE)[:2] == [
        "ranks 1, 2: MPI_Barrier on MPI_COMM_WORLD (3 ranks)",
        "MPI_Barrier on MPI_COMM_WORLD: ranks 1, 2 are in it, rank 0 is not",
    ]


@pytest.mark.parametrize("case", ["lock-of-a-receiver", "child-of-a-receiver"])
def test_what_a_rank_in_mpi_holds_is_waited_for(run, case):
    done = run(case, "all", ranks=3)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_process_that_sleeps_beyond_all_limits_is_waited_for(run):
    done = run("process", "one", "--stall-timeout", "0.1", argument="3")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_connection_from_outside_is_waited_for(start):
    """Also while all others wait in MPI: the notice comes where a deadlock would be reported."""
    started = start("server", "one", "--stall-timeout", "0.3")
    port = int(started.process.stdout.readline())
    said = started.process.stderr.readline()
    assert f"rank 0 waits for a connection to a TCP socket that listens at 127.0.0.1:{port}" in said
    with socket.create_connection(("127.0.0.1", port)):
        done = started.finish(100)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_standard_input_is_waited_for(start_apenet, build):
    program = build(FAILING / "sleeps_in_host.c")
    script = f"{{ sleep 3; echo; }} | {program} standard-input - all"
    done = start_apenet("run", "-n", "1", "--", "sh", "-c", script).finish(100)
    assert (done.returncode, done.stdout) == (0, "reads\ndone\n"), done.stderr


@pytest.mark.parametrize("kind", ["alarm", "setitimer", "timer_create"])
def test_a_timer_whose_signal_is_handled_is_waited_for(run, kind):
    done = run("timer", "all", ranks=1, argument=kind)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_socket_whose_transfers_have_a_limit_is_waited_for(run):
    done = run("socket-with-a-limit", "all", ranks=1)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_timer_that_has_rung_hides_no_deadlock(run):
    done = run("timer-that-rang", "all", ranks=1)
    assert done.returncode == 1
    assert report_of(done.stderr) == ["rank 0: waits in sem_wait, for another thread"]


POOL = """
from mpi4py.futures import MPIPoolExecutor
if __name__ == "__main__":
    with MPIPoolExecutor(2) as pool:
        print(list(pool.map(abs, [-1, 2])))
"""


def test_a_pool_whose_workers_are_refused_is_a_deadlock(apenet, tmp_path):
    """Its thread ends with the error of MPI_Comm_spawn, and the pool waits for that thread's answer for ever."""
    pytest.importorskip("mpi4py.futures")
    program = tmp_path / "pool.py"
    program.write_text(POOL)
    done = apenet("run", "-n", "1", "--", sys.executable, program, timeout_s=100)
    assert done.returncode == 1
    assert "MPI_Comm_spawn was refused" in done.stderr
    assert HEADLINE in done.stderr


def test_a_pool_of_the_ranks_of_the_run_works(apenet, tmp_path):
    pytest.importorskip("mpi4py.futures")
    program = tmp_path / "pool.py"
    program.write_text(POOL)
    done = apenet("run", "-n", "2", "--", sys.executable, "-m", "mpi4py.futures", program, timeout_s=100)
    assert (done.returncode, done.stdout) == (0, "[1, 2]\n"), done.stderr


@pytest.mark.parametrize("script", ['exec flock "$0" "$1"', 'exec 9> "$0"; flock 9; "$1"'])
def test_a_lock_that_a_wrapper_holds_is_held_for_ever(apenet, build, tmp_path, script):
    """The wrapper waits for the first rank, which waits in MPI_Init for the second."""
    program = build(FAILING.with_name("c") / "world_and_session.c")
    done = apenet("run", "-n", "2", "--", "sh", "-c", script, tmp_path / "lock", program)
    assert done.returncode == 1
    assert HEADLINE in done.stderr
    assert f"waits for a lock on the file {tmp_path}/lock, which rank" in done.stderr
    assert ": reads from its process manager, as MPI_Init does until all ranks have begun it" in done.stderr
