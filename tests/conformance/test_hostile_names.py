"""Names from outside (files, sockets, processes, communicators, programs) cannot forge lines of a report."""

import os
import re
import shutil
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("failing_runs") / "hostile_names.c"
# ESC, tab, CR, DEL, the C1 control U+009B, what reverses the text's direction, a byte that is no UTF-8, a line end
# with what looks like a line of the report; and a letter that is none of that.
NAME = b"\x1b[31m\t\r\x7f\xc2\x9b\xe2\x80\xae\xff\nape: \xc3\xa4"
SHOWN = r"\x1b[31m\t\r\x7f\x9b\u202e\xff\nape: ä"
# The kernel keeps 15 bytes of a process's name.
SHORT = b"\x1b\t\x7f\xc2\x9b\xff\nape: "
SHORT_SHOWN = r"\x1b\t\x7f\x9b\xff\nape:"


def checked(stderr: str) -> str:
    """The messages, in which every line is apenet's own and has no control character."""
    for line in stderr.splitlines():
        assert line.startswith("apenet: "), stderr
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ufffd]", stderr), stderr
    return stderr


@pytest.mark.parametrize("what", ["fifo", "open", "lock", "communicator", "window"])
def test_names_in_reports_of_waits_are_escaped(apenet, build, tmp_path, what):
    done = apenet("run", "-n", "2", "--", build(PROGRAM), what, os.fsdecode(NAME), tmp_path, timeout_s=100)
    assert done.returncode == 1
    assert SHOWN in checked(done.stderr)


def test_names_of_processes_are_escaped(apenet, build, tmp_path):
    done = apenet("run", "-n", "2", "--", build(PROGRAM), "process", os.fsdecode(SHORT), tmp_path, timeout_s=100)
    assert f"process '{SHORT_SHOWN}" in checked(done.stderr)


@pytest.mark.parametrize("kind", ["abort", "static", "interpreter", "missing", "folder"])
def test_names_of_programs_are_escaped(apenet, build, tmp_path, kind):
    program = tmp_path / os.fsdecode(NAME)
    if kind == "abort":
        shutil.copy(build(PROGRAM), program)
    elif kind == "static":
        shutil.copy("/sbin/ldconfig", program)
    elif kind == "interpreter":
        program.write_bytes(b"#!/none/" + NAME.split(b"\n", maxsplit=1)[0] + b"\n")
        program.chmod(0o755)
    elif kind == "folder":
        program.mkdir()
    arguments = ("-p",) if kind == "static" else (kind, "x", tmp_path)  # ldconfig lists libraries
    done = apenet("run", "-n", "1", "--", program, *arguments, timeout_s=100)
    assert (done.returncode == 0) == (kind == "static")
    checked(done.stderr)
