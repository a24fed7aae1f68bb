"""C programs that use the machines' own libraries, compiled as a user does: by `apenet cc`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from apenet.host.compiling import compile_program

FOLDER = Path(__file__).parent

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def compile_native(tmp_path_factory) -> Compile:
    """compile_native("tnw/fuzz.c", "tnw") compiles a program of this folder once, and returns its file."""
    folder = tmp_path_factory.mktemp("native")
    made: dict[tuple[str, ...], Path] = {}

    def compile_once(source: str, *libraries: str, mpi: bool = False) -> Path:
        key = (source, *libraries, str(mpi))
        if key not in made:
            made[key] = folder / "-".join(key).replace("/", "-")
            strict = ["-O2", "-Wall", "-Wextra", "-Werror", FOLDER / source, "-o", made[key]]
            compile_program(strict, libraries, mpi=mpi)
        return made[key]

    return compile_once
