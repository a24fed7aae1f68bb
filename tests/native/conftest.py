"""C programs that use the machines' own libraries, compiled as a user does: by `apenet cc`."""

from collections.abc import Callable
from pathlib import Path

import pytest
from shared import make_once, shared_folder

from apenet.host.compiling import compile_program

FOLDER = Path(__file__).parent

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def compile_native(tmp_path_factory) -> Compile:
    """compile_native("tnw/fuzz.c", "tnw") compiles a program of this folder once, and returns its file."""
    folder = shared_folder(tmp_path_factory, "native")

    def compile_once(source: str, *libraries: str, mpi: bool = False) -> Path:
        program = folder / "-".join((source, *libraries, str(mpi))).replace("/", "-")
        strict = ["-O2", "-Wall", "-Wextra", "-Werror", FOLDER / source, "-o", program]
        return make_once(program, lambda: compile_program(strict, libraries, mpi=mpi))

    return compile_once
