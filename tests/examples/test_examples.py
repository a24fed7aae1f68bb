"""Every example runs as its README says, on the machine that it was written for."""

import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_pingpong_prints_a_latency_for_every_size(apenet, build):
    program = build(EXAMPLES / "01_pingpong" / "pingpong.c")
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", program)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines() if not line.startswith("#")]
    assert [int(size) for size, *_ in rows] == [16**i for i in range(1, 6)]
    latencies = [float(latency) for _, latency, _ in rows]
    assert latencies == sorted(latencies)


@pytest.mark.parametrize(("ranks", "machine", "grid"), [(1, "ape16", "1x1x1"), (16, "ape16", "4x2x2")])
def test_jacobi_agrees_with_one_process(apenet, ranks, machine, grid):
    script = EXAMPLES / "02_jacobi" / "jacobi.py"
    done = apenet("run", "-n", str(ranks), "--machine", machine, "--", "python", script, "--points", "16")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"16^3 points on {grid} processes" in done.stdout
    assert float(re.search(r"difference to one process +(\S+)", done.stdout)[1]) <= 1e-12


def test_jacobi_runs_on_128_nodes(apenet):
    script = EXAMPLES / "02_jacobi" / "jacobi.py"
    done = apenet("run", "-n", "128", "--machine", "ape128", "--", "python", script, "--iterations", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "32^3 points on 8x4x4 processes" in done.stdout


def test_jacobi_refuses_a_grid_that_does_not_fit(apenet):
    script = EXAMPLES / "02_jacobi" / "jacobi.py"
    done = apenet("run", "-n", "4", "--machine", "ape16", "--", "python", script, "--dims", "3x2x2")
    assert done.returncode != 0
    assert "--dims = 3x2x2: expected three numbers whose product is 4" in done.stderr
