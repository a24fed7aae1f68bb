"""Ranks that are forked from one process of their program are as if each had been started by itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "start"
MPICC = Path(sys.executable).with_name("mpicc")
RANKS = 4
RUN = ("run", "-n", str(RANKS), "--machine", "apenetplus-v5", "--out", "out")
# What a fork would not copy, would share, or would lose; and a server that ends without a word.
LEFT = (
    "words",
    "buffered words",
    "an open file",
    "shared memory",
    "a thread",
    "a timer",
    "a timer of the process",
    "an end",
)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forked")
    library = folder / "libmpicxx.so"
    warnings = ("-std=c11", "-Wall", "-Wextra", "-Werror", "-pthread")
    subprocess.run(["cc", *warnings, "-shared", "-fPIC", "-o", library, HERE / "left_behind.c"], check=True)
    program = folder / "as_started"
    link = (f"-L{folder}", "-lmpicxx", f"-Wl,-rpath,{folder}")
    subprocess.run([MPICC, *warnings, "-o", program, HERE / "as_started.c", *link], check=True)
    return program


@pytest.fixture
def run(apenet, program, tmp_path):
    def run_leaving(leaves):
        loaded = tmp_path / f"loaded {leaves}"
        done = apenet(
            *RUN, "--", program, "x", cwd=tmp_path, env={**os.environ, "LEAVES": leaves, "LOADED": str(loaded)}
        )
        assert done.returncode == 0, done.stderr
        times = json.loads((tmp_path / "out" / "run.json").read_bytes())
        return done, times, loaded.stat().st_size

    return run_leaving


def _lines(done, leaves):
    """What ranks print that does not differ because of what the library has done."""
    own = {
        "an open file": ": file ",
        "a thread": ": memory ",  # as with threads
        "buffered words": ": memory ",  # less of the buffer
    }
    lines = done.stdout.splitlines()
    return [line for line in lines if line != "buffered" and (leaves not in own or own[leaves] not in line)]


def test_libraries_are_loaded_once(run):
    assert run("nothing")[2] == 1


@pytest.mark.parametrize("leaves", LEFT)
def test_what_a_library_leaves_behind_makes_each_rank_start_by_itself(run, leaves):
    forked, times, _ = run("nothing")
    alone, times_alone, loaded = run(leaves)
    assert loaded == 1 + RANKS
    assert times_alone == times
    assert _lines(alone, leaves) == _lines(forked, leaves)
    assert alone.stdout.count("buffered\n") == (RANKS if leaves == "buffered words" else 0)
    assert alone.stderr.count("loaded\n") == (RANKS if leaves == "words" else 0)


def test_a_program_with_another_library_is_not_forked(apenet, program, tmp_path):
    folder = program.parent
    (tmp_path / "libother.so").write_bytes((folder / "libmpicxx.so").read_bytes())
    link = (f"-L{tmp_path}", "-lother", f"-Wl,-rpath,{tmp_path}")
    subprocess.run([MPICC, "-o", tmp_path / "other", HERE / "as_started.c", *link], check=True)
    environment = {**os.environ, "LEAVES": "nothing", "LOADED": str(tmp_path / "loaded")}
    assert apenet(*RUN, "--", tmp_path / "other", cwd=tmp_path, env=environment).returncode == 0
    assert (tmp_path / "loaded").stat().st_size == RANKS


def test_a_program_whose_library_is_missing_says_so_once_a_rank(apenet, program, tmp_path):
    library = program.parent / "libmpicxx.so"
    library.rename(tmp_path / "elsewhere.so")
    try:
        done = apenet(*RUN, "--", program, cwd=tmp_path)
    finally:
        (tmp_path / "elsewhere.so").rename(library)
    assert done.returncode == 127, done.stderr
    assert done.stderr.count("libmpicxx.so: cannot open shared object file") == RANKS


def test_a_library_of_the_user_sees_each_rank_start(run, program, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", str(program.parent / "libmpicxx.so"))
    assert run("nothing")[2] >= RANKS
