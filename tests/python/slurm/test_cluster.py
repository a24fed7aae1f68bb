"""Slurm itself on the nodes of a machine: jobs run on the nodes that it gives them, and nothing is left at the end."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from apenet.live import records
from apenet.slurm import accounting, programs

is_missing = programs.found("slurmctld") is None or programs.found("munged") is None
pytestmark = pytest.mark.skipif(is_missing, reason="Slurm is not installed")

PROGRAM = """
import platform
from mpi4py import MPI
world = MPI.COMM_WORLD
names = world.gather(platform.node())
if world.rank == 0:
    print(f"{world.size} ranks on {' '.join(names)} in {world.allreduce(1) and MPI.Wtime() > 0}")
else:
    world.allreduce(1)
"""


class Slurm:
    """The cluster's shell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = os.environ | {
            "SLURM_CONF": str(folder / "slurm.conf"),
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        }

    def __call__(self, *command: str | Path) -> str:
        done = self.tried(*command)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def tried(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*map(str, command)],
            env=self.environment,
            cwd=self.folder.parent,
            capture_output=True,
            text=True,
            check=False,
            timeout=400,
        )

    def wait_for_jobs(self) -> None:
        while self("squeue", "-h"):
            time.sleep(0.1)

    def states(self, count: int) -> list[str]:
        """How `count` jobs have ended, as sacct says. Accounting hears of an end a little later than squeue."""
        deadline = time.monotonic() + 300
        while True:
            said = self("sacct", "-X", "-n", "-o", "State").split()
            if (
                len(said) == count and not {"PENDING", "RUNNING", "COMPLETING"} & set(said)
            ) or time.monotonic() > deadline:
                return said
            time.sleep(0.2)


