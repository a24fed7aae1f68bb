"""Asks the loader which libraries it binds to a program, and follows scripts to the program that runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from apenet.base.errors import InputError
from apenet.host.elf import Elf, read_elf

# Loaders of the GNU C library. Others (musl's) do not answer the same way, and need not be run to find out.
_LOADER = re.compile(r"/ld-linux[-.\w]*\.so\.[0-9]+|/ld64\.so\.[0-9]+")
_LISTED = re.compile(r"\t(?P<name>\S+) => (?P<path>/.*?|not found)(?: \(0x[0-9a-f]+\))?")
_MOST_SCRIPTS = 5  # in a chain; the kernel follows no more
_MOST_LINE_BYTES = 256  # as the kernel: the longest first line of a script
_PATIENCE_S = 20


@dataclass(frozen=True)
class Library:
    """A library that a program needs, by itself or through others."""

    name: str
    path: Path | None
    """The file that the loader finds; None if it finds none."""


def interpreters(program: Path, search: str) -> Iterator[Path]:
    """The program, and if it is a script, the interpreters that its first line leads to."""
    for _ in range(_MOST_SCRIPTS):
        yield program
        following = _interpreter(program, search)
        if following is None:
            return
        program = following


def refuse_musl(program: Path, search: str) -> None:
    """Raises InputError for a program of another C library, whose loader would say so in sixty lines a rank."""
    *_, last = interpreters(program, search)
    elf = read_elf(last)
    if elf is not None and elf.interpreter is not None and "ld-musl" in elf.interpreter:
        expected = f"a program of the GNU C library; {elf.interpreter}, the loader of {last}, cannot load the shim"
        raise InputError("program", program, expected)


def refuse_static(program: Path, search: str) -> None:
    """Raises InputError for a program whose sockets would be the host's, because nothing can be preloaded into it."""
    *_, last = interpreters(program, search)
    elf = read_elf(last)
    if elf is not None and elf.interpreter is None:
        expected = f"a program that is linked dynamically with --ip; the sockets of {last} would be those of the host"
        raise InputError("program", program, expected)


def _interpreter(script: Path, search: str) -> Path | None:
    """The program in a script's first line; what `env` starts instead of `env`."""
    try:
        with script.open("rb") as file:
            line = file.read(_MOST_LINE_BYTES).split(b"\n", 1)[0]
    except OSError:
        return None
    words = os.fsdecode(line[2:]).split() if line.startswith(b"#!") else []
    if not words:
        return None
    if Path(words[0]).name == "env":
        name = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), None)
        found = None if name is None else shutil.which(name, path=search)
        return None if found is None else Path(found)
    return Path(words[0])


def bound_libraries(file: Path, environment: Mapping[str, str], elf: Elf | None = None) -> list[Library]:
    """The libraries that the loader binds to this program or library, in its order of search for symbols.

    `environment` has the variables that the loader obeys, such as LD_LIBRARY_PATH. Empty for files that the GNU
    loader does not load. No code of the program runs.
    """
    elf = elf or read_elf(file)
    if elf is None or not elf.is_dynamic:
        return []
    loader = elf.interpreter or _own_loader()
    if loader is None or _LOADER.fullmatch(loader[loader.rfind("/") :]) is None:
        return []
    obeyed = {name: value for name, value in environment.items() if name.startswith("LD_")}
    # As ldd asks. Unlike --list, this goes on after a library that is missing.
    obeyed["LD_TRACE_LOADED_OBJECTS"] = "1"
    try:
        listed = subprocess.run(
            [loader, file.absolute()], env=obeyed, capture_output=True, check=False, timeout=_PATIENCE_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    found = map(_LISTED.fullmatch, os.fsdecode(listed.stdout).splitlines())
    return [_library(match["name"], match["path"]) for match in found if match is not None]


def _library(name: str, path: str) -> Library:
    return Library(name, None if path == "not found" else Path(path))


def _own_loader() -> str | None:
    """The loader of this process, for libraries, which name none."""
    elf = read_elf(Path("/proc/self/exe"))
    return None if elf is None else elf.interpreter
