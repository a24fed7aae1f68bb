"""The command: its output is a contract; its errors have status 2 and say what to write instead."""

import inspect
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated

import pytest
from typer.testing import CliRunner

import apenet as package
from apenet.base.errors import InputError
from apenet.bench import TESTS, pairs
from apenet.bench.request import Option, options_of
from apenet.cli import app, command

HELLO = "from mpi4py import MPI; w = MPI.COMM_WORLD; print(w.rank, w.allreduce(1))"


def test_version(apenet):
    assert apenet("--version").stdout == f"apenet {package.__version__}\n"


@pytest.mark.parametrize(
    "command",
    [
        "run",
        "bench",
        "reproduce",
        "machines",
        "machine show",
        "machine check",
        "doctor",
        "perf",
        "replay",
        "fit",
        "calibrate",
        "gate",
        "completion",
        "man",
    ],
)
def test_every_command_explains_itself(apenet, command):
    done = apenet(*command.split(), "--help")
    assert done.returncode == 0
    assert "--help" in done.stdout


def test_documented_names_exist_after_the_import():
    """In a separate interpreter, because other tests have imported the modules here."""
    named = "apenet.fit.fit, apenet.calibrate.calibrate, apenet.reproduce.plan, apenet.bench.pingpong, apenet.machine"
    subprocess.run([sys.executable, "-c", f"import apenet; {named}; apenet.machine('ideal')"], check=True)


def test_a_command_imports_only_what_it_needs():
    """All of the package takes a second, each time that a user or a sweep starts it."""
    code = "import sys, apenet.cli; print(*(name for name in sys.modules if name.startswith('apenet.')))"
    imported = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    unneeded = ["bench", "fit", "reproduce", "cluster", "study.study", "explain.analysis", "cli.run", "cli.bench"]
    assert not {f"apenet.{name}" for name in unneeded} & set(imported)


def test_names_are_those_of_the_package():
    code = "import apenet; assert set(apenet.__all__) <= set(dir(apenet)); [getattr(apenet, x) for x in apenet.__all__]"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = package.nothing


def test_machines(apenet):
    listed = json.loads(apenet("machines", "--json").stdout)["machines"]
    assert [machine["name"] for machine in listed] == package.machine_names()
    shapes = {machine["name"]: machine["dims"] for machine in listed}
    assert shapes["ape16"] == [4, 2, 2]
    assert shapes["ape128"] == [8, 4, 4]
    for line in apenet("machines").stdout.splitlines()[1:]:
        assert line.split()[0] in shapes


def test_a_shown_machine_is_a_machine_file(apenet, tmp_path):
    mine = tmp_path / "mine.toml"
    mine.write_text(apenet("machine", "show", "ape16", "--set", "bus.clock_mhz=66").stdout)
    assert package.machine(mine).file.bus.clock_mhz.value == 66
    done = apenet("machine", "check", mine)
    assert done.returncode == 0, done.stderr
    assert "4x2x2" in done.stdout
    assert "deadlock: free of it, no cycle among " in done.stdout


def test_show_says_how_a_network_is_arranged(apenet):
    lines = apenet("machine", "show", "ape128").stdout.splitlines()
    assert lines[0] == "# topology: 8x4x4 torus, 128 nodes, 128 routers of 7 ports, 384 cables"
    assert lines[1] == "# routing: dimension-order, 2 classes of virtual channels"
    assert lines[2].endswith("on 3 smaller networks, one for each dimension")
    assert not apenet("machine", "show", "ideal").stdout.startswith("#")


def test_a_table_that_can_deadlock_is_refused_with_its_cycle(apenet, tmp_path):
    table = tmp_path / "ring.txt"
    table.write_text("* * +x  # round and round\n")
    settings = ["network.dims=[5]", "network.routing=table", f"network.table_file='{table}'"]
    done = apenet("machine", "check", "ape16", *(word for setting in settings for word in ("--set", setting)))
    assert done.returncode == 2
    assert "network.table_file = routes that can deadlock: expected" in done.stderr
    assert "(0)+x class 0 -> (1)+x class 0 -> " in done.stderr


