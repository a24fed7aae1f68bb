"""Sweeps as a user starts them: equal results whatever happens to workers, nothing lost, nothing computed twice."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from forked import run_forked

import apenet
from apenet.study.plan import Plan
from apenet.study.study import SweptStudy

BIN = Path(sys.executable).parent
GUARD_S = 300
HALO = ("bench", "halo", "--sizes", "1K")
GRID = ("--grid", "bus.clock_mhz=66:133:6")


def command(*words, folder, launcher=()):
    """A sweep in an interpreter of its own: workers are started from the file of the command. Other commands forked."""
    if words[0] != "sweep":
        return run_forked(words, folder)
    return subprocess.run(
        [*launcher, BIN / "apenet", *words], cwd=folder, capture_output=True, text=True, timeout=GUARD_S, check=False
    )


def exported(folder, study):
    out = folder / f"{study}.csv"
    done = command("study", "export", study, out, folder=folder)
    assert done.returncode == 0, done.stderr
    return out.read_bytes()


@pytest.fixture(scope="module")
def serial(tmp_path_factory):
    """A sweep by one worker: the folder, its output and its table."""
    folder = tmp_path_factory.mktemp("serial")
    done = command("sweep", "--workers", "1", *GRID, "--", *HALO, folder=folder)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout, exported(folder, "study.sqlite")


def test_each_point_is_what_the_command_prints(serial):
    folder, _, _ = serial
    with apenet.study(folder / "study.sqlite") as study:
        rows = list(study.rows())
    assert [row["bus.clock_mhz"] for row in rows] == [66.0, 79.4, 92.8, 106.2, 119.6, 133.0]
    for row in (rows[1], rows[5]):
        alone = command(*HALO, "--json", "--set", f"bus.clock_mhz={row['bus.clock_mhz']}", folder=folder)
        assert json.loads(alone.stdout)["points"][0]["time_us"] == row["time_us"]


@pytest.mark.parametrize("damage", ["page", "text", "table"])
def test_a_damaged_study_is_refused(serial, tmp_path, damage):
    path = tmp_path / "damaged.sqlite"
    content = bytearray((serial[0] / "study.sqlite").read_bytes())
    if damage == "page":
        content[4096:] = bytes(255 for _ in content[4096:])
    path.write_bytes(content)
    if damage != "page":
        database = sqlite3.connect(path)
        database.execute("UPDATE point SET result = '{'" if damage == "text" else "DROP TABLE point")
        database.commit()
        database.close()
    for words in (
        ("study", "show", path),
        ("study", "query", path, "SELECT * FROM rows"),
        ("study", "compare", path, path),
    ):
        done = command(*words, folder=tmp_path)
        assert done.returncode == 2
        assert f'apenet: study = "{path}": expected the file of a study that is whole: ' in done.stderr


def workers_of(process):
    """The process ids of a sweep's workers. One that is starting does not show its name yet."""
    try:
        found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
        return [int(one) for one in found if b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes()]
    except OSError:
        return []


def until(found):
    """Waits for what another process does."""
    deadline = time.monotonic() + GUARD_S
    while time.monotonic() < deadline:
        if value := found():
            return value
        time.sleep(0.02)
    raise AssertionError("it did not come")


def done_points(path):
    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            return database.execute("SELECT count(*) FROM point WHERE state = 'done'").fetchone()[0]
    except sqlite3.Error:
        return 0


