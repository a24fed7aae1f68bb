"""A disk or quota that is full when results are written: a message for each file, the result on stdout, no debris."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

APENET = Path(sys.executable).with_name("apenet")
GOAL = "num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 0\n}\nrank 1 {\nl1: recv 8b from 0 tag 0\n}\n"
# What may be there afterwards: no file that is cut off, none of a name in between.
WHOLE = {"./filling", "./t.goal", "./out/command.json", "./out/machine.toml"}
# In a mount namespace of its own: runs the command in the folder $0, on a disk of 96 KiB with room for the beginning of
# a run folder, then once more with room for all of it. Prints, between lines of dashes, what it says when the disk is
# full, the files that are there then, what it says with room, and the run.
SCRIPT = """
mount -t tmpfs -o size=96k none "$0" || exit 77
cd "$0"
cat > t.goal
dd if=/dev/zero of=filling bs=4k count=21 2> /dev/null
"$@"; echo "status $?"
echo ---; find . -type f -size +0 | sort
rm filling
echo ---; "$@"; echo "status $?"
echo ---; cat out/run.json
"""


@pytest.fixture
def on_a_full_disk(tmp_path):
    """Runs a command so; what it prints when the disk is full, which files are there then, and its next try."""

    def run(*command: str):
        done = subprocess.run(
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", SCRIPT, tmp_path, APENET, *command],
            input=GOAL,
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        if done.returncode == 77 or "unshare" in done.stderr:
            pytest.skip(f"no mount namespace: {done.stderr}")
        full, files, again, written = done.stdout.split("---\n")
        return full, done.stderr, files.split(), again, json.loads(written)

    return run


def test_replay(on_a_full_disk):
    full, said, files, again, written = on_a_full_disk("replay", "t.goal", "--out", "out", "--trace", "t.json")
    assert "2 ranks: 3.56 us of virtual time" in full
    assert full.endswith("status 2\n")
    assert 'apenet: out = "out": could not be written: No space left on device' in said
    assert "Traceback" not in said
    assert set(files) <= WHOLE | {"./t.json"}
    assert again.endswith("status 0\n")
    assert written["messages"] == 1


def test_run(on_a_full_disk):
    program = "print('what the program says', flush=True); import mpi4py.MPI as m; m.COMM_WORLD.barrier()"
    options = ("--out", "out", "--record", "r.goal", "--trace", "t.json")
    full, said, files, again, written = on_a_full_disk("run", "-n", "2", *options, "--", sys.executable, "-c", program)
    assert full.count("what the program says") == 2
    assert full.endswith("status 2\n")
    assert 'apenet: record = "r.goal": could not be written: the recording: No space left on device' in said
    assert 'apenet: out = "out": could not be written: No space left on device' in said
    assert "Traceback" not in said
    assert set(files) <= WHOLE | {"./t.json"}
    assert again.endswith("status 0\n")
    assert written["messages"] > 0


def test_the_output_of_ranks_that_ignore_a_full_disk(on_a_full_disk):
    """The ranks themselves write it, and this program does not look at the result."""
    program = "import os\ntry:\n    [os.write(1, b'x' * 999) for _ in range(20)]\nexcept OSError:\n    pass"
    options = ("--out", "out", "--output", "printed")
    full, said, _, again, _ = on_a_full_disk("run", "-n", "1", *options, "--", sys.executable, "-c", program)
    assert full.endswith("status 2\n")
    assert 'output = "printed": could not be written: the ranks\' output is cut off: No space left on device' in said
    assert "Traceback" not in said
    assert again.endswith("status 0\n")


def test_the_page_of_a_run(tmp_path):
    """The disk has room for the page's file, but not for the page."""
    script = """
    mount -t tmpfs -o size=96k none "$0" || exit 77
    cd "$0"
    dd if=/dev/zero of=filling bs=4k count=21 2> /dev/null
    "$@"; echo "status $?"; find . -name '*.html'
    """
    command = [APENET, "run", "-n", "1", "--report", "why.html", "--", "true"]
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, tmp_path, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no mount namespace: {done.stderr}")
    assert done.stdout == "status 2\n"
    assert 'apenet: report = "why.html": could not be written: No space left on device' in done.stderr


def test_ranks_that_cannot_even_note_that_they_fail_say_so_once(tmp_path):
    script = """
    mount -t tmpfs -o size=64k none "$0" || exit 77
    cd "$0"
    dd if=/dev/zero of=filling bs=4k 2> /dev/null
    "$@"
    """
    command = [APENET, "run", "-n", "3", "--record", "r.goal", "--", sys.executable, "-c", "import mpi4py.MPI"]
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, tmp_path, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(f"no mount namespace: {done.stderr}")
    assert done.returncode == 2
    assert [line for line in done.stderr.splitlines() if "virtual time" not in line and "wall time" not in line] == [
        "apenet: failed: rank 0 was refused: the recording of this run cannot be written: No space left on device",
        "apenet:   then ranks 1, 2 ended for the same reason",
        'apenet: record = "r.goal": could not be written: No space left on device',
    ]


def test_a_recording_that_fails_in_the_middle_of_a_run(on_a_full_disk):
    """The ranks write 16 KiB per 340 records: the disk is full long before they end, and they go on."""
    program = """
import mpi4py.MPI as m
for i in range(3000):
    m.COMM_WORLD.sendrecv(i, dest=1 - m.COMM_WORLD.rank, source=1 - m.COMM_WORLD.rank)
print('the end', flush=True)
"""
    full, said, files, again, _ = on_a_full_disk(
        "run", "-n", "2", "--out", "out", "--record", "r.goal", "--", sys.executable, "-c", program
    )
    assert full.count("the end") == 2
    assert full.endswith("status 2\n")
    assert said.count('apenet: record = "r.goal": could not be written: the recording: No space left on device') == 2
    assert "r.goal" not in "".join(files)
    assert again.count("the end") == 2
    assert again.endswith("status 2\n")


PROGRAM = ("-n", "2", "--", sys.executable, "-c", "import mpi4py.MPI as m; m.COMM_WORLD.barrier()")


@pytest.mark.parametrize("command", [("replay", "--out", "out", "t.goal"), ("run", "--out", "out", *PROGRAM)])
def test_quota(apenet, start_apenet, tmp_path, command):
    (tmp_path / "t.goal").write_text(GOAL)
    library = tmp_path / "full_quota.so"
    source = Path(__file__).with_name("full_quota.c")
    subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library, source], check=True)
    quota = {"LD_PRELOAD": library, "QUOTA_FOLDER": tmp_path.resolve(), "QUOTA_BYTES": "4096"}
    full = start_apenet(*command, cwd=tmp_path, env={**os.environ, **quota}, is_forked=False).finish()
    assert full.returncode == 2
    assert "of virtual time" in full.stdout + full.stderr
    assert full.stderr.endswith('apenet: out = "out": could not be written: Disk quota exceeded\n')
    assert "Traceback" not in full.stderr
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"command.json"}
    again = apenet(*command, cwd=tmp_path)
    assert again.returncode == 0
    assert json.loads((tmp_path / "out" / "run.json").read_text())["messages"] > 0
