"""Functions that count in MPI_Count, which mpi4py calls if the process has them: in libraries with and without."""

import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("c") / "counts.py"
OPENMPI_PYTHON = Path(__file__).parents[2] / ".venv-openmpi" / "bin" / "python"


@pytest.mark.skipif(not OPENMPI_PYTHON.exists(), reason="Open MPI's environment is not there")
def test_open_mpi_which_lacks_them_gives_what_mpich_gives(apenet):
    mpich, openmpi = (
        apenet("run", "-n", "4", "--machine", "ape16", "--", python, PROGRAM)
        for python in (sys.executable, OPENMPI_PYTHON)
    )
    assert (mpich.returncode, openmpi.returncode) == (0, 0), mpich.stderr + openmpi.stderr
    assert openmpi.stdout == mpich.stdout
    assert "['Gatherv', [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]]" in openmpi.stdout
