"""EXTOLL's user libraries in real processes: what arrives, what it costs, and what is refused."""

import json
import re
import subprocess

import pytest

import apenet as package

MACHINE = "extoll-64"


def run(program, *arguments, n=2, **options):
    return package.run([program, *map(str, arguments)], n=n, machine=MACHINE, capture=True, **options)


@pytest.fixture(scope="session")
def native(compile_native):
    return lambda source, **options: compile_native(f"extoll/{source}", "extoll", **options)


def bench_us(apenet, test, *options):
    """Microseconds of the benchmark of the card on this machine, at each size."""
    done = apenet("bench", test, "--machine", MACHINE, "--layer", "card", *options, "--json")
    assert done.returncode == 0, done.stderr
    return {point["size_bytes"]: point for point in json.loads(done.stdout)["points"]}


def half_round_trip_us(program, bytes_, rounds=20):
    """From two runs of different length, so that beginning and end do not count."""
    short, long = (run(program, bytes_, count).virtual_time_us for count in (rounds, 2 * rounds))
    return (long - short) / (2 * rounds)


@pytest.mark.parametrize("bytes_", [8, 56])
def test_velo_takes_exactly_the_time_of_the_card_benchmark(apenet, native, bytes_):
    measured = half_round_trip_us(native("velo_pingpong.c"), bytes_)
    expected = bench_us(apenet, "pingpong", "--path", "send", "--sizes", str(bytes_))[bytes_]["time_us"]
    assert measured == pytest.approx(expected, abs=0.5e-6)


def test_velo_takes_the_published_time(native):
    assert half_round_trip_us(native("velo_pingpong.c"), 8) == pytest.approx(0.97, rel=0.1)


@pytest.mark.parametrize("bytes_", [8, 64, 65536])
def test_puts_take_exactly_the_time_of_the_card_benchmark(apenet, native, bytes_):
    measured = half_round_trip_us(native("rma_pingpong.c"), bytes_)
    expected = bench_us(apenet, "pingpong", "--path", "put", "--sizes", str(bytes_))[bytes_]["time_us"]
    assert measured == pytest.approx(expected, abs=0.5e-6)


@pytest.mark.parametrize(("layer", "path"), [("velo", "send"), ("rma", "put")])
def test_the_layers_of_the_benchmarks(layer, path):
    machine = package.machine(MACHINE).with_settings("software.mpi.clock_read_us=0")
    by_library = package.bench.pingpong(machine, sizes=[8, 56], layer=layer).times_us
    by_card = package.bench.pingpong(machine, sizes=[8, 56], layer="card", path=path).times_us
    assert by_library == pytest.approx(by_card, abs=3e-5)  # a clock in nanoseconds, over 40 half round trips


def test_a_wait_that_cannot_end_is_named(apenet, native):
    done = apenet("run", "-n", "2", "--machine", MACHINE, "--", native("velo_flood.c"), "2", "1", "0")
    assert done.returncode != 0
    assert "velo2_recv" in done.stderr


def test_puts_keep_up_with_the_published_rate(native):
    program = native("rma_rate.c")
    short, long = (run(program, 8, count, 64).virtual_time_us for count in (6400, 12800))
    assert 6400 / (long - short) == pytest.approx(6.48, rel=0.01)  # million a second; published: at least 4.9


def test_long_puts_fill_the_link(native):
    program = native("rma_rate.c")
    bytes_ = 1 << 20
    short, long = (run(program, bytes_, count, 4).virtual_time_us for count in (8, 16))
    assert 8 * bytes_ / (long - short) == pytest.approx(554.6, rel=0.01)


def test_a_packet_carries_what_the_machine_says(native, tmp_path):
    program = native("velo_pingpong.c")
    machine = package.machine(MACHINE).with_settings("card.velo_payload_bytes=120")
    for bytes_, passes in ((120, True), (57, True)):
        done = package.run([program, str(bytes_), "3"], n=2, machine=machine, capture=True, check=False)
        assert done.ok == passes, done.stderr
    with pytest.raises(package.RunError, match="longer than a packet"):
        package.run([program, "57", "3"], n=2, machine=MACHINE, capture=True)


