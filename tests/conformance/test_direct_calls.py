"""Programs whose code makes system calls itself, past the C library: an answer in virtual time, or a warning."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest
from hosts import GO, needs_dispatch, needs_go

HERE = Path(__file__).parent / "direct"

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="calls of x86-64")

# What, its result, and the virtual time in milliseconds: see direct/direct.c.
WAITS = """\
sleeps 0 3500
is_woken 0 5500
times_out -110 6500
spins 0 6501
day 12989 6501
blocks_signals 0 6511
forks 7 6511
knows_no_call -38 6511
is_joined 0 6531
"""


@pytest.fixture(scope="module")
def direct(build):
    return build(HERE / "direct.c")


@needs_dispatch
def test_calls_take_virtual_time(apenet, direct):
    first, second = (apenet("run", "-n", "1", "--machine", "ape16", "--", direct, "waits") for _ in range(2))
    assert (first.returncode, first.stdout) == (0, WAITS), first.stderr
    assert second.stdout == first.stdout
    assert "may not repeat" not in first.stderr


NAMESPACE = """\
usleep 0 200
nanosleep 0 300
sleep 0 1300
poll 0 1310
clock 1310 1310
date 1 1310
names 0 1310
"""


@needs_dispatch
def test_a_c_library_of_dlmopen_has_virtual_time(apenet, build):
    """The shim is not loaded into its namespace."""
    command = ("run", "-n", "2", "--machine", "ape16", "--", build(HERE / "namespace.c"))
    first, second = apenet(*command), apenet(*command)
    assert first.returncode == 0, first.stderr
    assert sorted(first.stdout.splitlines()) == sorted(NAMESPACE.splitlines() * 2), first.stderr
    assert second.stdout == first.stdout
    assert "may not repeat" not in first.stderr


@needs_dispatch
def test_processes_that_it_starts_are_named(apenet, build):
    """They live in the host's time."""
    done = apenet("run", "-n", "1", "--machine", "ape16", "--", build(HERE / "namespace.c"), "system")
    assert (done.returncode, done.stdout) == (0, "5\n"), done.stderr
    assert "rank 0: libc.so.6 starts processes by system calls of its own" in done.stderr


@needs_dispatch
def test_threads_of_clone_run_and_are_named(apenet, direct):
    done = apenet("run", "-n", "1", "--machine", "ape16", "--", direct, "threads")
    assert (done.returncode, done.stdout) == (0, "threads 2 0\n"), done.stderr
    assert f"rank 0: {direct.name} starts threads by the system call clone" in done.stderr


@needs_dispatch
def test_a_program_has_its_own_filter_and_handler(apenet, direct):
    """The call that its filter traps is memfd_create, 319."""
    done = apenet("run", "-n", "1", "--machine", "ape16", "--", direct, "filter")
    assert (done.returncode, done.stdout) == (0, "traps 319 0\nsleeps 0 10\n"), done.stderr


@needs_dispatch
def test_a_handler_calls_on_a_small_stack(apenet, direct):
    done = apenet("run", "-n", "1", "--machine", "ape16", "--", direct, "stack")
    wanted = "sleeps 0 10\nsleeps 0 20\nsleeps 0 30\nkeeps_stack 1 30\n"
    assert (done.returncode, done.stdout) == (0, wanted), done.stderr


@needs_dispatch
def test_signals_from_outside_may_come_at_any_instruction(apenet, direct):
    """Each caught call changes the stack for signals twice: no handler may begin between the two."""
    done = apenet("run", "-n", "1", "--machine", "ape16", "--", direct, "storm")
    assert (done.returncode, done.stdout.split()[:2]) == (0, ["handles", "1"]), done.stderr


@needs_dispatch
@pytest.mark.parametrize(
    ("mode", "answer", "warning"),
    [
        ("ring", "ring -38 0\n", "rank 0: io_uring_setup was refused (ENOSYS)"),
        ("dispatch", "dispatch -1 0\n", "rank 0: the program asked for prctl(PR_SET_SYSCALL_USER_DISPATCH)"),
    ],
)
def test_what_would_pass_by_the_simulator_is_refused(apenet, direct, mode, answer, warning):
    done = apenet("run", "-n", "1", "--machine", "ape16", "--", direct, mode)
    assert (done.returncode, done.stdout) == (0, answer), done.stderr
    assert done.stderr.count(warning) == 1


def test_a_host_without_dispatch_is_named(apenet, build, direct):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build(HERE / "without_dispatch.c"), direct)
    assert done.returncode == 0, done.stderr
    warning = f"ranks 0, 1: {direct.name} makes system calls itself, which this host does not let the simulator catch"
    assert done.stderr.count(warning) == 1


def test_a_program_that_calls_the_c_library_is_not_named(apenet, build):
    program = build(HERE.parent / "c" / "requests.c")
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build(HERE / "without_dispatch.c"), program)
    assert done.returncode == 0, done.stderr
    assert "makes system calls itself" not in done.stderr


@needs_dispatch
@needs_go
def test_a_library_in_go_has_virtual_time_and_repeats(apenet, tmp_path):
    """Goroutines that sleep for 1, 2, 3 and 4 times 100 or 200 ms, three times each; then a limit of 250 ms."""
    library = tmp_path / "libwaits.so"
    subprocess.run([GO, "build", "-buildmode=c-shared", "-o", library], cwd=HERE / "go", check=True)
    program = tmp_path / "calls_go"
    places = [f"-I{tmp_path}", f"-L{tmp_path}", f"-Wl,-rpath,{tmp_path}", "-lwaits"]
    subprocess.run(
        [Path(sys.executable).with_name("mpicc"), "-O2", HERE / "calls_go.c", "-o", program, *places], check=True
    )
    for ranks in (2, 16):
        runs = []
        for number in range(2):
            folder = tmp_path / f"{ranks}-{number}"
            done = apenet("run", "-n", str(ranks), "--machine", "ape16", "--out", folder, "--", program)
            assert done.returncode == 0, done.stderr
            assert "may not repeat" not in done.stderr
            runs.append((sorted(done.stdout.splitlines()), (folder / "run.json").read_bytes()))
        assert runs[0] == runs[1]
        assert f"0: {sum(range(ranks))} 55 at 2650.0" in runs[0][0][0]
        assert "1: day 12989, slept 6000.000 ms, at 2400.000 ms" in runs[0][0]