def test_a_misspelt_key_in_a_file_is_named(apenet, tmp_path):
    mine = tmp_path / "mine.toml"
    text = package.machine("ape16").to_toml()
    mine.write_text(text.replace("read_latency_ns", "read_latency_us"))
    done = apenet("machine", "check", mine)
    assert done.returncode == 2
    assert f"{mine}: bus.read_latency_us = 350: expected" in done.stderr
    assert "read_latency_ns = 350000" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("test", [test for test in TESTS if test != "dslash"])  # its lattice gives the sizes
def test_bench_prints_a_header_and_columns(apenet, test):
    layer = ["--layer", "rdma"] if test in {"put", "get"} else []  # the card has no such tests
    done = apenet("bench", test, "--machine", "apenet-2004", "--sizes", "16:64", *layer)
    assert done.returncode == 0, done.stderr
    header = [line for line in done.stdout.splitlines() if line.startswith("#") and not line.startswith("# warning")]
    assert "Size (B)" in header[-1]
    assert "(us)" in header[-1]
    assert "(MiB/s)" in header[-1]
    rows = [line.split() for line in done.stdout.splitlines() if not line.startswith("#")]
    assert [row[0] for row in rows] == ["16", "32", "64"] * (2 if test == "fanout" else 1)  # two neighbours
    more = {"rate": 1, "fanout": 1, "randomaccess": 1, "alltoall": 2}  # its algorithm, and its use of the bisection
    assert all(len(row) == 3 + more.get(test, 0) for row in rows)
    assert done.stderr == ""


def test_bench_json(apenet):
    done = apenet("bench", "pingpong", "--machine", "ideal", "--sizes", "16", "--json", "--set", "card.latency_ns=5000")
    content = json.loads(done.stdout)
    assert content["points"][0]["time_us"] == pytest.approx(5.015, abs=0.01)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bench", "pingpong", "--sizes", "0:16"], 'sizes = "0"'),
        (["bench", "pingpong", "--sizes", "16:-1"], 'sizes = "-1"'),
        (["bench", "pingpong", "--nodes", "0;1"], 'nodes = "0;1"'),
        (["bench", "pingpong", "--nodes", "0,77"], "0 to 15"),
        (["bench", "pingpnog"], "one of pingpong"),
        (["bench", "pingpong", "--machine", "ape61"], 'did you mean "ape16"'),
        (["bench", "pingpong", "--set", "bus.clokc_mhz=3"], '"clock_mhz"'),
        (["bench", "pingpong", "--mpi", "lam", "--layer", "mpi"], "auto, mpich, openmpi or intel"),
        (["machine", "show", "nosuch"], "one of ape128"),
        (["machine", "check", "no/such.toml"], "a file that exists"),
        (["reproduce", "--only", "ape17"], "apenet-2005.rtt_min"),
        (["reproduce", "--random-access", "--only", "ape128"], 'random-access = "with --only'),
        (["run", "-n", "2", "--", "no-such-program"], 'program = "no-such-program"'),
        (["run", "-n", "2", "--", __file__], "executable"),
        (["run", "-n", "2", "--", "/etc"], "executable"),
        (["run", "-n", "4", "--", "mpiexec", "-n", "4", "./prog"], "drop mpiexec, apenet run -n RANKS starts them"),
        (["run", "-n", "4", "--", "/usr/bin/srun", "./prog"], "drop srun"),
        (["run", "-n", "4", "--", "mpirun.openmpi", "./prog"], "drop mpirun.openmpi"),
        (["run", "-n", "0", "--", "true"], "ranks = 0"),
        (["run", "-n", "17", "--", "true"], "4x2x2 = 16 nodes"),
        (["run", "-n", "2", "--ranks-per-node", "5", "--", "true"], "card.ports"),
        (["run", "-n", "2", "--map", "random:", "--", "true"], "random:SEED"),
        (["run", "-n", "2", "--compute", "guess", "--", "true"], "measured[:SCALE]"),
        (["run", "-n", "2", "--compute", "measured:0", "--", "true"], "measured[:SCALE]"),
        (["run", "-n", "2", "--engine", "fast", "--", "true"], "packet, flit or both"),
        (["run", "-n", "2", "--machine", "ideal", "--engine", "flit", "--", "true"], '"ideal" has no network'),
        (["run", "-n", "2", "--out", "/proc/nowhere", "--", "true"], "a folder that can be written"),
        (["run", "-n", "two", "--", "true"], "'-n'"),
        (["run", "--", "true"], "-n"),
        (["run", "-n", "2"], "PROGRAM"),
        (["nonsense"], "nonsense"),
    ],
)
def test_bad_input_ends_with_2_and_says_what_was_expected(apenet, arguments, said):
    done = apenet(*arguments)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_run_keeps_the_programs_output_apart(apenet, tmp_path):
    done = apenet("run", "-n", "3", "--machine", "ape16", "--out", tmp_path / "run", "--", "python", "-c", HELLO)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 3", "1 3", "2 3"]
    assert "virtual time" in done.stderr
    assert "busiest link" in done.stderr
    assert "compute: none" in done.stderr