def start(folder, *words):
    return subprocess.Popen(
        [BIN / "apenet", *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_killed_worker_loses_nothing(serial, tmp_path):
    running = start(tmp_path, "sweep", "--workers", "2", *GRID, "--", *HALO)
    os.kill(until(lambda: workers_of(running.pid))[0], signal.SIGKILL)
    out, err = running.communicate(timeout=GUARD_S)
    assert (running.returncode, out) == (0, serial[1]), err
    assert exported(tmp_path, "study.sqlite") == serial[2]


def test_a_killed_sweep_leaves_no_worker_and_is_resumed(serial, tmp_path):
    running = start(tmp_path, "sweep", "--workers", "1", *GRID, "--", *HALO)
    until(lambda: done_points(tmp_path / "study.sqlite"))
    workers = workers_of(running.pid)
    running.kill()
    running.communicate()
    until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    with sqlite3.connect(tmp_path / "study.sqlite") as database:
        before = dict(database.execute("SELECT number, wall_s FROM point WHERE state = 'done'"))
    done = command("sweep", *GRID, "--", *HALO, folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, serial[1]), done.stderr
    assert exported(tmp_path, "study.sqlite") == serial[2]
    with sqlite3.connect(tmp_path / "study.sqlite") as database:
        after = dict(database.execute("SELECT number, wall_s FROM point"))
    assert {number: after[number] for number in before} == before  # not computed twice


def test_an_interrupted_sweep_says_how_to_go_on(tmp_path):
    running = start(tmp_path, "sweep", "--workers", "1", *GRID, "--", *HALO)
    until(lambda: done_points(tmp_path / "study.sqlite"))
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=GUARD_S)
    if running.returncode == 0:  # it was done before
        return
    assert running.returncode == 130
    assert "the same command computes the others" in err


def test_mpi_workers_give_the_same(serial, tmp_path):
    launcher = [BIN / "mpiexec", "-n", "3", sys.executable, "-m", "mpi4py.futures"]
    done = subprocess.run(
        [*launcher, "-m", "apenet", "sweep", "--on", "mpi", *GRID, "--", *HALO],
        cwd=tmp_path, capture_output=True, text=True, timeout=GUARD_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, serial[1]), done.stderr


def test_dask_workers_give_the_same_though_one_is_killed(serial, tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=tmp_path / "dask"
    ) as cluster:
        victim = next(iter(cluster.workers.values())).pid
        running = start(tmp_path, "sweep", "--on", cluster.scheduler_address, *GRID, "--", *HALO)
        until(lambda: done_points(tmp_path / "study.sqlite"))
        os.kill(victim, signal.SIGKILL)
        out, err = running.communicate(timeout=GUARD_S)
    assert (running.returncode, out) == (0, serial[1]), err
    assert exported(tmp_path, "study.sqlite") == serial[2]


def test_a_scheduler_without_workers_is_said_and_waited_for(serial, tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=0, threads_per_worker=1, dashboard_address=None, local_directory=tmp_path / "dask"
    ) as cluster:
        running = start(tmp_path, "sweep", "--on", cluster.scheduler_address, *GRID, "--", *HALO)
        said = running.stderr.readline()
        assert said == f"the Dask scheduler {cluster.scheduler_address} has no worker\n"
        cluster.scale(1)
        out, err = running.communicate(timeout=GUARD_S)
    assert (running.returncode, out) == (0, serial[1]), err


def test_a_program_that_changes_ends_the_sweep_and_keeps_what_is_done(tmp_path):
    script = tmp_path / "changes.sh"
    script.write_text('if [ "$1" = 2 ]; then echo "# more" >> "$0"; fi\n')
    done = command(
        "sweep", "--workers", "1", "--grid=--seed=1,2,3", "--", "run", "-n", "1", "--", "sh", str(script), "1",
        folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    running = command(
        "sweep", "--study", "b.sqlite", "--workers", "1", "--grid=--seed=1,2", "--", "run", "-n", "1", "--", "sh",
        str(script), "2", folder=tmp_path,
    )  # fmt: skip
    assert running.returncode != 0
    assert f"{script} has changed" in running.stderr
    again = command(
        "sweep", "--grid=--seed=1,2,3", "--", "run", "-n", "1", "--", "sh", str(script), "1", folder=tmp_path
    )
    assert again.returncode == 2
    assert "has changed since" in again.stderr
    assert command("study", "show", "study.sqlite", folder=tmp_path).stdout.startswith("# apenet run")


MINE = '[machine]\nname = "mine"\ntitle = "t"\nsummary = "s"\nbase = "{}"\n'


@pytest.mark.parametrize("changed", ["program", "machine"])
def test_new_values_do_not_mix_two_programs_or_machines(tmp_path, changed):
    script = tmp_path / "program.sh"
    script.write_text("exit 0\n")
    machine = tmp_path / "mine.toml"
    machine.write_text(MINE.format("ape16"))
    sweep = ("sweep", "--workers", "1", "-m", "mine.toml")
    program = ("--", "run", "-n", "1", "--", "sh", str(script))
    assert command(*sweep, "--grid=--seed=1,2", *program, folder=tmp_path).returncode == 0
    if changed == "program":
        script.write_text("exit 0 # another\n")
    else:
        machine.write_text(MINE.format("ape128"))
    again = command(*sweep, "--grid=--seed=3", *program, folder=tmp_path)
    assert again.returncode == 2
    named = str(script) if changed == "program" else "machine mine.toml"
    assert again.stderr == (
        'apenet: --study = "study.sqlite": expected results of this program and machine, or another --study: '
        f"{named} has changed since\n"
    )
    with apenet.study(tmp_path / "study.sqlite") as kept:
        assert len(list(kept.rows())) == 2


def test_a_study_without_results_takes_a_mended_program(tmp_path):
    script = tmp_path / "program.sh"
    script.write_text("exit 3\n")
    words = ("sweep", "--workers", "1", "--grid=--seed=1,2", "--", "run", "-n", "1", "--", "sh", str(script))
    assert command(*words, folder=tmp_path).returncode == 1
    script.write_text("exit 0\n")
    done = command(*words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 done" in done.stdout


def test_a_failed_program_is_no_result_and_is_tried_again(tmp_path):
    script = tmp_path / "fails.sh"
    script.write_text("test -e ready\n")
    words = ("sweep", "--workers", "1", "--grid=--seed=1,2", "--", "run", "-n", "1", "--", "sh", str(script))
    done = command(*words, folder=tmp_path)
    assert done.returncode == 1
    assert "2 of 2 points failed" in done.stderr
    assert "status 1" in done.stderr
    (tmp_path / "ready").touch()
    assert command(*words, folder=tmp_path).returncode == 0


def test_two_sweeps_do_not_fill_one_study(tmp_path):
    plan = Plan(HALO, ("ape16",))
    with SweptStudy(tmp_path / "study.sqlite", plan, apenet.__version__):
        done = command("sweep", "--", *HALO, folder=tmp_path)
    assert done.returncode == 2
    assert "no other sweep" in done.stderr
    assert command("sweep", "--", *HALO, folder=tmp_path).returncode == 0


def test_a_full_disk_is_said(tmp_path):
    limited = ("sh", "-c", 'ulimit -f 8; exec "$@"', "sh")
    done = command("sweep", "--grid", "bus.clock_mhz=1:1000:1000", "--", *HALO, folder=tmp_path, launcher=limited)
    assert done.returncode == 2
    assert "--study" in done.stderr
    assert "could not be written" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--grid", "bus.clock=1,2", "--", *HALO), '"clock_mhz"'),
        (("--grid=--frob=1,2", "--", *HALO), "--frob"),
        (("--grid=-n=1,x", "--", "run", "--", "true"), "'-n'"),
        (("--latin", "3", "--sobol", "4", "--", *HALO), "one way of drawing"),
        (("--vary", "bus.clock_mhz=1:2", "--", *HALO), "--vary"),
        (("-m", "pax", "--", *HALO, "-m", "ape16"), "--machine"),
        (("-m", "pax,pax", "--", *HALO), "each machine once"),
        (("--on", "somewhere", "--", *HALO), "--on"),
        (("--on", "mpi", "--", *HALO), "mpiexec"),
        (("--workers", "0", "--", *HALO), "--workers"),
        (("--study", "other", "--", *HALO), "another origin"),
        (("nothing.toml",), "nothing.toml"),
        (("--grid", "bus.clock_mhz=1,2", "sweep.toml"), "--grid"),
        (("--",), "command"),
    ],
)
def test_bad_input_starts_nothing_and_leaves_nothing(tmp_path, words, said):
    (tmp_path / "other").write_text("notes")
    (tmp_path / "sweep.toml").write_text('command = "bench halo"\n')
    done = run_forked(("sweep", *words), tmp_path)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "sweep.toml"]


