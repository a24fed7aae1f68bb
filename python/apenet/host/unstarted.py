"""Why the host has not started a program: the system's error number tells neither a script nor its interpreter."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from apenet.base.escape import escape_line
from apenet.host.elf import read_elf

_LINE_BYTES = 256  # what Linux reads of a script
_MOST_INTERPRETERS = 5  # which may be scripts, too: Linux's limit


def expected_program(program: Path, error: OSError) -> str:
    """What was expected instead of this program."""
    if error.errno in (errno.ENOENT, errno.EACCES):
        needed = _interpreter(program)
        for _ in range(_MOST_INTERPRETERS):
            if needed is None:
                break
            if why := _why_not_executed(needed):
                return f"a program whose interpreter the host has: {escape_line(repr(str(needed)))} {why}"
            needed = _interpreter(needed)
    if error.errno == errno.ENOEXEC:
        return (
            "a program of this host, or a script whose first line names its interpreter, such as #!/bin/sh "
            f"({error.strerror})"
        )
    return f"a program that can be started ({error.strerror})"


def _why_not_executed(file: Path) -> str:
    if not file.exists():
        return "is not there"
    if file.is_dir():
        return "is a folder"
    return "" if os.access(file, os.X_OK) else "may not be executed"


def _interpreter(program: Path) -> Path | None:
    """What is to run the program, by a script's first line or a program's header."""
    try:
        with program.open("rb") as file:
            begin = file.read(_LINE_BYTES)
    except OSError:
        return None
    if not begin.startswith(b"#!"):
        elf = read_elf(program)
        return None if elf is None or elf.interpreter is None else Path(elf.interpreter)
    words = begin[2:].split(b"\n", 1)[0].strip(b" \t").replace(b"\t", b" ").split(b" ")
    return Path(os.fsdecode(words[0])) if words[0] else None
