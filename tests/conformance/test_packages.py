"""Programs that pip installs, each in an environment of its own beside this one. Only with --whole."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DASK = """
import warnings
warnings.filterwarnings("ignore")
from dask_mpi import initialize
initialize(dashboard=False)
from distributed import Client
import dask.array
with Client() as client:
    client.wait_for_workers(2)
    total = dask.array.arange(1000, chunks=100).sum().compute()
    print("total", total, "workers", len(client.scheduler_info()["workers"]), flush=True)
"""

MPI4JAX = """
import jax, jax.numpy as jnp
import mpi4jax
from mpi4py import MPI
world = MPI.COMM_WORLD

@jax.jit
def step(x):
    total = mpi4jax.allreduce(x, op=MPI.SUM, comm=world)
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    return total, mpi4jax.sendrecv(x, x, source=left, dest=right, comm=world)

total, got = step(jnp.full(4, float(world.rank)))
assert total.tolist() == [6.0] * 4
assert got.tolist() == [(world.rank - 1) % 4] * 4
if world.rank == 0:
    print("passed", flush=True)
"""

CASES = {
    "dask-mpi": (("dask-mpi", "dask[array]", "distributed"), DASK, "total 499500 workers 2"),
    "mpi4jax": (("jax", "mpi4jax"), MPI4JAX, "passed"),
}


def installed(name: str, packages: tuple[str, ...]) -> Path:
    """The interpreter of an environment that has this one's packages and these; it is kept for the next time."""
    folder = Path(sys.prefix) / "conformance" / f"env-{name}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", folder], check=True)
        (here,) = (path for path in map(Path, sys.path) if path.name == "site-packages")
        (site,) = folder.glob("lib/python3*/site-packages")
        (site / "beside.pth").write_text(f"{here}\n", encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "--quiet", "install"]
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            [*pip, *packages], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            pytest.skip(f"pip cannot install {', '.join(packages)}: {done.stderr.strip().splitlines()[-1]}")
        (folder / "complete").touch()
    return python


@pytest.mark.parametrize("name", CASES)
def test_program(apenet, tmp_path, whole, name):
    if not whole:
        pytest.skip("only with --whole: it installs packages")
    packages, text, expected = CASES[name]
    python = installed(name, packages)
    program = tmp_path / "program.py"
    program.write_text(text, encoding="utf-8")
    done = apenet("run", "-n", "4", "--machine", "ape16", "--", python, program, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [expected], done.stderr
