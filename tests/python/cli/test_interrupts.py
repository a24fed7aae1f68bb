"""A signal ends every command at once: one line, status 130, and no process remains."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

SOON_S = 60  # generous: the end takes a moment, while the interrupted work would take many minutes
TICKS_PER_S = os.sysconf("SC_CLK_TCK")

LONG = {
    "traffic": ["traffic", "--load", "0.3", "--engine", "flit", "--measure", "1000000000", "--allow-long"],
    "bench": [
        "bench",
        "alltoall",
        "--machine",
        "ape128",
        "--sizes",
        "1M:1M",
        "--iterations",
        "1000000",
        "--allow-long",
    ],
    "processes": [
        "bench",
        "pingpong",
        "--machine",
        "ape16",
        "--layer",
        "mpi",
        "--sizes",
        "1M:1M",
        "--iterations",
        "10000000",
        "--allow-long",
    ],
    "perf": ["perf", "packet", "--repeat", "10000000"],
    "reproduce": ["reproduce"],
}


def cpu_seconds(process_id: int) -> float:
    """CPU time of a process, without its children."""
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return 0  # it has ended
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def children(process_id: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split()]
    except OSError:
        return []


def family(process_id: int) -> list[int]:
    return [process_id, *(member for child in children(process_id) for member in family(child))]


def is_there(process_id: int) -> bool:
    """Checks that the process was killed, not only waited for."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until_at_work(process_id: int, cpu_s: float) -> None:
    """Waits until the process or its children have used this much CPU time."""
    give_up = time.monotonic() + SOON_S
    while max(map(cpu_seconds, family(process_id))) < cpu_s:
        assert time.monotonic() < give_up
        assert is_there(process_id)
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("command", "number", "cpu_s"),
    [  # More than it takes to begin; reproduce has seconds of work only.
        ("traffic", signal.SIGINT, 1),
        ("bench", signal.SIGTERM, 1),
        ("processes", signal.SIGTERM, 1),
        ("perf", signal.SIGINT, 1),
        ("reproduce", signal.SIGINT, 0.9),
        ("reproduce", signal.SIGKILL, 0.9),
    ],
)
def test_a_signal_ends_long_work(start_apenet, command, number, cpu_s, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    started = start_apenet(*LONG[command])
    wait_until_at_work(started.process.pid, cpu_s)
    members = family(started.process.pid)
    started.process.send_signal(number)
    done = started.finish(SOON_S)
    if number == signal.SIGKILL:
        assert done.returncode == -number
    else:
        assert (done.returncode, done.stderr) == (130, "apenet: interrupted\n")
    give_up = time.monotonic() + SOON_S
    while any(map(is_there, members)):
        assert time.monotonic() < give_up, members
        time.sleep(0.01)
    if number != signal.SIGKILL:
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("cpu_s", [0.1, 0.2, 0.5])
def test_a_signal_during_the_start_is_no_traceback(start_apenet, cpu_s):
    started = start_apenet(*LONG["traffic"], is_forked=False)
    while cpu_seconds(started.process.pid) < cpu_s:
        assert started.process.poll() is None
        time.sleep(0.002)
    started.process.send_signal(signal.SIGINT)
    done = started.finish(SOON_S)
    assert (done.returncode, done.stderr) == (130, "apenet: interrupted\n")


def test_an_interruption_that_a_library_replaces_is_no_traceback():
    """As pydantic does while it builds its validators."""
    script = """
import os, signal
import apenet.cli, apenet_command

def command():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException as error:
        raise ValueError("in a library") from error

apenet.cli.main = command
apenet_command.main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "apenet: interrupted\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_is_ignored_at_the_start_stays_ignored(start_apenet, number):
    """As under nohup, and in the background of a shell."""
    program = "import sys; print('begun', flush=True); sys.stdin.read(); print('the end')"
    ours, theirs = os.pipe()

    def prepare() -> None:
        signal.signal(number, signal.SIG_IGN)
        os.close(theirs)

    started = start_apenet("run", "-n", "1", "--", sys.executable, "-c", program, prepare=prepare, stdin=ours)
    os.close(ours)
    assert started.read_lines(1) == ["begun\n"]
    started.process.send_signal(number)
    time.sleep(0.05)  # what would end it has come before its input
    os.close(theirs)
    done = started.finish(SOON_S)
    assert (done.returncode, done.stdout) == (0, "the end\n"), done.stderr


def test_a_library_that_sets_handlers_takes_none_from_the_command(tmp_path):
    source = tmp_path / "own.c"
    source.write_text(
        "#include <signal.h>\n#include <unistd.h>\nstatic void leave(int n) { (void)n; _exit(1); }\n"
        "__attribute__((constructor)) static void begin(void) { signal(SIGTERM, leave); }\n"
    )
    library = tmp_path / "own.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    program = (
        "import os, signal\nfrom apenet.fit import calibrate\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('handled', flush=True))\n"
        f"calibrate._load({str(library)!r})\nos.kill(os.getpid(), signal.SIGTERM)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "handled\n"), done.stderr


def test_folders_of_killed_processes_are_removed_by_the_next(tmp_path):
    """One that a living process holds stays."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    hold = (
        "import sys\nfrom apenet.base.tempfolder import temporary_folder\nwith temporary_folder() as folder:\n"
        "    (folder / 'file').touch()\n    print(folder, flush=True)\n    sys.stdin.read()\n"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen([sys.executable, "-c", hold], env=environment, **pipes) as killed,
        subprocess.Popen([sys.executable, "-c", hold], env=environment, **pipes) as living,
    ):
        left, kept = (Path(holder.stdout.readline().strip()) for holder in (killed, living))
        killed.kill()
        killed.wait()
        assert left.is_dir()
        done = subprocess.run([sys.executable, "-c", hold], env=environment, input="", check=True, text=True)
        assert done.returncode == 0
        assert sorted(tmp_path.iterdir()) == [kept]
        living.stdin.close()
    assert not list(tmp_path.iterdir())
