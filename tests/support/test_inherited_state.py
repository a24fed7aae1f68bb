"""The tests see the same state wherever they are started (tests/support/inherited_state.py)."""

import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import inherited_state

# What a test process sees, what a program sees that it starts, and what a forked process does.
SCRIPT = """
import os, signal, subprocess
import inherited_state
shown = "grep -E 'SigBlk|SigIgn' /proc/self/status; umask; ulimit -Sn; ulimit -Sc; env"
print(subprocess.run(["sh", "-c", shown], capture_output=True, text=True).stdout)
os.kill(os.getpid(), signal.SIGHUP)
print("outlived")
child = os.fork()
if child == 0:
    inherited_state.begin_like_an_interpreter()
    os.kill(os.getpid(), signal.SIGHUP)
    os._exit(0)
print("forked", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
SETTINGS = {
    "COLUMNS": "40",
    "LANG": "tr_TR.ISO-8859-9",
    "NO_COLOR": "1",
    "PYTHONPATH": "/none",
    "MPICH_CC": "none",
    "OMPI_MCA_btl": "self",
    "SLURM_PROCID": "2",
    "LD_LIBRARY_PATH": "/opt/intel/mpi/lib",
}


# Signals 32 and 33 are the C library's own: no program can set what it does with them.
NONE = re.compile(r"SigBlk:\t0{7}[01][08]0{7}\nSigIgn:\t0{7}[01][08]0{7}\n")


def start(prepare) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **SETTINGS, "PYTHONPATH": str(Path(inherited_state.__file__).parent)}
    command = [sys.executable, "-c", SCRIPT]
    return subprocess.run(command, env=environment, preexec_fn=prepare, capture_output=True, text=True, check=False)


def hinder() -> None:
    """As nohup, the background of a script and a careless launcher do, all at once."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGALRM, signal.SIGUSR1})
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def test_a_started_program_sees_nothing_of_the_starters_state():
    done = start(hinder)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert NONE.fullmatch("\n".join(lines[:2]) + "\n"), lines
    assert lines[2] == "0022"
    assert lines[-2:] == ["outlived", f"forked {-signal.SIGHUP}"]
    variables = {line.partition("=")[0] for line in lines}
    assert not variables & SETTINGS.keys()
    assert {"LC_ALL", "TZ", "PATH"} <= variables
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= inherited_state.FILES:
        assert lines[3:5] == [str(inherited_state.FILES), "0"]


def test_a_signal_that_the_tests_were_not_told_to_outlive_ends_them():
    assert start(lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL)).returncode == -signal.SIGHUP


def test_a_test_program_begins_in_that_state():
    """As ctest starts those in C++ (cmake/modules.cmake)."""
    grep = ["/bin/grep", "-E", "SigBlk|SigIgn", "/proc/self/status"]
    command = [sys.executable, inherited_state.__file__, *grep]
    done = subprocess.run(command, env=os.environ, preexec_fn=hinder, capture_output=True, text=True, check=False)
    assert NONE.fullmatch(done.stdout), done.stdout + done.stderr
