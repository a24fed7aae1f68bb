"""The same MPI programs on machines with other cards."""

import json
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).with_name("c")
# Matching, rendezvous, windows (writes and reads in hardware), collectives.
TELLING = ("any_source", "large_messages", "nonblocking_collectives", "rma_active", "rma_passive")
MACHINES = ("extoll-64", "my-cluster", "pax", "qpace", "quong", "torus-slice")


def run(apenet, program, machine, *options):
    done = apenet("run", "--machine", machine, *options, "--", program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines().count("passed") == 1
    return done


# MPICH's own fallback for windows without remote access fails in requests of large gets: docs/reference/programs.md.
CASES = [(name, machine) for name in TELLING for machine in MACHINES if (name, machine) != ("rma_passive", "qpace")]


@pytest.mark.parametrize(("name", "machine"), CASES)
def test_program(apenet, build, name, machine):
    run(apenet, build(PROGRAMS / f"{name}.c"), machine, "-n", "6", "--ranks-per-node", "2")


@pytest.mark.parametrize("machine", ("extoll-64", "my-cluster", "qpace"))
def test_windows_of_32_ranks_give_the_same_twice(apenet, build, tmp_path, machine):
    program = build(PROGRAMS / "rma_active.c")
    per_node = ("--ranks-per-node", "2") if machine in ("pax", "quong") else ()
    for label in ("once", "again"):
        run(apenet, program, machine, "-n", "32", *per_node, "--out", tmp_path / label)
    once, again = ((tmp_path / label / "run.json").read_text(encoding="utf-8") for label in ("once", "again"))
    assert once == again
    assert json.loads(once)["trace_hash"]


def virtual_time_us(apenet, build, tmp_path, name, *settings):
    options = [option for setting in settings for option in ("--set", setting)]
    folder = tmp_path / "-".join(("run", *settings))
    done = run(apenet, build(PROGRAMS / f"{name}.c"), "pax", "-n", "4", *options, "--out", folder)
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))["virtual_time_us"], done


def test_windows_are_read_by_the_adapter(apenet, build, tmp_path):
    """By its own reads, whose time is the adapter's."""
    plain, _ = virtual_time_us(apenet, build, tmp_path, "rma_passive")
    slow, _ = virtual_time_us(apenet, build, tmp_path, "rma_passive", "card.read_service_ns=50000")
    assert slow > 2 * plain


@pytest.mark.parametrize(
    ("setting", "warning"),
    [("receive_queue_entries=2", "times a receive queue was empty"), ("context_cache_entries=1", "contexts of queue")],
)
def test_scarce_resources_cost_time_and_give_a_warning(apenet, build, tmp_path, setting, warning):
    plain, quiet = virtual_time_us(apenet, build, tmp_path, "any_source")
    scarce, done = virtual_time_us(apenet, build, tmp_path, "any_source", f"card.{setting}")
    assert scarce > plain
    assert warning in done.stderr
    assert warning not in quiet.stderr
