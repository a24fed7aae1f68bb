"""libfabric programs without MPI: start, end, and repeatability."""

import socket
import subprocess
from pathlib import Path

import pytest

FABRIC = Path(__file__).with_name("fabric")


@pytest.fixture(scope="session")
def build_fabric(tmp_path_factory):
    """Compiles a C program against the system's libfabric, once a session."""
    folder = tmp_path_factory.mktemp("fabric")

    def compile_program(name: str) -> Path:
        program = folder / name
        if not program.exists():
            options = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
            command = ["gcc", *options, "-o", program, FABRIC / f"{name}.c", "-lfabric"]
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            assert made.returncode == 0, made.stderr
        return program

    return compile_program


@pytest.fixture
def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def test_a_pingpong_repeats(apenet, build_fabric, tmp_path):
    program = build_fabric("pingpong")
    runs = []
    for name in ("one", "two"):
        done = apenet("run", "-n", "2", "--machine", "ape16", "--out", tmp_path / name, "--", program)
        assert done.returncode == 0, done.stderr
        assert "passed" in done.stdout
        runs.append((done.stdout, (tmp_path / name / "run.json").read_bytes()))
    assert runs[0] == runs[1]


def test_a_script_may_query_before_its_program_plays(apenet, build_fabric, tmp_path):
    script = tmp_path / "script.sh"
    script.write_text(
        f"#!/bin/sh\n{build_fabric('query')} && {build_fabric('query')} && exec {build_fabric('pingpong')}\n"
    )
    script.chmod(0o755)
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", script)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout


@pytest.mark.parametrize("status", [0, 3])
def test_a_program_that_only_queries_ends_with_its_own_status(apenet, build_fabric, status):
    done = apenet("run", "-n", "1", "--machine", "ape16", "--", build_fabric("query"), str(status))
    assert done.returncode == status, done.stderr
    if status == 0:
        assert "no rank opened an endpoint" in done.stderr


def test_two_ranks_are_a_server_and_its_client(apenet, build_fabric, free_port, tmp_path):
    program = build_fabric("fi_meet")
    runs = []
    for name in ("one", "two"):
        done = apenet("run", "-n", "2", "--machine", "ape16", "--out", tmp_path / name, "--", program, free_port)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "passed\n"
        assert "apenet: fi_meet: rank 0 is the server; rank 1 is its client, with 127.0.0.1" in done.stderr
        runs.append((tmp_path / name / "run.json").read_bytes())
    assert runs[0] == runs[1]


def test_a_script_gives_each_rank_its_own_arguments(apenet, build_fabric, free_port):
    program = build_fabric("fi_meet")
    script = f"[ $PMI_RANK = 0 ] || export APENET_CLIENT=1; exec {program} {free_port} ${{APENET_CLIENT:+127.0.0.1}}"
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", "sh", "-c", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "passed\n"
    assert "its client" not in done.stderr


def passes_and_repeats(apenet, folder, machine, program):
    runs = []
    for name in ("one", "two"):
        done = apenet("run", "-n", "4", "--machine", machine, "--out", folder / name, "--", program)
        assert done.returncode == 0, done.stderr
        assert done.stdout == "passed\n"
        runs.append((folder / name / "run.json").read_bytes())
    assert runs[0] == runs[1]


@pytest.mark.parametrize("machine", ["ape16", "extoll-64"])
def test_atomics_of_all_ranks_lose_nothing(apenet, build_fabric, machine, tmp_path):
    program = build_fabric("atomics")
    passes_and_repeats(apenet, tmp_path, machine, program)
    recorded = apenet("run", "-n", "4", "--machine", machine, "--record", tmp_path / "trace.goal", "--", program)
    assert recorded.returncode == 0, recorded.stderr
    replayed = apenet("replay", tmp_path / "trace.goal", "--machine", machine)
    assert replayed.returncode == 0, replayed.stderr


def test_remote_accesses_need_the_key_and_tell_their_target(apenet, build_fabric):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build_fabric("rights"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "passed\n"
    assert "warning: 3 puts or gets failed" in done.stderr


@pytest.mark.parametrize("machine", ["ape16", "extoll-64", "pax"])
def test_what_global_address_spaces_need(apenet, build_fabric, machine, tmp_path):
    program = build_fabric("global_memory")
    passes_and_repeats(apenet, tmp_path, machine, program)
