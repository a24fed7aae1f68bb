"""System calls that the host refuses: a slower way, or an error that names the call, the reason and a remedy."""

import ctypes
import errno
import os
import platform
import resource
import struct
import sys
from pathlib import Path

import pytest

_NUMBERS = {
    "memfd_create": 319,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "prctl": 157,
    "socketpair": 53,
    "clone3": 435,
    "sched_setaffinity": 203,
    "pidfd_open": 434,
    "epoll_create1": 291,
    "signalfd4": 289,
    "personality": 135,
    "close_range": 436,
    "ptrace": 101,
}
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of system calls are of x86-64")


def refuse(call: str, number: int) -> None:
    """Makes the system refuse a call to this process and its children: as the filter of a container does."""
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, _NUMBERS[call]), (0x06, 0, 0, 0x00050000 | number), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
    assert prctl(_SECCOMP, _FILTER, program, 0, 0) == 0


@pytest.mark.parametrize(
    ("call", "number", "said"),
    [
        ("memfd_create", errno.EPERM, "memfd_create: Operation not permitted (the host refuses this call"),
        ("memfd_create", errno.ENOSYS, f"memfd_create: {os.strerror(errno.ENOSYS)} (the host refuses this call"),
        ("memfd_create", errno.EMFILE, "memfd_create: Too many open files (see ulimit -n)"),
        ("socketpair", errno.EPERM, "socketpair: Operation not permitted (the host refuses this call"),
        ("socketpair", errno.EMFILE, "socketpair: Too many open files (see ulimit -n)"),
        ("prctl", errno.EPERM, "prctl(PR_SET_CHILD_SUBREAPER) of apenet-supervisor: Operation not permitted"),
        ("epoll_create1", errno.EPERM, "epoll_create1: Operation not permitted (the host refuses this call"),
    ],
)
def test_a_call_without_another_way_is_named(apenet, call, number, said):
    done = apenet("run", "-n", "2", "--", "/bin/true", prepare=lambda: refuse(call, number))
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.startswith("apenet: this run cannot ")
    assert "Traceback" not in done.stderr


PROGRAM = """
from mpi4py import MPI
ring = MPI.COMM_WORLD
data = bytearray(300000)
ring.Sendrecv_replace(data, ring.rank ^ 1, source=ring.rank ^ 1)
print(ring.rank, MPI.Wtime())
"""


@pytest.fixture(scope="module")
def unrestricted(apenet):
    return apenet("run", "-n", "2", "--", sys.executable, "-c", PROGRAM).stdout


@pytest.mark.parametrize(
    ("call", "number"),
    [
        ("process_vm_readv", errno.EPERM),
        ("sched_setaffinity", errno.EPERM),
        ("pidfd_open", errno.ENOSYS),
        ("signalfd4", errno.EPERM),
        ("close_range", errno.ENOSYS),
    ],
)
def test_a_call_with_another_way_changes_no_result(apenet, unrestricted, call, number):
    done = apenet("run", "-n", "2", "--", sys.executable, "-c", PROGRAM, prepare=lambda: refuse(call, number))
    assert (done.returncode, done.stdout) == (0, unrestricted), done.stderr


@pytest.mark.parametrize(
    ("limit", "value", "said"),
    [
        (resource.RLIMIT_FSIZE, 4096 * 25, "ftruncate of a memfd of"),
        (resource.RLIMIT_NOFILE, 40, "16 ranks need 240 open files, this user may have 40 (ulimit -Hn)"),
    ],
)
def test_a_limit_is_named(apenet, limit, value, said):
    def prepare() -> None:
        resource.setrlimit(limit, (value, value))

    done = apenet("run", "-n", "16", "--", "/bin/true", prepare=prepare)
    assert done.returncode == 2
    assert said in done.stderr
    if limit == resource.RLIMIT_FSIZE:
        assert f"{os.strerror(errno.EFBIG)} (see ulimit -f)" in done.stderr


@pytest.mark.parametrize("limit_kib", [70_000, 150_000, 400_000, 600_000, 900_000])
def test_the_limit_of_the_address_space_is_named(apenet, build, limit_kib):
    limited = f"RLIMIT_AS is {limit_kib} KiB (ulimit -v {limit_kib}), of which "
    program = build(Path(__file__).parent / "small_address_space.c")
    of_program = apenet("run", "-n", "2", "--", program, str(limit_kib))
    assert of_program.returncode == 2, of_program.stderr
    assert "rank 0 was refused: MPI_Init needs mappings of at least " in of_program.stderr
    assert limited in of_program.stderr
    of_shell = apenet("run", "-n", "2", "--", "sh", "-c", f"ulimit -v {limit_kib}; exec {program} 0")
    assert of_shell.returncode == 2, of_shell.stderr
    assert limited in of_shell.stderr
    assert "by a system call of its own" not in of_shell.stderr


def test_an_mpi_that_ends_for_want_of_address_space_has_its_limit_named(apenet, build):
    """As MPICH by an assertion, with a few MiB more than the least that MPI_Init needs."""
    program = build(Path(__file__).parent / "small_address_space.c")
    done = apenet("run", "-n", "2", "--", program, str(17 * 1024), "beyond")
    assert done.returncode == 2
    assert "rank 0 was refused: MPI_Init ended the process, whose address space is limited: RLIMIT_AS" in done.stderr