@pytest.fixture
def short_folder():
    """Slurm's sockets lie in it, and Linux limits their paths."""
    with tempfile.TemporaryDirectory(prefix="apenet-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def slurm(apenet, short_folder):
    folder = short_folder / "cluster"
    done = apenet("cluster", "up", "-m", "ape16", "--dir", folder, timeout_s=400)
    assert done.returncode == 0, done.stderr
    assert "ape16: 16 nodes, ape16-0-0-0 to ape16-3-1-1" in done.stderr
    (short_folder / "program.py").write_text(PROGRAM)
    yield Slurm(folder)
    if folder.exists():
        subprocess.run([sys.executable, "-m", "apenet", "cluster", "down", "--dir", folder], check=False, timeout=400)


def processes_with(text: str) -> list[str]:
    """Arguments of the processes that have this in them, or belong to the cluster in this folder, as slurmdbd."""
    found = []
    variable = f"SLURM_CONF={text}/slurm.conf"
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                arguments = (process / "cmdline").read_bytes().decode(errors="replace")
                variables = (process / "environ").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if text in arguments or variable in variables:
                found.append(arguments)
    return found


def test_jobs_run_on_the_nodes_that_slurm_gives_them(slurm, apenet, short_folder):
    script = short_folder / "job.sh"
    script.write_text(f"#!/bin/sh\nsrun {sys.executable} program.py\nmpiexec -n 2 {sys.executable} program.py\n")
    for number in range(2):
        slurm("sbatch", "-n", "8", "-o", f"job-{number}.out", script)
    slurm("sbatch", "-n", "16", "-o", "job-2.out", script)  # waits for both
    slurm.wait_for_jobs()
    said = [(short_folder / f"job-{number}.out").read_text() for number in range(3)]
    names = [f"ape16-{x}-{y}-{z}" for z in range(2) for y in range(2) for x in range(4)]
    assert f"8 ranks on {' '.join(names[:8])} in True" in said[0]
    assert f"8 ranks on {' '.join(names[8:])} in True" in said[1]
    assert f"16 ranks on {' '.join(names)} in True" in said[2]
    assert f"2 ranks on {names[8]} {names[9]} in True" in said[1]
    # A partition of its own: the same times as alone.
    times = [re.findall(r"ranks: ([0-9.]+ [mu]s) of virtual time", text) for text in said]
    assert times[0] == times[1]
    done = apenet("cluster", "steps", "--dir", slurm.folder, "1.0", "2.0", "--out", short_folder / "steps")
    assert done.returncode == 0, done.stderr
    shared = apenet("cluster", "run", short_folder / "steps" / "jobs.toml", "--no-matrix", "--json", timeout_s=400)
    jobs = json.loads(shared.stdout)["jobs"]
    assert [(job["name"], job["slowdown"]) for job in jobs] == [("j1-0", 1.0), ("j2-0", 1.0)]
    assert slurm.states(3) == ["COMPLETED"] * 3
    done = apenet("cluster", "down", "--dir", slurm.folder, timeout_s=400)
    assert done.returncode == 0, done.stderr
    assert not slurm.folder.exists()
    assert processes_with(str(slurm.folder)) == []


@pytest.mark.skipif(not accounting.is_installed(), reason="no slurmdbd or no MariaDB")
def test_slurms_accounting_knows_how_each_job_ended(slurm):
    for status in (0, 3):
        slurm("sbatch", "--wrap", f"exit {status}")
    slurm.wait_for_jobs()
    slurm("sbatch", "--wrap", "sleep 1000")
    while "R" not in slurm("squeue", "-h", "-o", "%t").split():
        time.sleep(0.1)
    slurm("scancel", "3")
    slurm.wait_for_jobs()
    expected = ["1|COMPLETED|0:0", "2|FAILED|3:0", f"3|CANCELLED by {os.geteuid()}|0:0"]
    deadline = time.monotonic() + 300  # slurmctld sends in batches
    while (said := slurm("sacct", "-X", "-n", "-P", "-o", "JobID,State,ExitCode").splitlines()) != expected:
        assert time.monotonic() < deadline, said
        time.sleep(0.2)
    assert slurm("sacctmgr", "-n", "-P", "show", "cluster", "format=cluster") == "ape16\n"
    # Others of the host reach the port of the database, and no more.
    port = re.findall("StoragePort=([0-9]+)", (slurm.folder / "slurmdbd.conf").read_text())[0]
    for user in ("root", "slurm", "nobody"):
        done = slurm.tried("mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", f"-u{user}", "-e", "select 1")
        assert "Access denied" in done.stderr


ENDLESS = """
from mpi4py import MPI
world = MPI.COMM_WORLD
for number in range(10**8):
    world.alltoall(["x" * 100] * world.size)
    if world.rank == 0 and number % 10 == 0:
        print(number, flush=True)
"""


def test_jobs_share_a_network_and_their_jobs_file_repeats_them(apenet, short_folder):
    """A job that is cancelled, one that joins it, and one that comes after both; then the simulator is killed."""
    folder = short_folder / "cluster"
    done = apenet("cluster", "up", "-m", "ape16", "--shared-network", "--dir", folder, timeout_s=400)
    try:
        assert done.returncode == 0, done.stderr
        slurm = Slurm(folder)
        (short_folder / "program.py").write_text(PROGRAM)
        (short_folder / "endless.py").write_text(ENDLESS)
        slurm("sbatch", "-n", "5", "-o", "1.out", "--wrap", f"srun {sys.executable} endless.py")
        said = short_folder / "1.out"
        while not said.exists() or "0\n" not in said.read_text():
            time.sleep(0.1)
        line = f"SIZE=3 srun {sys.executable} program.py; mpiexec -n 2 {sys.executable} program.py"
        slurm("sbatch", "-n", "7", "-o", "2.out", "--wrap", line)
        while "2 " in slurm("squeue", "-h", "-o", "%A "):
            time.sleep(0.1)
        slurm("scancel", "1")
        slurm.wait_for_jobs()
        slurm("sbatch", "-n", "16", "-o", "3.out", "--wrap", f"srun {sys.executable} program.py")
        slurm.wait_for_jobs()
        assert sorted(state[:9] for state in slurm.states(3) if state[0] == "C") == [
            "CANCELLED",
            "COMPLETED",
            "COMPLETED",
        ]
        steps = short_folder / "steps"
        while (done := apenet("cluster", "steps", "--dir", folder, "--out", steps)).stderr.count(".0") < 3:
            time.sleep(0.1)  # the step that was cancelled ends after its script
        assert "4 steps: 1.0, 2.0, 2.1, 3.0." in done.stderr
        live = {record.job + "." + str(record.step): record for record in records.read(folder)}
        assert live["1.0"].outcome == "limit"
        assert live["1.0"].start_ps < live["2.0"].start_ps < live["1.0"].limit_ps
        again = apenet("cluster", "run", steps / "jobs.toml", "--no-matrix", "--json", timeout_s=400)
        for job in json.loads(again.stdout)["jobs"]:
            record = live[job["name"][1:].replace("-", ".")]
            assert [round(end * 1e6) for end in job["finish_us"]] == [record.start_ps + end for end in record.ended_ps]
        text = (short_folder / "2.out").read_text()
        assert "7 ranks on ape16-1-1-0" in text
        assert text.splitlines()[0] in again.stderr
        for process in Path("/proc").glob("[0-9]*"):
            if b"\0network\0--dir\0" + os.fsencode(folder) in (process / "cmdline").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)
        done = slurm.tried("sbatch", "-W", "-n", "2", "-o", "4.out", "--wrap", f"srun {sys.executable} program.py")
        assert done.returncode == 1
        assert "the simulator of the shared network in" in (short_folder / "4.out").read_text()
    finally:
        if folder.exists():
            done = apenet("cluster", "down", "--dir", folder, timeout_s=400)
    assert done.returncode == 0, done.stderr
    assert processes_with(str(folder)) == []


