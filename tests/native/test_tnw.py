"""The TNW's own library in real processes: every call, misuse, random calls, and times against the card's tests."""

import pytest

import apenet as package
from apenet.base.errors import InputError

# The clock of the scripted tests costs nothing.
FREE_CLOCK = "software.mpi.clock_read_us=0"


def torus(*dims):
    return ["--machine", "qpace", "--set", f"network.dims=[{','.join(map(str, dims))}]"]


@pytest.mark.parametrize(
    ("ranks", "dims", "more"),
    [
        (1, (1, 1, 1), ()),
        (2, (2, 1, 1), ()),
        (3, (3, 1, 1), ()),
        (8, (2, 2, 2), ()),
        (8, (2, 2, 2), ("--engine", "flit")),
        (8, (4, 1, 1), ("--ranks-per-node", "2")),
    ],
)
def test_every_call_and_its_misuse(apenet, compile_native, ranks, dims, more):
    program = compile_native("tnw/conformance.c", "tnw")
    run = apenet("run", "-n", str(ranks), *torus(*dims), *more, "--", program)
    assert run.returncode == 0, run.stderr
    assert sorted(run.stdout.splitlines()) == [f"rank {rank} of {ranks}: done" for rank in range(ranks)]


def test_random_calls_carry_the_right_bytes_and_repeat(apenet, compile_native, tmp_path, whole):
    program = compile_native("tnw/fuzz.c", "tnw")
    calls = "10000" if whole else "2000"
    records = []
    for out in (tmp_path / "first", tmp_path / "second"):
        run = apenet("run", "-n", "2", *torus(2, 1, 1), "--out", out, "--", program, "1", calls)
        assert run.returncode == 0, run.stderr
        records.append((run.stdout, (out / "run.json").read_bytes()))
    assert records[0] == records[1]


def test_random_calls_of_four_ranks(apenet, compile_native):
    run = apenet("run", "-n", "4", *torus(2, 2, 1), "--", compile_native("tnw/fuzz.c", "tnw"), "1", "300")
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("channels", [1, 8])
@pytest.mark.parametrize("test", ["pingpong", "pingping", "oneway", "unidirectional", "bidirectional", "flush"])
def test_real_processes_take_the_time_of_the_cards_own_tests(test, channels):
    qpace = package.machine("qpace").with_settings(FREE_CLOCK)
    measured, scripted = (
        package.bench.measure(test, qpace, sizes=[128, 2048], layer=layer, channels=channels)
        for layer in ("tnw", "card")
    )
    picoseconds = [[round(time * 1e6) for time in result.times_us] for result in (measured, scripted)]
    assert picoseconds[0] == picoseconds[1]


def test_a_wait_that_cannot_end_is_named(apenet, compile_native):
    program = compile_native("tnw/waits.c", "tnw")
    run = apenet("run", "-n", "2", *torus(2, 1, 1), "--", program)
    assert run.returncode != 0
    assert "waits in tnw_wait" in run.stderr


def test_a_receiver_that_sleeps_for_a_second_loses_nothing(apenet, compile_native):
    program = compile_native("tnw/sleeper.c", "tnw")
    run = apenet("run", "-n", "2", *torus(2, 1, 1), "--", program)
    assert run.returncode == 0, run.stderr
    assert "20000 messages in order" in run.stdout


def test_mpi_and_the_tnw_share_a_process(apenet, compile_native):
    program = compile_native("tnw/with_mpi.c", "tnw", mpi=True)
    run = apenet("run", "-n", "4", *torus(4, 1, 1), "--", program)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["sum of ranks by the ring: 6, by MPI: 6"] * 4


def test_a_machine_without_the_card_says_so(apenet, compile_native):
    program = compile_native("tnw/waits.c", "tnw")
    run = apenet("run", "-n", "2", "--machine", "ape16", "--", program)
    assert "tnw_open: this process does not run under `apenet run`, or the machine's card is no TNW" in run.stderr
    with pytest.raises(InputError, match="ape16"):
        package.bench.pingpong("ape16", layer="tnw")


def test_the_compiler_is_shown_and_runs(apenet, tmp_path):
    shown = apenet("cc", "--tnw", "--show", "program.c", "-o", "program")
    assert "-lapenet-tnw" in shown.stdout
    assert "program.c -o program" in shown.stdout
    (tmp_path / "no.c").write_text("int main(void) { return }\n")
    assert apenet("cc", "--tnw", "no.c", cwd=tmp_path).returncode != 0
    assert apenet("cc").returncode == 2
