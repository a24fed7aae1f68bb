"""Equal runs give the same bytes: repeated, on other cores, and under CPU load."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from cases import burning

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "conformance" / "c"


@dataclass(frozen=True)
class Case:
    """A run whose every byte must repeat itself."""

    name: str
    ranks: int
    program: Path
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    machine: str = "ape16"


CASES = [
    Case("pingpong", 2, ROOT / "examples" / "01_pingpong" / "pingpong.c"),
    Case("pairs", 16, ROOT / "bench" / "mpi" / "apenet_bench.c", ("--iterations", "20", "--sizes", "8:64K")),
    Case("halo", 16, ROOT / "bench" / "mpi" / "message_rate.c", ("halo", "30")),
    Case("random_map", 16, ROOT / "bench" / "mpi" / "message_rate.c", ("halo", "30"), ("--map", "random:7")),
    Case("any_source", 8, PROGRAMS / "any_source.c"),
    Case("collectives", 6, PROGRAMS / "nonblocking_collectives.c"),
    Case("one_sided", 4, PROGRAMS / "rma_passive.c"),
    Case("test_loops", 5, PROGRAMS / "requests.c"),
    Case("shared_cards", 8, PROGRAMS / "communicators.c", (), ("--ranks-per-node", "2")),
    # Waits for a flag in shared memory: what it finds there must not depend on who is faster.
    Case("shared_window", 8, PROGRAMS / "shared_window.c", (), ("--ranks-per-node", "4")),
    Case("torus_of_v5", 16, ROOT / "bench" / "mpi" / "message_rate.c", ("halo", "30"), (), "apenetplus-v5"),
    # A TLB of one entry: page boundaries within a buffer must be the same in every run.
    Case("translated", 4, Path(__file__).with_name("stack_buffers.c"), (), ("--set", "card.tlb_entries=1"), "quong"),
    Case("device_memory", 4, ROOT / "tests" / "conformance" / "gpu" / "messages.c", (), (), "apenetplus-v4"),
    # Longer turns than hand-overs cost, between messages: the run moves to several cores and back.
    Case("computes", 4, Path(__file__).with_name("computes.c"), ("15",)),
    Case("jacobi", 8, ROOT / "examples" / "02_jacobi" / "jacobi.py"),
]


@dataclass(frozen=True)
class Outcome:
    """What a run printed and wrote, which must not depend on the host."""

    output: str
    run_json: str


@pytest.fixture
def run_case(apenet, build, tmp_path):
    def run(case: Case, label: str, *options: str, **process_options: object) -> Outcome:
        folder = tmp_path / label
        command = [build(case.program)] if case.program.suffix == ".c" else ["python", case.program]
        done = apenet(
            *("run", "-n", str(case.ranks), "--machine", case.machine, "--out", folder),
            *(*case.options, *options, "--", *command, *case.arguments),
            **process_options,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return Outcome(done.stdout, (folder / "run.json").read_text(encoding="utf-8"))

    return run


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_bytes_however_it_is_run(run_case, case):
    """Pinned and beside other load; tests/soak does the same in more ways, and for longer."""
    first = run_case(case, "first")
    assert json.loads(first.run_json)["trace_hash"]
    assert run_case(case, "pinned", "--pin") == first
    with burning(1):
        assert run_case(case, "unpinned-beside-a-burner", "--no-pin") == first


def test_same_bytes_on_one_core(run_case):
    """As under `taskset -c 0`: the whole run has one core from its start."""
    case = CASES[2]
    first = run_case(case, "all-cores", "--no-pin")
    core = min(os.sched_getaffinity(0))
    assert run_case(case, "one-core", prepare=lambda: os.sched_setaffinity(0, {core})) == first


def test_another_seed_or_map_is_another_run(run_case):
    linear, random = CASES[2], CASES[3]
    traces = {json.loads(run_case(case, case.name).run_json)["trace_hash"] for case in (linear, random)}
    assert len(traces) == 2
