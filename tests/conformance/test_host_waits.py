"""Ranks that wait for each other in the host do not block the run, even if one of them waits for virtual time."""

from pathlib import Path

import pytest

FAILING = Path(__file__).with_name("failing_runs")
LEFT_OUT = "while others continued"


@pytest.fixture
def run(apenet, build, tmp_path):
    """Runs ranks that synchronise in the host."""

    def run_program(mode: str, *options: str):
        program = build(FAILING / "meets_in_host.c")
        return apenet("run", "-n", "4", *options, "--", program, mode, str(tmp_path), timeout_s=100)

    return run_program


@pytest.mark.parametrize(
    ("mode", "points"),
    [
        ("socket", ["ranks 0, 1 waited in the host (a socket)"]),
        ("poll", ["rank 1 waited in the host (a socket)", "rank 0 waited in the host (sockets or pipes)"]),
        ("ticks", ["rank 1 waited in the host (a socket)"]),
        ("fifo", ["ranks 0, 1 waited in the host (a pipe or fifo)"]),
        ("memory", ["ranks 0, 1 waited in the host (shared memory)"]),
    ],
)
def test_ranks_that_wait_for_each_other_in_the_host_continue(run, mode, points):
    done = run(mode)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    warnings = [line for line in done.stderr.splitlines() if LEFT_OUT in line]
    assert warnings == [
        f"apenet: warning: {point} {LEFT_OUT}: the times of this run may not repeat" for point in points
    ]


@pytest.mark.parametrize(
    ("mode", "where"),
    [
        ("dead-socket", "reads from a Unix socket"),
        ("dead-memory", "waits for another thread or process, in a futex"),
    ],
)
def test_ranks_that_wait_in_the_host_for_ever_are_named(run, mode, where):
    done = run(mode, "--stall-timeout", "1")
    assert done.returncode == 1, done.stderr
    lines = [line.removeprefix("apenet:").strip() for line in done.stderr.splitlines()]
    assert lines[-3:] == [
        "ranks 0, 2, 3: MPI_Barrier on MPI_COMM_WORLD (4 ranks)",
        "MPI_Barrier on MPI_COMM_WORLD: ranks 0, 2, 3 are in it, rank 1 is not",
        f"rank 1: {where}",
    ]


def test_a_rank_that_others_did_not_wait_for_can_print_when_it_wakes(apenet, build, tmp_path):
    program = build(FAILING / "prints_when_woken.c")
    done = apenet("run", "-n", "2", "--", program, str(tmp_path), timeout_s=60)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 4001
    assert LEFT_OUT in done.stderr
