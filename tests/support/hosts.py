"""What tests need of the host or of the build, as marks that skip them elsewhere."""

import platform
import shutil
import subprocess

import pytest

from apenet import _core

GO = shutil.which("go", path="/usr/local/go/bin:/usr/bin")


def has_dispatch() -> bool:
    """Whether the host has syscall user dispatch."""
    ask = "import ctypes, sys; sys.exit(ctypes.CDLL(None).prctl(59, 0, 0, 0, 0) != 0)"
    return platform.machine() == "x86_64" and subprocess.run(["python3", "-c", ask], check=False).returncode == 0


needs_dispatch = pytest.mark.skipif(not has_dispatch(), reason="needs Linux 5.11 on x86-64 (syscall user dispatch)")
needs_go = pytest.mark.skipif(GO is None, reason="needs Go")
needs_stack = pytest.mark.skipif(not _core.has_ip_stack(), reason="this build has no TCP/IP stack: cargo was not found")
