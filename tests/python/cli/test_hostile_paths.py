"""Every option that names a file, with hostile names: one line of error, status 2, and no file changed."""

import ctypes
import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from forked import run_forked

import apenet as package
from apenet.base.errors import HostError, InputError, NotWrittenError
from apenet.host.caching import make_cache

GOAL = "num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 0\n}\nrank 1 {\nl1: recv 8b from 0 tag 0\n}\n"
OSU = "# OSU MPI Latency Test\n# Size Latency (us)\n1 1.0\n2 1.1\n4 1.2\n8 1.3\n16 1.4\n"
HELLO = "from mpi4py import MPI; print(MPI.COMM_WORLD.rank)"
MINE = "what somebody wrote\n"
_CAPSET_VERSION = 0x20080522


def obey_permissions() -> None:
    """Drops root's capability to ignore file modes, for this process from here on."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPSET_VERSION, 0)
    assert libc.capset(header, (ctypes.c_uint32 * 6)()) == 0


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with one object of each kind."""
    (tmp_path / "t.goal").write_text(GOAL)
    (tmp_path / "osu.txt").write_text(OSU)
    (tmp_path / "mine").write_text(MINE)
    (tmp_path / "garbage").write_bytes(bytes(range(256)) * 9)
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "locked").mkdir(mode=0o500)
    (tmp_path / "unreadable").write_text(MINE)
    (tmp_path / "unreadable").chmod(0)
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "link").symlink_to("mine")
    (tmp_path / "folder-link").symlink_to("folder")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        here = Path.cwd()
        os.chdir(tmp_path)
        bound.bind("socket")
        os.chdir(here)
    return tmp_path


