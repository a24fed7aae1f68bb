"""What tests need of the host, as marks that skip them elsewhere."""

import platform
import shutil
import subprocess

import pytest

GO = shutil.which("go", path="/usr/local/go/bin:/usr/bin")


def has_dispatch() -> bool:
    """Whether the host has syscall user dispatch."""
    ask = "import ctypes, sys; sys.exit(ctypes.CDLL(None).prctl(59, 0, 0, 0, 0) != 0)"
    return platform.machine() == "x86_64" and subprocess.run(["python3", "-c", ask], check=False).returncode == 0


needs_dispatch = pytest.mark.skipif(not has_dispatch(), reason="needs Linux 5.11 on x86-64 (syscall user dispatch)")
needs_go = pytest.mark.skipif(GO is None, reason="needs Go")
