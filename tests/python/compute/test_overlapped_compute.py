"""Overlapped compute, for which a profile says how long it lasts, changes nothing that anyone sees."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from apenet.compute.profile import read_profile

BIN = Path(sys.executable).parent
SITES = 100_000
"""Regions of 150 and 350 us on two ranks."""
END = ("MPI_Barrier", "MPI_Wtime")


@pytest.fixture(scope="module")
def run(apenet, tmp_path_factory):
    """Runs a program that counts its own work, so that recordings are exact."""
    program = tmp_path_factory.mktemp("regions") / "regions"
    source = Path(__file__).with_name("regions.c")
    subprocess.run([BIN / "mpicc", "-std=c11", "-O1", "-rdynamic", "-o", program, source], check=True)

    def run_program(ranks: int, compute: str, form: str, *options: str | Path):
        return apenet("run", "-n", str(ranks), "--compute", compute, *options, "--", program, str(SITES), form)

    return run_program


@pytest.fixture(scope="module")
def long(run, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("long") / "profile.json"
    assert run(2, f"record:{path}", "loop").returncode == 0
    return path


def without(path: Path, folder: Path, *calls: tuple[str, str]) -> Path:
    """The profile without the call paths of the regions between these calls."""
    profile = json.loads(path.read_bytes())
    for part in profile["regions"]:
        assert part["after"]
        if (part["from_call"], part["to_call"]) in calls:
            del part["after"]
    changed = folder / "without.json"
    changed.write_text(json.dumps(profile))
    return changed


def test_overlapped_ranks_change_nothing(run, long, tmp_path):
    calls = [(part.start_call, part.end_call) for part in read_profile(long).regions]
    in_turn = without(long, tmp_path, *calls)
    said = []
    for number, (path, *options) in enumerate([(long,), (long, "--pin"), (long, "--no-pin"), (in_turn,)]):
        out = tmp_path / str(number)
        done = run(2, f"{path}:1", "loop", "--out", out, *options)
        assert done.returncode == 0, done.stderr
        report = json.loads((out / "run.json").read_bytes())
        assert report["computation"]["lengthened_passes"] == 0
        said.append((done.stdout, report["trace_hash"], report["ranks"]))
    assert said[1:] == said[:1] * 3


def test_ranks_finish_their_computation_before_a_partition_ends_the_run(run, tmp_path):
    """Rank 2 computes until 40 ms. It prints on the host long after the network has been found partitioned."""
    path = tmp_path / "profile.json"
    assert run(3, f"record:{path}", "apart").returncode == 0
    done = run(3, f"{path}:1", "apart", "--fault", "node (1,0,0) down @20400us")
    assert done.returncode == 1
    assert "the network is partitioned" in re.sub(r"\s+", " ", done.stderr)
    assert done.stdout.splitlines() == ["computed 0", "computed 1"]


def test_an_unexpected_short_region_is_lengthened_once_and_said(run, long, tmp_path):
    """The profile does not say that the loop may end after its last pass: each rank overlaps there for too long."""
    (once,) = (part for part in read_profile(long).regions if part.start_call == "MPI_Barrier" and part.count > 2)
    profile = json.loads(without(long, tmp_path, END).read_bytes())
    (last,) = (part for part in read_profile(long).regions if (part.start_call, part.end_call) == END)
    for part in profile["regions"]:
        if part["from"] == once.start and part["to"] == once.end:
            part["after"] += last.after
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(profile))
    exact, longer = (run(2, f"{path}:1", "loop", "--out", tmp_path / path.stem) for path in (long, changed))
    assert json.loads((tmp_path / "changed" / "run.json").read_bytes())["computation"]["lengthened_passes"] == 2
    assert "2 passes took longer than the profile says of their regions" in re.sub(r"\s+", " ", longer.stderr)
    exact_us, longer_us = (float(done.stdout.split()[3]) for done in (exact, longer))
    assert longer_us - exact_us == pytest.approx(once.cost.constant_ns / 1000, abs=0.01)
