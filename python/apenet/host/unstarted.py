"""Why the host has not started a program: the system's error number tells neither a script nor its interpreter."""

from __future__ import annotations

import errno
from pathlib import Path

from apenet.base.escape import escape_line
from apenet.host.elf import read_elf

_LINE_BYTES = 256  # what Linux reads of a script


def expected_program(program: Path, error: OSError) -> str:
    """What was expected instead of this program."""
    if error.errno == errno.ENOENT and program.exists():
        interpreter = _interpreter(program)
        if interpreter is not None:
            return f"a program whose interpreter the host has: {escape_line(repr(interpreter))} is not there"
    if error.errno == errno.ENOEXEC:
        return (
            "a program of this host, or a script whose first line names its interpreter, such as #!/bin/sh "
            f"({error.strerror})"
        )
    return f"a program that can be started ({error.strerror})"


def _interpreter(program: Path) -> str | None:
    """What is to run the program, by a script's first line or a program's header."""
    try:
        with program.open("rb") as file:
            begin = file.read(_LINE_BYTES)
    except OSError:
        return None
    if not begin.startswith(b"#!"):
        elf = read_elf(program)
        return None if elf is None else elf.interpreter
    words = begin[2:].split(b"\n", 1)[0].strip(b" \t").replace(b"\t", b" ").split(b" ")
    return words[0].decode(errors="replace")
