"""Refused system calls: which one, why, and what to do about it."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

from apenet.base.errors import LimitError

_FILTERED = "the host refuses this call, as system call filters (seccomp) of containers do: allow it there"
_REMEDIES = {
    errno.EPERM: _FILTERED,
    errno.EACCES: _FILTERED,
    errno.ENOSYS: _FILTERED,
    errno.EMFILE: "see ulimit -n",
    errno.ENFILE: "the host has too many open files",
    errno.ENOMEM: "see ulimit -v, and the memory of the host or container",
    errno.EAGAIN: "see ulimit -u, and the processes that the container may have",
    errno.EFBIG: "see ulimit -f",
    errno.ENOSPC: "its file system is full",
}


@contextmanager
def named_call(name: str) -> Iterator[None]:
    """Turns an OSError into a LimitError that names the call."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise LimitError(f"this run cannot start: {name}: {reason}{_remedy(reason)}") from error


def refused_by_host(error: RuntimeError) -> LimitError:
    """The error for a system call that the core could not make: its text is that of a std::system_error."""
    return LimitError(f"this run cannot go on: {error}{_remedy(str(error))}")


def is_of_host(error: RuntimeError) -> bool:
    """Whether an error of the core is that of a system call."""
    return str(error).endswith(tuple(os.strerror(number) for number in errno.errorcode))


def memory_file(name: str) -> int:
    """The descriptor of a new file in memory, which ends with its last user. Raises LimitError."""
    with named_call("memfd_create"):
        return os.memfd_create(name)


def _remedy(reason: str) -> str:
    found = next((remedy for number, remedy in _REMEDIES.items() if reason.endswith(os.strerror(number))), None)
    limit_bytes, _ = resource.getrlimit(resource.RLIMIT_AS)
    if found == _REMEDIES[errno.ENOMEM] and limit_bytes != resource.RLIM_INFINITY:
        found = f"RLIMIT_AS is {limit_bytes // 1024} KiB: see ulimit -v"
    return "" if found is None else f" ({found})"