def test_srun_outside_a_job_gets_nodes_by_itself(slurm):
    said = slurm("srun", "-n", "3", sys.executable, "program.py")
    assert "3 ranks on ape16-0-0-0 ape16-1-0-0 ape16-2-0-0 in True" in said
    for line in (["srun", "-n", "17", "true"], ["sbatch", "-n", "17", "--wrap", "true"]):
        done = slurm.tried(*line)  # refused at once, and does not wait for ever
        assert done.returncode != 0
        assert "More processors requested than permitted" in done.stderr


def test_a_cancelled_job_leaves_no_rank(slurm, short_folder):
    script = short_folder / "endless.sh"
    script.write_text(
        f"#!/bin/sh\nexec srun {sys.executable} -c 'from mpi4py import MPI\nprint(1, flush=True)\nwhile 1: 0'\n"
    )
    slurm("sbatch", "-n", "2", "-o", "endless.out", script)
    said = short_folder / "endless.out"
    while not said.exists() or "1\n" not in said.read_text():
        time.sleep(0.1)
    slurm("scancel", "--user", str(os.geteuid()))
    slurm.wait_for_jobs()
    while processes_with("MPI\nprint(1, flush=True)\nwhile 1: 0"):
        time.sleep(0.1)


@pytest.mark.parametrize("killed", ["slurmctld", "slurmd-ape16-0-0-0", "slurmdbd", "database"])
def test_nothing_is_left_after_a_daemon_was_killed(slurm, apenet, killed):
    if killed in ("slurmdbd", "database") and not accounting.is_installed():
        pytest.skip("no slurmdbd or no MariaDB")
    os.kill(int((slurm.folder / f"{killed}.pid").read_text()), signal.SIGKILL)
    done = apenet("cluster", "down", "--dir", slurm.folder, timeout_s=400)
    assert done.returncode == 0, done.stderr
    assert not slurm.folder.exists()
    assert processes_with(str(slurm.folder)) == []


def test_a_second_cluster_in_the_folder_is_refused(slurm, apenet):
    done = apenet("cluster", "up", "--dir", slurm.folder)
    assert done.returncode == 2
    assert "apenet cluster down --dir" in done.stderr
    assert shutil.which("sinfo") is None or "idle" in slurm("sinfo", "-h")


def test_slurm_knows_the_switches_of_the_machine(apenet, short_folder):
    folder = short_folder / "cluster"
    small = [part for key in ("children=[2,2]", "parents=[1]") for part in ("--set", f"network.{key}")]
    done = apenet("cluster", "up", "-m", "my-cluster", *small, "--dir", folder, timeout_s=400)
    try:
        assert done.returncode == 0, done.stderr
        slurm = Slurm(folder)
        said = slurm("scontrol", "show", "topology").splitlines()
        assert [line.split()[0] for line in said] == [f"SwitchName=level{name}" for name in ("0-0", "0-1", "1-0")]
        assert "Nodes=my-cluster-2,my-cluster-3" in said[1]
        jobs = [slurm("sbatch", "--parsable", "--switches=1", "-n", "2", "--wrap", "true").strip() for _ in range(2)]
        slurm.wait_for_jobs()
        found = {slurm("scontrol", "show", "job", job).split("NodeList=")[-1].split()[0] for job in jobs}
        assert found <= {"my-cluster-[0-1]", "my-cluster-[2-3]"}
    finally:
        if folder.exists():
            apenet("cluster", "down", "--dir", folder, timeout_s=400)


def test_two_jobs_on_half_of_ape128_each_and_a_third_that_waits(apenet, short_folder):
    folder = short_folder / "cluster"
    done = apenet("cluster", "up", "-m", "ape128", "--dir", folder, timeout_s=400)
    try:
        assert done.returncode == 0, done.stderr
        slurm = Slurm(folder)
        (short_folder / "program.py").write_text(PROGRAM)
        line = f"srun {sys.executable} program.py"
        jobs = [
            slurm("sbatch", "--parsable", "-n", count, "-o", f"{number}.out", "--wrap", line).strip()
            for number, count in enumerate(("64", "64", "128"))
        ]
        slurm("sbatch", "-n", "2", "--array=1-3", "-o", "array-%a.out", "--wrap", line)
        slurm("sbatch", "-n", "2", "-d", f"afterok:{jobs[2]}", "-o", "last.out", "--wrap", line)
        slurm.wait_for_jobs()
        assert slurm.states(7) == ["COMPLETED"] * 7
        said = {path.stem: path.read_text() for path in short_folder.glob("*.out")}
        assert [text.split(" ")[0] for text in (said["0"], said["1"], said["2"])] == ["64", "64", "128"]
        assert set(said) == {"0", "1", "2", "array-1", "array-2", "array-3", "last"}
        partitions = [re.findall("partition ([^,]*,[^,]*,[^,]*),", said[name]) for name in "012"]
        assert partitions == [["8x4x2@0,0,0"], ["8x4x2@0,0,2"], ["8x4x4@0,0,0"]]
    finally:
        if folder.exists():
            done = apenet("cluster", "down", "--dir", folder, timeout_s=400)
    assert done.returncode == 0, done.stderr
    assert processes_with(str(folder)) == []