def test_a_run_folder_holds_request_machine_and_result(apenet, tmp_path):
    folders = [tmp_path / name for name in ("one", "two")]
    for folder, pin in zip(folders, ("--pin", "--no-pin"), strict=True):
        options = [
            "-n",
            "3",
            "--machine",
            "ape16",
            "--set",
            "bus.clock_mhz=66",
            "--map",
            "random:3",
            "--seed",
            "9",
            pin,
        ]
        assert apenet("run", *options, "--out", folder, "--", "python", "-c", HELLO).returncode == 0
    names = sorted(path.name for path in folders[0].iterdir())
    assert names == ["command.json", "host.json", "machine.toml", "network.json", "run.json"]
    for name in ("command.json", "machine.toml", "network.json", "run.json"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()
    command = json.loads((folders[0] / "command.json").read_text())
    assert command["settings"] == ["bus.clock_mhz=66"]
    assert (command["seed"], command["ranks"], command["mapping"]) == (9, 3, "random:3")
    assert package.machine(folders[0] / "machine.toml").file.bus.clock_mhz.origin == "set"
    run = json.loads((folders[0] / "run.json").read_text())
    assert run["outcome"] == "completed"
    assert run["virtual_time_us"] > 0
    assert run["messages"] > 0
    assert len(run["ranks"]) == 3
    host = json.loads((folders[0] / "host.json").read_text())
    assert host["wall_time_s"] > 0


def test_a_run_folder_is_used_again_and_files_of_others_are_not_overwritten(tmp_path):
    """Replays: the folder is the same, and they start no process."""
    trace = tmp_path / "one.goal"
    trace.write_text("num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 0\n}\nrank 1 {\nl1: recv 8b from 0 tag 0\n}\n")
    folder = tmp_path / "run"
    package.replay(trace, out=folder)
    (folder / "notes.txt").write_text("mine")
    package.replay(trace, out=folder, machine="ideal")
    assert json.loads((folder / "run.json").read_text())["machine"] == "ideal"
    assert (folder / "notes.txt").read_text() == "mine"
    trace.write_text("num_ranks 2\nrank 0 {\n}\nrank 1 {\nl1: recv 8b from 0 tag 0\n}\n")
    with pytest.raises(package.ReplayError):
        package.replay(trace, out=folder)
    assert not (folder / "run.json").exists()  # not that of another run

    for name, text in (("machine.toml", "[machine]"), ("run.json", "{}"), ("command.json", '{"npm": "install"}')):
        other = tmp_path / f"with {name}"
        other.mkdir()
        (other / name).write_text(text)
        with pytest.raises(InputError, match=rf"out = .*{name} is there, and of no run"):
            package.replay(trace, out=other)
        assert (other / name).read_text() == text


def test_doctor_shows_the_path_of_each_rank(apenet):
    done = apenet("doctor", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["healthy"]
    assert [rank["provider"] for rank in report["ranks"]] == ["apenet", "apenet"]
    assert {rank["clock"] for rank in report["ranks"]} == {"virtual"}
    assert all("MPICH" in rank["library"] for rank in report["ranks"])
    assert [rank["locality"] for rank in report["ranks"]] == ["node 0", "node 1"]


def test_run_is_a_function():
    result = package.run([sys.executable, "-c", HELLO], n=2, machine="ideal", capture=True)
    assert result.ok
    assert sorted(result.stdout.split(b"\n")) == [b"", b"0 2", b"1 2"]
    assert result.stderr == b""
    assert len(result.ranks) == 2
    assert result.virtual_time_us >= 1
    again = package.run([sys.executable, "-c", HELLO], n=2, machine="ideal", capture=True)
    assert again.to_json() == result.to_json()


@pytest.mark.parametrize("test", [*TESTS, "lqcd"])
def test_the_help_of_a_test_has_its_options_alone(test):
    """The same options as the function of the test."""
    done = CliRunner().invoke(app, ["bench", test, "--help"])
    shown = set(re.findall(r"^  (?:-[mh], )?(-\S+)", done.stdout, flags=re.MULTILINE))
    request = package.bench.CATALOGUE.requests[test]
    own = {one.flag for one in options_of(request)}
    figure = {"--figure"} if test == "lqcd" else set()
    of_all = {
        "--machine",
        "--partition",
        "--set",
        "--rail",
        "--fault",
        "--check-settings",
        "--report",
        "--json",
        "--help",
    }
    assert shown == own | figure | of_all
    parameters = inspect.signature(getattr(package.bench, test)).parameters
    assert {one.name for one in options_of(request)} <= set(parameters)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["pingpong", "--window", "4"], "window = 4: expected none for pingpong: it belongs to unidirectional, "),
        (["halo", "--look-ahead=4"], "look_ahead = 4: expected none for halo: it belongs to randomaccess"),
        (["alltoall", "--mpi", "mpich"], "mpi = mpich: expected none for alltoall"),
        (["-n", "4", "pingpong"], "n = 4: expected none for pingpong: it belongs to randomaccess, halo, "),
        (["lqcd", "--caches", "off"], "caches = off: expected none for lqcd"),
        (["--path", "put", "-mape17", "pingpong"], "did you mean ape16"),
        (["-m", "ape16"], "Missing command"),
    ],
)
def test_options_of_other_tests_are_refused_by_name(apenet, arguments, said):
    done = apenet("bench", *arguments)
    assert done.returncode == 2
    assert said in done.stderr.replace('"', "")
    assert done.stdout == ""