def test_a_scheduler_that_does_not_answer_is_said(tmp_path):
    pytest.importorskip("distributed")
    done = command("sweep", "--on", "tcp://127.0.0.1:9", "--", *HALO, folder=tmp_path)
    assert done.returncode == 1
    assert "--on tcp://127.0.0.1:9: no Dask scheduler answers" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_study_is_refused(serial, tmp_path):
    (tmp_path / "text").write_text("notes")
    with sqlite3.connect(tmp_path / "foreign") as database:
        database.execute("CREATE TABLE mine (a)")
    (tmp_path / "old").write_bytes((serial[0] / "study.sqlite").read_bytes())
    with sqlite3.connect(tmp_path / "old") as database:
        database.execute("PRAGMA user_version = 99")
    for name, said in (("text", "study"), ("foreign", "another SQLite"), ("old", "format 99"), ("none", "study")):
        done = command("study", "show", name, folder=tmp_path)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    done = command("sweep", "--study", "foreign", "--", *HALO, folder=tmp_path)
    assert done.returncode == 2


def test_the_table_names_an_axis_without_effect(serial, tmp_path):
    done = command("sweep", "--grid", "network.link.clock_mhz=100,133", "--", *HALO, folder=tmp_path)
    lines = done.stdout.splitlines()
    assert lines[1].split()[:2] == ["network.link.clock_mhz", "time_us"]
    assert lines[-1] == "network.link.clock_mhz changes no result on ape16"
    assert "changes no result" not in serial[1]


@pytest.mark.parametrize("draws", [(), ("--latin", "4"), ("--ends",)])
def test_every_kind_of_figure_is_drawn(draws, tmp_path):
    varied = ("--vary", "bus.read_latency_ns=100:300", "--vary", "bus.max_burst_bytes=128:512") if draws else ()
    grid = () if draws == ("--ends",) else ("--grid", "bus.clock_mhz=66,100,133")
    done = command("sweep", *grid, *draws, *varied, "--", *HALO, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    drawn = command("study", "plot", "study.sqlite", "--figure", "a.png", folder=tmp_path)
    assert drawn.returncode == 0, drawn.stderr
    assert (tmp_path / "a.png").stat().st_size > 1000
