"""A deadlock report names the ranks' MPI calls and repeats exactly; slow programs are not reported."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

FAILING = Path(__file__).with_name("failing_runs")
OPENMPI_MPICC = Path(__file__).resolve().parents[2] / ".venv-openmpi" / "bin" / "mpicc"
RANKS = 4
WORLD = f"MPI_COMM_WORLD ({RANKS} ranks)"
CYCLE = "in a cycle: rank 0 -> rank 1 -> rank 2 -> rank 3 -> rank 0, each waits for the next"
PAIR = "in a cycle: rank 0 -> rank 1 -> rank 0, each waits for the next"
ALL_BUT_ONE = "MPI_Barrier on MPI_COMM_WORLD: ranks 0, 2, 3 are in it, rank 1 is not"


def around(text: str) -> list[str]:
    """A line for each rank, about the next one."""
    return [f"rank {rank}: " + text.format((rank + 1) % RANKS) for rank in range(RANKS)]


def pairs(text: str) -> list[str]:
    """A line for each rank, about the one beside it."""
    return [f"rank {rank}: " + text.format(rank ^ 1) for rank in range(RANKS)]


REPORTS = {
    "ssend-cycle": [*around("MPI_Ssend to rank {}, tag 7"), f"{CYCLE} in MPI_Ssend"],
    "recv-recv": [
        "rank 0: MPI_Recv from rank 1, tag 5",
        "rank 1: MPI_Recv from rank 0, tag 5",
        f"ranks 2, 3: MPI_Barrier on {WORLD}",
        f"{PAIR} in MPI_Recv",
        "MPI_Barrier on MPI_COMM_WORLD: ranks 2, 3 are in it, ranks 0, 1 are not",
    ],
    "self-receive": [
        f"ranks 0, 2, 3: MPI_Barrier on {WORLD}",
        "rank 1: MPI_Recv from rank 1, tag 3",
        "rank 1 waits for itself, in MPI_Recv",
        ALL_BUT_ONE,
    ],
    "probe": [
        f"ranks 0, 2, 3: MPI_Barrier on {WORLD}",
        "rank 1: MPI_Probe from rank 0, any tag",
        f"{PAIR}",
        ALL_BUT_ONE,
    ],
    "any-source": ["ranks 0-3: MPI_Recv from any rank, any tag"],
    "large-sends": [*pairs("MPI_Send to rank {}, tag 1"), f"{PAIR} in MPI_Send (and 1 more cycles)"],
    "waitall": [
        *pairs("MPI_Waitall of 3 requests, unfinished MPI_Irecv from rank {}, tag 22"),
        f"{PAIR} in MPI_Irecv (and 1 more cycles)",
    ],
    "issend-wait": [*around("MPI_Wait for MPI_Issend to rank {}, tag 9"), f"{CYCLE} in MPI_Issend"],
    "sendrecv": [*around("MPI_Sendrecv to rank {0}, tag 1, and from rank {0}, tag 1"), f"{CYCLE} in MPI_Sendrecv"],
    "missing-in-split": [
        "rank 0: MPI_Barrier on a communicator of MPI_Comm_split (ranks 0, 2)",
        "rank 1: MPI_Recv from rank 3 (rank 1 of communicator 'odd'), tag 6",
        "rank 2: MPI_Recv from rank 1, tag 4",
        f"rank 3: MPI_Barrier on {WORLD}",
        "in a cycle: rank 0 -> rank 2 -> rank 1 -> rank 3 -> rank 0, each waits for the next",
        "MPI_Barrier on a communicator of MPI_Comm_split: rank 0 is in it, rank 2 is not",
        "MPI_Barrier on MPI_COMM_WORLD: rank 3 is in it, ranks 0-2 are not",
    ],
    "mismatched": [
        f"rank 0: MPI_Allreduce on {WORLD}",
        f"ranks 1-3: MPI_Barrier on {WORLD}",
        "different calls on MPI_COMM_WORLD: rank 0 in MPI_Allreduce, ranks 1-3 in MPI_Barrier",
    ],
    "finished": [
        "rank 0: MPI_Recv from rank 1, tag 0",
        "ranks 1-3: finished",
        "rank 0 waits for rank 1, which has finished",
    ],
    "finished-sending": [
        "rank 0: finished with MPI_Isend to rank 1, tag 4 pending",
        "rank 1: MPI_Recv from rank 0, tag 4",
        "ranks 2, 3: finished",
        "rank 1 waits for rank 0, which has finished with MPI_Isend to rank 1, tag 4 pending",
    ],
    "locks": [*around("MPI_Win_lock of rank {} of a window of MPI_Win_allocate"), f"{CYCLE} in MPI_Win_lock"],
    "fence": [
        "ranks 0-2: MPI_Win_fence on a window of MPI_Win_allocate (ranks 0-3)",
        f"rank 3: MPI_Barrier on {WORLD}",
        "MPI_Win_fence on a window of MPI_Win_allocate: ranks 0-2 are in it, rank 3 is not",
        "MPI_Barrier on MPI_COMM_WORLD: rank 3 is in it, ranks 0-2 are not",
    ],
}

POLLS = {
    "polls": [
        *around("MPI_Test for MPI_Irecv from rank {}, tag 8, again and again"),
        f"{CYCLE} in MPI_Irecv",
    ],
    "one-polls": [
        "rank 0: MPI_Test for MPI_Irecv from rank 1, tag 8, again and again",
        f"ranks 1-3: MPI_Barrier on {WORLD}",
        PAIR,
        "MPI_Barrier on MPI_COMM_WORLD: ranks 1-3 are in it, rank 0 is not",
    ],
}


def report_of(stderr: str) -> list[str]:
    """The lines of the report, without their prefixes."""
    lines = [line.removeprefix("apenet: ") for line in stderr.splitlines()]
    begin = lines.index("deadlock: every process waits and the network is empty")
    return [line.removeprefix("  ") for line in lines[begin + 1 :]]


@pytest.fixture
def run(apenet, build):
    """Runs a program of this folder that waits."""

    def run_program(name: str, *arguments: str, ranks: int = RANKS, stall_timeout: str = "0.3", compiler="mpicc"):
        program = build(FAILING / f"{name}.c", compiler)
        command = ("run", "-n", str(ranks), "--stall-timeout", stall_timeout, "--", program, *arguments)
        return apenet(*command, timeout_s=100)

    return run_program


@pytest.mark.parametrize("case", REPORTS)
def test_the_report_of_a_deadlock(run, case):
    done = run("deadlocks", case)
    assert done.returncode == 1, done.stderr
    assert report_of(done.stderr) == REPORTS[case]


@pytest.mark.parametrize("case", POLLS)
def test_ranks_that_only_poll_are_reported_after_so_many_polls(run, case):
    """A hundred thousand for this stall timeout, counted: the same virtual time in each run."""
    done = run("deadlocks", case, stall_timeout="0.1")
    assert done.returncode == 1, done.stderr
    assert report_of(done.stderr) == POLLS[case]
    assert " after 10.00" in done.stderr.splitlines()[0]


@pytest.fixture
def run_with_lines(apenet, tmp_path):
    """Runs a small program that is compiled with debug information, by `apenet cc`."""
    if shutil.which("addr2line") is None:
        pytest.skip("no tool reads debug information")

    def run_program(name: str, text: str, *compiler: str):
        (tmp_path / name).write_text(text)
        made = apenet("cc", "--mpi", *compiler, "-g", "-O1", "-o", "program", name, cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        return apenet("run", "-n", "2", "--", tmp_path / "program", timeout_s=100)

    return run_program


C_LINES = """#include <mpi.h>
static void wait_for(int rank) {
  int value = 0;
  MPI_Recv(&value, 1, MPI_INT, rank, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) wait_for(1);
  if (rank == 1) MPI_Barrier(MPI_COMM_WORLD);
  return MPI_Finalize();
}
"""
FORTRAN_LINES = """program lines
  use mpi
  integer :: rank, value, error
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Recv(value, 1, MPI_INTEGER, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  call MPI_Finalize(error)
end program
"""


FORTRAN_WAITS = {
    "call MPI_Ssend(value, 1, MPI_INTEGER, rank, 5, MPI_COMM_WORLD, error)": [
        "rank 0: MPI_Ssend to rank 0, tag 5 (lines.f90:6)",
        "rank 1: MPI_Ssend to rank 1, tag 5 (lines.f90:6)",
    ],
    "if (rank == 0) call MPI_Barrier(MPI_COMM_WORLD, error)": [
        "rank 0: MPI_Barrier on MPI_COMM_WORLD (2 ranks) (lines.f90:6)",
        "rank 1: finished",
    ],
    "call MPI_Bcast(value, 1, MPI_INTEGER, 1 - rank, MPI_COMM_WORLD, error)": [
        "ranks 0, 1: MPI_Bcast on MPI_COMM_WORLD (2 ranks) (lines.f90:6)",
        "MPI_Bcast on MPI_COMM_WORLD: all its ranks are in it, but their arguments or earlier calls do not match",
    ],
}


def test_the_report_gives_source_lines(run_with_lines):
    assert report_of(run_with_lines("lines.c", C_LINES).stderr)[:2] == [
        "rank 0: MPI_Recv from rank 1, tag 5 (lines.c:4)",
        "rank 1: MPI_Barrier on MPI_COMM_WORLD (2 ranks) (lines.c:11)",
    ]


def test_the_report_gives_source_lines_of_fortran(run_with_lines):
    if shutil.which("gfortran") is None:
        pytest.skip("no Fortran compiler")
    assert report_of(run_with_lines("lines.f90", FORTRAN_LINES, "--compiler", "gfortran").stderr)[:2] == [
        "rank 0: MPI_Recv from rank 1, tag 7 (lines.f90:6)",
        "rank 1: MPI_Recv from rank 0, tag 7 (lines.f90:6)",
    ]


@pytest.mark.skipif(shutil.which("gfortran") is None, reason="no Fortran compiler")
@pytest.mark.parametrize("waits", FORTRAN_WAITS)
def test_a_deadlock_in_fortran_is_reported(run_with_lines, waits):
    lines = FORTRAN_LINES.splitlines()
    lines[5] = f"  {waits}"
    done = run_with_lines("lines.f90", "\n".join([*lines, ""]), "--compiler", "gfortran")
    assert report_of(done.stderr)[:2] == FORTRAN_WAITS[waits]


def test_the_report_with_the_standard_abi(run):
    done = run("deadlocks", "missing-in-split", compiler="mpicc_abi")
    assert report_of(done.stderr) == REPORTS["missing-in-split"]


@pytest.fixture
def outermost(build, tmp_path_factory):
    """A program that waits in one call, built with either MPI."""
    source = FAILING / "outermost_calls.c"

    def build_program(mpi: str) -> Path:
        if mpi == "mpich":
            return build(source)
        if not OPENMPI_MPICC.exists():
            pytest.skip("Open MPI's environment is not there")
        program = tmp_path_factory.mktemp("openmpi") / "outermost_calls"
        subprocess.run([OPENMPI_MPICC, "-o", program, source], check=True)
        return program

    return build_program


OUTERMOST = {
    "MPI_File_open": "MPI_COMM_WORLD",
    "MPI_File_set_view": "file 'data'",
    "MPI_File_write_ordered": "file 'data'",
    "MPI_File_set_size": "file 'data'",
    "MPI_File_close": "file 'data'",
    "MPI_Comm_split_type": "MPI_COMM_WORLD",
    "MPI_Win_allocate_shared": "MPI_COMM_WORLD",
}


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
@pytest.mark.parametrize("call", OUTERMOST)
def test_the_outermost_call_is_named(apenet, outermost, tmp_path, mpi, call):
    """Not one of those of which the library makes it."""
    command = ("run", "-n", "2", "--stall-timeout", "0.5", "--", outermost(mpi), call, tmp_path / "data")
    done = apenet(*command, timeout_s=100)
    assert done.returncode == 1, done.stderr
    where = OUTERMOST[call]
    members = " (2 ranks)" if where == "MPI_COMM_WORLD" else " (ranks 0, 1)"
    report = report_of(done.stderr)
    assert report[0] == f"rank 0: {call} on {where}{members}"
    named = f"{call} on {where}: rank 0 is in it, rank 1 is not"
    both = f"different calls on {where}: rank 0 in {call}, rank 1 in MPI_Barrier"
    assert (both if where == "MPI_COMM_WORLD" else named) in report


def test_a_port_of_open_mpi_to_which_nobody_connects_is_a_deadlock(apenet, outermost):
    command = ("run", "-n", "2", "--stall-timeout", "0.5", "--", outermost("openmpi"), "MPI_Comm_accept")
    done = apenet(*command, timeout_s=100)
    assert done.returncode == 1, done.stderr
    assert report_of(done.stderr)[:2] == [
        "rank 0: MPI_Comm_accept on MPI_COMM_SELF (rank 0)",
        "rank 1: MPI_Barrier on MPI_COMM_WORLD (2 ranks)",
    ]


@pytest.mark.parametrize("work", ["thread", "process", "busy-process", "main-process"])
def test_work_beyond_the_stall_timeout_is_no_deadlock(run, work):
    done = run("meets_outside", work, "1", ranks=2)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_thread_that_reads_for_ever_is_named(run):
    done = run("meets_outside", "reader", "", ranks=2)
    assert done.returncode == 1
    assert report_of(done.stderr)[-1] == "rank 0, a thread: reads from a pipe"


def test_ranks_may_meet_in_a_fifo(run, tmp_path):
    done = run("meets_outside", "fifo", str(tmp_path / "fifo"), ranks=2)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_rank_that_sleeps_before_the_run_begins_is_named(start_apenet, build, tmp_path):
    program = build(FAILING / "meets_outside.c")
    os.mkfifo(tmp_path / "fifo")
    script = f'[ $PMI_RANK = 0 ] || read word < "{tmp_path}/fifo"; exec "$0" thread 0'
    run = start_apenet("run", "-n", "2", "--stall-timeout", "0.3", "--", "sh", "-c", script, program)
    said = run.process.stderr.readline()
    assert "virtual time has not begun: rank 1 has neither passed MPI_Init nor enabled an endpoint; rank 1" in said
    (tmp_path / "fifo").write_text("go on\n")
    done = run.finish()
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_ranks_that_all_sleep_before_the_run_begins_are_named(start_apenet, build, tmp_path):
    """Each opens a fifo of which the other one opens the other end later."""
    program = build(FAILING / "meets_outside.c")
    for name in "ab":
        os.mkfifo(tmp_path / name)
    script = 'if [ $PMI_RANK = 0 ]; then cat a > b; else cat b > a; fi; exec "$0" thread 0'
    run = start_apenet("run", "-n", "2", "--stall-timeout", "0.3", "--", "sh", "-c", script, program, cwd=tmp_path)
    said = run.process.stderr.readline()
    assert "virtual time has not begun: ranks 0, 1 have neither passed MPI_Init nor enabled an endpoint; rank 0" in said
    assert "fifo" in said
    run.process.send_signal(signal.SIGINT)
    assert run.finish().returncode == 130


@pytest.mark.parametrize("value", ["0", "-1", "nan", "soon"])
def test_a_stall_timeout_is_a_number_of_seconds(apenet, value):
    done = apenet("run", "-n", "2", "--stall-timeout", value, "--", "true")
    assert done.returncode == 2
    assert "stall" in done.stderr
    assert "Traceback" not in done.stderr


LEAVES = """
#include <mpi.h>
static char large[1 << 20];
int main(int count, char** arguments) {
  int rank;
  MPI_Comm turned;
  MPI_Request request;
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
  MPI_Comm_set_name(turned, "turned");
  if (rank == 0 && arguments[1][0] == 'l') MPI_Isend(large, sizeof large, MPI_CHAR, 0, 9, turned, &request);
  if (rank == 0 && arguments[1][0] == 's') MPI_Issend(large, 8, MPI_CHAR, 1, 4, MPI_COMM_WORLD, &request);
  if (rank == 0 && arguments[1][0] == 'u') {
    MPI_Irecv(large, 8, MPI_CHAR, 1, 9, turned, &request);
    MPI_Issend(large, 8, MPI_CHAR, 0, 9, turned, &request);
  }
  if (rank == 1 && arguments[1][0] != 's') MPI_Recv(large, 8, MPI_CHAR, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
}
"""
PENDING = "MPI_Isend to rank 1 (rank 0 of communicator 'turned'), tag 9 pending"


@pytest.fixture(params=["mpicc", "mpicc.openmpi", str(OPENMPI_MPICC)], ids=["mpich", "openmpi-4.1", "openmpi-5"])
def leaves(request, tmp_path, build):
    """A program that begins a send and calls MPI_Finalize: by each MPI library."""
    (tmp_path / "leaves.c").write_text(LEAVES)
    if request.param == "mpicc":
        return build(tmp_path / "leaves.c")
    if shutil.which(request.param) is None:
        pytest.skip(f"no {request.param}")
    subprocess.run([request.param, "-o", tmp_path / "leaves", tmp_path / "leaves.c"], check=True)
    return tmp_path / "leaves"


def test_a_send_that_is_pending_in_finalize_is_named(apenet, leaves):
    """Open MPI waits in MPI_Finalize, which MPICH leaves."""
    done = apenet("run", "-n", "2", "--stall-timeout", "0.5", "--", leaves, "large", timeout_s=100)
    assert done.returncode == 1, done.stderr
    first, second, *_ = report_of(done.stderr)
    assert first in (f"rank 0: finished with {PENDING}", f"rank 0: MPI_Finalize with {PENDING}")
    assert second == "rank 1: MPI_Recv from rank 0, tag 99"


def test_a_synchronous_send_that_is_pending_in_finalize_is_named(apenet, leaves):
    """The library has sent the message, and waits for its acknowledgement."""
    done = apenet("run", "-n", "2", "--stall-timeout", "0.5", "--", leaves, "unmatched", timeout_s=100)
    assert done.returncode == 1, done.stderr
    first, second, *_ = report_of(done.stderr)
    named = PENDING.replace("MPI_Isend", "MPI_Issend")
    assert first in (f"rank 0: finished with {named}", f"rank 0: MPI_Finalize with {named}")
    assert second == "rank 1: MPI_Recv from rank 0, tag 99"


def test_a_synchronous_message_is_named_by_its_communicator(apenet, leaves):
    """Each library marks such messages by bits of the tag beside the communicator's number."""
    done = apenet("run", "-n", "2", "--", leaves, "small", timeout_s=100)
    assert "1 message was never received: from rank 0 to rank 1, tag 4, on MPI_COMM_WORLD" in done.stderr