def test_a_field_of_a_request_is_an_option(monkeypatch):
    """The command and the function take it, and the other tests refuse it."""

    @dataclass(frozen=True, kw_only=True)
    class Noisy(pairs.PingPong):
        noise: Annotated[int, Option("How loud.")] = 3

        def measure(self):
            raise InputError("noise", self.noise, f"silence on {self.simulated.name}")

    monkeypatch.setitem(package.bench.CATALOGUE.requests, "pingpong", Noisy)
    for call in (
        lambda: command()(args=["bench", "pingpong", "--noise", "5"], standalone_mode=False),
        lambda: package.bench.measure("pingpong", "ape16", noise=5),
    ):
        with pytest.raises(InputError, match="noise = 5: expected silence on ape16"):
            call()
    with pytest.raises(InputError, match="noise = 5: expected none for halo: it belongs to pingpong"):
        package.bench.halo("ape16", noise=5)


def test_options_may_stand_before_the_test(apenet):
    done = apenet("bench", "--path", "put", "--json", "-mape16", "--sizes=16", "pingpong", "--seed", "3")
    content = json.loads(done.stdout)
    assert (content["test"], content["path"], content["seed"]) == ("pingpong", "put", 3)
    assert "Usage: apenet bench TEST" in apenet("bench", "-m", "ape16", "--help").stdout


def test_a_program_that_is_an_executable_pipe_is_refused(apenet, tmp_path):
    os.mkfifo(tmp_path / "program", 0o700)
    done = apenet("run", "-n", "2", "--", tmp_path / "program", timeout_s=60)
    assert done.returncode == 2
    assert done.stderr.endswith("expected an executable file, not a pipe\n")