def contents(folder: Path) -> dict[str, object]:
    """The properties of every file that change when it is written or replaced."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        found[str(path)] = (status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns)
    return found


READERS = {
    "machine check": ["machine", "check", "{}"],
    "machine show": ["machine", "show", "{}"],
    "bench --machine": ["bench", "pingpong", "--machine", "{}"],
    "replay": ["replay", "{}"],
    "replay --machine": ["replay", "t.goal", "--machine", "{}"],
    "replay --map": ["replay", "t.goal", "--map", "{}"],
    "run --map": ["run", "-n", "2", "--map", "{}", "--", "true"],
    "run --": ["run", "-n", "2", "--", "{}"],
    "fit": ["fit", "{}"],
    "fit --model loggp": ["fit", "--model", "loggp", "osu.txt", "{}"],
    "--set table_file": [
        "machine",
        "check",
        "ape16",
        "--set",
        "network.routing=table",
        "--set",
        "network.table_file={}",
    ],
    "calibrate --libfabric": ["calibrate", "--provider", "tcp", "--libfabric", "{}"],
}
INPUTS = {
    "empty name": ("", ""),
    "missing": ("./nothing", ""),
    "folder": ("./folder", ""),
    "pipe that nobody writes to": ("./pipe", "pipe|executable"),
    "endless device": ("/dev/zero", "device|executable"),
    "endless random device": ("/dev/urandom", "device|executable"),
    "empty device": ("/dev/null", "device|executable"),
    "socket": ("./socket", "socket|executable"),
    "unreadable": ("./unreadable", "Permission|executable"),
    "long name": ("./" + "x" * 3000, ""),
    "name of no text": (b"./\xff\xfe".decode(errors="surrogateescape"), ""),
    "loop of links": ("./loop", "symbolic links|executable|PATH"),
    "dangling link": ("./dangling", ""),
    "below a file": ("./mine/x", ""),
    "garbage": ("./garbage", ""),
    "empty file": ("./empty", ""),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_unreadable_inputs_are_bad_input(place, reader):
    before = contents(place)
    for name, (given, reason) in INPUTS.items():
        done = run_forked([part.replace("{}", given) for part in reader], place, prepare=obey_permissions)
        what = f"{name}: {done}"
        assert done.returncode == 2, what
        assert done.stdout == "", what
        assert "Traceback" not in done.stderr, what
        assert re.search(reason, done.stderr), what
        assert done.stderr.startswith("apenet: "), what
        assert len(done.stderr.splitlines()) == 1 or name in ("garbage", "empty file"), what
        assert len(done.stderr) < 6000, what
    assert contents(place) == before


FILE_WRITERS = {
    "replay --trace": ["replay", "t.goal", "--trace", "{}"],
    "run --trace": ["run", "-n", "2", "--trace", "{}", "--", "true"],
    "run --record": ["run", "-n", "2", "--record", "{}", "--", "true"],
    "fit --plot": ["fit", "osu.txt", "--plot", "{}.png"],
    "fit --to-machine": ["fit", "osu.txt", "--to-machine", "{}.toml"],
}
FOLDER_WRITERS = {
    "replay --out": ["replay", "t.goal", "--out", "{}"],
    "run --out": ["run", "-n", "2", "--out", "{}", "--", "true"],
    "reproduce --out": ["reproduce", "--only", "apenet-2005.rtt_min", "--out", "{}"],
}
NO_FILES = {
    "empty name": "",
    "missing folder": "./nothing/x",
    "folder": "./folder",
    "pipe": "./pipe",
    "socket": "./socket",
    "somebody's file": "./mine",
    "link to it": "./link",
    "dangling link": "./dangling",
    "loop of links": "./loop",
    "in a loop": "./loop/x",
    "locked folder": "./locked/x",
    "unreadable": "./unreadable",
    "long name": "./" + "x" * 3000,
    "below a file": "./mine/x",
    "input": "./t.goal",
}


@pytest.mark.parametrize("writer", FILE_WRITERS.values(), ids=FILE_WRITERS)
def test_protected_outputs_are_bad_input(place, writer):
    suffix = writer[-1].removeprefix("{}") if "{}" in writer[-1] else ""
    if suffix:
        for name in ("mine", "folder", "pipe", "socket", "link", "dangling", "loop", "unreadable", "t.goal"):
            (place / name).rename(place / f"{name}{suffix}")
        (place / f"loop{suffix}").unlink()
        (place / f"loop{suffix}").symlink_to(f"loop{suffix}")
        (place / "loop").symlink_to("loop")
        (place / "mine").write_text(MINE)
    before = contents(place)
    for name, given in NO_FILES.items():
        done = run_forked([part.replace("{}", given) for part in writer], place, prepare=obey_permissions)
        what = f"{name}: {done}"
        assert done.returncode == 2, what
        assert "Traceback" not in done.stderr, what
        assert done.stderr.startswith("apenet: "), what
        assert done.stdout == "", what
        assert contents(place) == before, what


@pytest.mark.parametrize("writer", FOLDER_WRITERS.values(), ids=FOLDER_WRITERS)
def test_folders_that_must_not_be_written_are_bad_input(place, writer):
    for name in ("run.json", "report"):
        (place / "folder" / name).write_text("{}")
    (place / "linked").mkdir()
    (place / "linked" / "command.json").symlink_to("../mine")
    (place / "linked" / "report").symlink_to("../folder")
    before = contents(place)
    names = [name for name in NO_FILES if name != "missing folder"]
    for given in (*(NO_FILES[name] for name in names), "./folder-link", "./linked", "/dev/null", "/dev/zero"):
        if given == "./folder-link" and "reproduce" in writer:
            continue  # the folder is DIR/report
        done = run_forked([part.replace("{}", given) for part in writer], place, prepare=obey_permissions)
        what = f"{given}: {done}"
        assert done.returncode == 2, what
        assert re.fullmatch(r"apenet: out = .*\n", done.stderr), what
        assert done.stdout == "", what
        assert contents(place) == before, what


def test_no_file_is_written_twice_or_over_what_is_read(place):
    os.link(place / "t.goal", place / "hard")
    for arguments in (
        ["--trace", "x", "--out", "./x"],
        ["--trace", "out/run.json", "--out", "out"],
        ["--trace", "folder/../out/host.json", "--out", str(place / "out")],
        ["--trace", "hard"],
        ["--trace", str(place / "folder" / ".." / "t.goal")],
    ):
        done = run_forked(["replay", "t.goal", *arguments], place)
        assert done.returncode == 2, done
        assert "expected another file than that of" in done.stderr
    (place / "t.json").touch()
    os.link(place / "t.json", place / "u.json")
    for other in ("./t.json", "u.json", place / "folder" / ".." / "t.json"):
        with pytest.raises(InputError, match=r"record = .*another file than that of trace"):
            package.run(["true"], n=2, trace=place / "t.json", record=place / other)
    assert (place / "t.goal").read_text() == GOAL


def test_own_files_are_replaced_and_devices_are_written_to(place):
    for _ in range(2):
        done = run_forked(["replay", "t.goal", "--trace", "t.json", "--out", "out"], place)
        assert done.returncode == 0, done
        done = run_forked(["fit", "osu.txt", "--to-machine", "m.toml", "--plot", "p.svg"], place)
        assert done.returncode == 0, done
    assert json.loads((place / "t.json").read_text())["traceEvents"]
    assert run_forked(["replay", "t.goal", "--trace", "/dev/null"], place).returncode == 0
    printed = run_forked(["replay", "t.goal", "--trace", "/dev/stdout"], place).stdout
    assert printed.startswith('{"displayTimeUnit"')
    assert "of virtual time" in printed
    assert not [path.name for path in place.rglob(".*")]


def test_a_folder_has_one_run_at_a_time(place, start_apenet):
    """The lock ends with its process, however the process ends."""
    script = "import time; print('up', flush=True); time.sleep(1000)"
    started = start_apenet("run", "-n", "1", "--out", "out", "--", sys.executable, "-c", script, cwd=place)
    for _ in range(600):
        if (place / "out" / "command.json").exists():
            break
        signal.sigtimedwait([], 0.1)
    done = run_forked(["replay", "t.goal", "--out", "out"], place)
    assert done.returncode == 2
    assert "no other command writes to" in done.stderr
    os.kill(started.process.pid, signal.SIGKILL)
    started.finish()
    assert run_forked(["replay", "t.goal", "--out", "out"], place).returncode == 0


def test_a_full_disk_ends_with_a_message_and_keeps_the_result(place):
    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

    full = ["replay", "t.goal", "--out", "out", "--trace", "t.json"]
    done = run_forked(full, place, prepare=little_room)
    assert done.returncode == 2, done
    assert "of virtual time" in done.stdout
    assert 'apenet: trace = "t.json": could not be written: File too large' in done.stderr
    assert 'apenet: out = "out": could not be written: File too large' in done.stderr
    assert [path.name for path in (place / "out").iterdir()] == ["command.json"]
    assert not (place / "t.json").exists()
    assert run_forked(full, place).returncode == 0
    assert json.loads((place / "out" / "run.json").read_text())["messages"] == 1
    with pytest.raises(NotWrittenError) as caught:
        package.replay(place / "t.goal", trace_out="/dev/full")
    assert caught.value.result.messages == 1
    done = run_forked(["run", "-n", "1", "--trace", "/dev/full", "--", "sh", "-c", "exit 7"], place)
    assert done.returncode == 7, done
    assert "could not be written: No space left on device" in done.stderr


@pytest.mark.parametrize("name", ["/dev/full", "closed"])
def test_a_result_that_cannot_be_printed_is_no_success(place, name):
    def lose_output() -> None:
        os.close(1)
        if name != "closed":
            os.open(name, os.O_WRONLY)
        else:
            sys.stdout = None

    for arguments in (["machines"], ["machines", "--json"], ["replay", "t.goal"], ["machine", "show", "ape16"]):
        done = run_forked(arguments, place, prepare=lose_output)
        assert done.returncode == 2, done
        reason = "Bad file descriptor" if name == "closed" else "No space left on device"
        assert done.stderr == f"apenet: standard output: {reason}\n"
    done = run_forked(["run", "-n", "2", "--", sys.executable, "-c", HELLO], place, prepare=lose_output)
    assert done.returncode == 2, done
    assert f"output_closed: the output cannot be written: {reason}" in done.stderr


def test_too_little_memory_is_reported(place):
    def little_memory() -> None:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**27, used + 2**27))

    done = run_forked(["run", "-n", "2", "--", sys.executable, "-c", HELLO], place, prepare=little_memory)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("apenet: this run cannot go on: mmap of ")
    assert re.search(r"Cannot allocate memory \(RLIMIT_AS is \d+ KiB: see ulimit -v\)", done.stderr)
    assert len(done.stderr.splitlines()) == 1


LONG = "x" * 100_000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('name = "ape16"', f'name = "{LONG}"'),
        ("[bus]", f"[bus]\n{LONG} = 1"),
        ("[bus]", f"[{LONG}]\n[bus]"),
        ("[bus]", f'[partition]\n{LONG} = "1x2x2"\n[bus]'),
        ("[bus]", f'[[fault]]\nlink = "{LONG}"\n[bus]'),
        ('base = "ape128"', f'base = "{LONG}"'),
    ],
)
def test_long_names_of_a_machine_file_are_not_printed_whole(tmp_path, old, new):
    text = (Path(package.__file__).parent / "machines" / "ape16.toml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "long.toml").write_text(text.replace(old, new), encoding="utf-8")
    for command in ("machine check", "machine partition", "bench pingpong --machine", "run -n 2 --machine"):
        program = ["--", "true"] if command.startswith("run") else []
        done = run_forked([*command.split(), "long.toml", *program], tmp_path)
        assert max(map(len, (done.stdout + done.stderr).splitlines())) < 6000


@pytest.mark.parametrize(
    "option", ["--machine", "--set", "--fault", "--partition", "--map", "--compute", "--out", "--mpi"]
)
def test_long_values_of_options_are_not_printed_whole(tmp_path, option):
    value = f"bus.{LONG}=1" if option == "--set" else LONG
    done = run_forked(["run", "-n", "2", option, value, "--", "true"], tmp_path)
    assert done.returncode == 2
    assert max(map(len, done.stderr.splitlines())) < 6000


def test_closed_input_and_messages_do_not_matter(place):
    def close_others() -> None:
        os.close(0)
        os.close(2)
        sys.stdin = sys.stderr = None

    done = run_forked(["replay", "t.goal", "--out", "out"], place, prepare=close_others)
    assert (done.returncode, done.stderr) == (0, "")
    assert (place / "out" / "run.json").exists()
    assert run_forked(["replay", "nothing"], place, prepare=close_others).returncode == 2


def test_a_pipe_with_a_writer_is_a_file(place):
    printed = subprocess.run(
        ["bash", "-c", f'exec "{Path(sys.executable).parent}/apenet" fit --json <(sleep 0.2; cat osu.txt)'],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )
    assert printed.returncode == 0, printed.stderr
    assert json.loads(printed.stdout)["model"]


def test_file_names_may_contain_any_bytes(place):
    name = b"\xff\xfe.goal".decode(errors="surrogateescape")
    (place / name).write_text(GOAL)
    done = run_forked(["replay", name, "--json", "--out", "out-" + name], place)
    assert done.returncode == 0, done
    (place / name).write_text("nonsense")
    done = run_forked(["replay", name], place)
    assert done.returncode == 2
    assert "\\xff\\xfe.goal" in done.stderr


def test_a_program_may_have_any_name(place):
    name = b"\xff\xfe program\n".decode(errors="surrogateescape")
    shutil.copy("/bin/true", place / name)
    done = run_forked(["run", "-n", "2", "--", "./" + name], place)
    assert done.returncode == 0, done


def test_a_package_that_cannot_be_loaded_is_reported_in_one_line(tmp_path):
    """Simulates a tight ulimit -v, under which libraries cannot be loaded, with a file that is not a library."""
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("raise ImportError('several\\nlines: no room')\n")
    done = subprocess.run(
        [Path(sys.executable).parent / "apenet", "machines"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "apenet: the package cannot be loaded: lines: no room\n"


def test_a_user_without_a_home_gets_no_folder_of_that_name(monkeypatch, tmp_path):
    """As in a container that gives a user id but no entry for it."""
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as it answers for an unknown user
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HostError, match=r"no home folder.*XDG_CACHE_HOME"):
        make_cache()
    assert not list(tmp_path.iterdir())
