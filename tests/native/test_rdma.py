"""The library of APENet's cards in real processes: calls, misuse, waits for files, times against the card's tests."""

import pytest

import apenet as package

FREE_CLOCK = "software.mpi.clock_read_us=0"


@pytest.mark.parametrize(
    ("ranks", "machine", "more"),
    [
        (1, "ape16", ()),
        (2, "ape16", ()),
        (5, "apenetplus-v5", ()),
        (8, "ape128", ("--ranks-per-node", "4")),
        (3, "ape16", ("--engine", "flit")),
    ],
)
def test_every_call_and_its_misuse(apenet, compile_native, tmp_path, ranks, machine, more):
    program = compile_native("rdma/conformance.c", "rdma")
    records = []
    for out in (tmp_path / "first", tmp_path / "second"):
        run = apenet("run", "-n", str(ranks), "--machine", machine, *more, "--out", out, "--", program)
        assert run.returncode == 0, run.stderr
        assert sorted(run.stdout.splitlines()) == [f"rank {rank} of {ranks}: done" for rank in range(ranks)]
        records.append((run.stdout, (out / "run.json").read_bytes()))
    assert records[0] == records[1]


@pytest.mark.parametrize("machine", ["ape128", "apenet-2004", "apenetplus-v5"])
@pytest.mark.parametrize("test", ["pingpong", "oneway", "unidirectional"])
def test_real_processes_take_the_time_of_the_cards_own_tests(test, machine):
    chosen = package.machine(machine).with_settings(FREE_CLOCK)
    sizes = [32, 4096, 1048576]
    measured = package.bench.measure(test, chosen, sizes=sizes, layer="rdma")
    scripted = package.bench.measure(test, chosen, sizes=sizes, layer="card", path="put")
    # The card's tests round down to a picosecond.
    assert measured.times_us * 1e6 == pytest.approx(scripted.times_us * 1e6, abs=1)


@pytest.mark.parametrize(("machine", "more"), [("ape16", ()), ("apenetplus-v5", ("--ranks-per-node", "2"))])
def test_random_calls_agree_with_a_model_and_repeat(apenet, compile_native, tmp_path, machine, more):
    program = compile_native("rdma/fuzz.c", "rdma")
    records = []
    for out in (tmp_path / "first", tmp_path / "second"):
        run = apenet("run", "-n", "4", "--machine", machine, *more, "--out", out, "--", program, "1", "100")
        assert run.returncode == 0, run.stderr
        assert run.stdout.count("checks") == 4
        records.append((out / "run.json").read_bytes())
    assert records[0] == records[1]