@pytest.mark.parametrize("pause_us", [0, 1_000_000])
def test_fifteen_senders_and_one_receiver(native, pause_us):
    program = native("velo_flood.c")
    first, second = (run(program, 15, 7000, pause_us, n=16) for _ in range(2))
    assert first.stdout == b"105000 messages\n"
    assert first.trace_hash == second.trace_hash
    assert first.virtual_time_us > pause_us
    assert any("found their mailbox full" in warning for warning in first.warnings)


@pytest.mark.parametrize("slots", [4, 256])
def test_senders_with_full_mailboxes_do_not_wait_for_each_other(native, slots):
    machine = package.machine(MACHINE).with_settings(
        f"card.velo_mailbox_entries={slots}", "card.velo_max_message_bytes=56"
    )
    command = [native("velo_exchange.c"), "2000"]
    first, second = (package.run(command, n=2, machine=machine, capture=True) for _ in range(2))
    assert first.stdout == b"asked to receive\n"
    assert first.trace_hash == second.trace_hash


@pytest.mark.parametrize("how", ["exit", "close"])
def test_a_receiver_that_goes_holds_nobody_back(native, how):
    first, second = (run(native("velo_leave.c"), how, n=3) for _ in range(2))
    assert sorted(first.stdout.splitlines()) == [b"node 1: done", b"node 2: done"]
    assert first.trace_hash == second.trace_hash


@pytest.mark.parametrize(("ranks", "ranks_per_node"), [(1, 1), (6, 4), (32, 16)])
def test_processes_share_a_card(native, ranks, ranks_per_node):
    done = run(native("velo_all.c"), n=ranks, ranks_per_node=ranks_per_node)
    assert done.stdout == b"%d\n" % ranks * ranks


def test_more_processes_than_ports_do_not_start(apenet, native):
    done = apenet("run", "-n", "17", "--ranks-per-node", "17", "--machine", MACHINE, "--", native("velo_all.c"))
    assert done.returncode != 0
    assert "card.ports" in done.stderr


@pytest.mark.parametrize("machine_file", [MACHINE, "extoll-64-2d"])
def test_every_operation_of_rma(apenet, native, machine_file):
    done = apenet("run", "-n", "2", "--machine", machine_file, "--", native("rma_operations.c"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "passed\npassed\n"


@pytest.mark.parametrize(("nodes", "sequences"), [(2, 2000), (5, 300)])
def test_random_calls_agree_with_a_model_in_memory(native, whole, nodes, sequences):
    sequences *= 5 if whole else 1
    first, second = (run(native("fuzz.c"), 7, sequences, n=nodes) for _ in range(2))
    assert sorted(first.stdout.splitlines()) == [b"node %d: %d sequences" % (node, sequences) for node in range(nodes)]
    assert first.trace_hash == second.trace_hash


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_descriptors_of_random_bits_change_registered_memory_only(native, seed):
    first, second = (run(native("descriptors.c"), seed, 3000, n=2) for _ in range(2))
    assert first.stdout == second.stdout
    assert len(re.findall(rb"^[01]: [0-9]+ of 3000 accepted$", first.stdout, re.MULTILINE)) == 2


def test_every_misuse_has_its_error(apenet, native):
    done = apenet("run", "-n", "2", "--machine", MACHINE, "--", native("errors.c"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "passed\npassed\n"


def test_without_a_card_and_without_a_run(apenet, native):
    program = native("errors.c")
    done = apenet("run", "-n", "1", "--machine", "ape16", "--", program, "no-card")
    assert done.stdout == "the machine has no EXTOLL card\n" * 2
    assert done.returncode == 0, done.stderr
    alone = subprocess.run([program, "no-run"], capture_output=True, text=True, check=False)
    assert alone.returncode == 0, alone.stderr
    assert re.fullmatch(r"(there is no simulation: start the program by `apenet run`\n){2}", alone.stdout)


def test_headers_serve_cpp(native):
    alone = subprocess.run([native("both_headers.cpp")], check=False)
    assert alone.returncode == 0


def test_mpi_and_velo_share_a_process(apenet, native):
    program = native("mpi_and_velo.c", mpi=True)
    done = apenet("run", "-n", "4", "--machine", MACHINE, "--", program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "passed\n"
