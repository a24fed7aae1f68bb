"""Programs for apelib, compiled with the installed header and library."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import apenet

PACKAGE = Path(apenet.__file__).parent
FLAGS = ["-I", PACKAGE / "include", "-L", PACKAGE / "lib", f"-Wl,-rpath,{PACKAGE / 'lib'}"]


def compiled(compiler: Path | str, options: list[str], sources: list[Path], program: Path) -> Path:
    """As the package's pkg-config file says."""
    if not program.exists():
        command = [compiler, *options, *FLAGS, "-o", program, *sources, "-lapelib", "-lm"]
        made = subprocess.run(command, capture_output=True, text=True, check=False, cwd=program.parent)
        assert made.returncode == 0, made.stderr
    return program


@pytest.fixture(scope="session")
def build_apelib(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compiles a C or Fortran program for apelib once a session."""
    folder = tmp_path_factory.mktemp("apelib")

    def build_program(source: Path, compiler: Path | str = "cc", standard: str = "c11") -> Path:
        program = folder / f"{source.stem}-{Path(compiler).name}-{standard}"
        options = [f"-std={standard}", "-O1", "-Wall", "-Wextra", "-Werror"]
        if compiler == "gfortran":
            return compiled(compiler, options, [PACKAGE / "include" / "apelib.f90", source], program)
        language = ["-x", "c++"] if standard.startswith("c++") else ["-D_GNU_SOURCE"]
        return compiled(compiler, [*options, *language], [source], program)

    return build_program
