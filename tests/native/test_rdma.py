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
    # On PCI Express an acknowledgement for each packet: with one for two, a time depends on how many came before.
    settings = ["bus.packets_per_update=1"] if machine == "apenetplus-v5" else []
    chosen = package.machine(machine).with_settings(FREE_CLOCK, *settings)
    sizes = [32, 4096, 1048576]
    measured = package.bench.measure(test, chosen, sizes=sizes, layer="rdma")
    scripted = package.bench.measure(test, chosen, sizes=sizes, layer="card", path="put")
    # The card's tests round down to a picosecond. Whole picoseconds are compared, without the noise of microseconds.
    assert (measured.times_us * 1e6).round() == pytest.approx((scripted.times_us * 1e6).round(), abs=1)


@pytest.mark.parametrize(
    ("machine", "ranks", "sequences", "more"),
    [
        ("ape16", 2, 2000, ()),
        ("ape16", 4, 300, ("--set", "router.virtual_channels=4")),
        ("apenetplus-v5", 4, 300, ("--ranks-per-node", "2")),
    ],
)
def test_random_calls_agree_with_a_model_and_repeat(
    apenet, compile_native, tmp_path, whole, machine, ranks, sequences, more
):
    sequences *= 5 if whole else 1
    program = compile_native("rdma/fuzz.c", "rdma")
    records = []
    for out in (tmp_path / "first", tmp_path / "second"):
        options = ("-n", str(ranks), "--machine", machine, *more, "--out", out)
        run = apenet("run", *options, "--", program, "1", str(sequences))
        assert run.returncode == 0, run.stderr
        assert run.stdout.count("checks") == ranks
        records.append((out / "run.json").read_bytes())
    assert records[0] == records[1]


LIFETIMES = ("late", "after_finalize", "before_init", "threads", "unpublish", "reopen", "overlap", "files")


@pytest.mark.parametrize("scenario", [*LIFETIMES, "table"])
def test_a_port_lives_beside_mpi_threads_and_other_ranks(apenet, compile_native, scenario):
    program = compile_native("rdma/lifetime.c", "rdma", mpi=True)
    run = apenet("run", "-n", "2", "--machine", "ape16", "--", program, scenario)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["done", "done"]


@pytest.mark.parametrize("scenario", LIFETIMES)
def test_buffers_that_are_addresses_live_as_long(apenet, compile_native, scenario):
    program = compile_native("rdma/lifetime.c", "rdma", mpi=True)
    run = apenet("run", "-n", "2", "--machine", "apenetplus-v5", "--", program, scenario)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("machine", ["ape16", "apenetplus-v5"])
def test_an_interrupt_wakes_a_process_that_sleeps_in_the_driver(apenet, compile_native, machine):
    program = compile_native("rdma/interrupt.c", "rdma")
    interrupt_us = package.machine(machine).file.card.get_service_us.value

    def taken_ns(way: str, pause_us: int) -> int:
        run = apenet("run", "-n", "2", "--machine", machine, "--", program, way, str(pause_us))
        assert run.returncode == 0, run.stderr
        return int(run.stdout)

    by_polling = taken_ns("wait", 0)
    assert {taken_ns(way, 0) - by_polling for way in ("poll", "select", "epoll")} == {round(interrupt_us * 1000)}
    # The event is there before the process looks.
    assert taken_ns("select", 100) == taken_ns("wait", 100)


def test_a_rank_that_dies_ends_the_run_with_its_status(apenet, compile_native):
    program = compile_native("rdma/lifetime.c", "rdma", mpi=True)
    run = apenet("run", "-n", "2", "--machine", "ape16", "--", program, "dies")
    assert run.returncode == 3
    assert "rank 1 exited with status 3" in run.stderr


@pytest.mark.parametrize(
    ("ranks", "arguments", "more"),
    [
        (16, (2000, 8, 0), ()),
        (2, (20000, 8, 1), ()),
        # More than the places for payloads of a process: the sender waits.
        (2, (6000, 4000, 1), ()),
        (4, (500, 300, 1), ("--ranks-per-node", "4")),
        (4, (300, 300, 0), ("--engine", "flit")),
    ],
)
def test_a_slow_receiver_gets_every_message_once_and_in_order(apenet, compile_native, ranks, arguments, more):
    program = compile_native("rdma/stream.c", "rdma")
    run = apenet("run", "-n", str(ranks), "--machine", "ape16", *more, "--", program, *map(str, arguments))
    assert run.returncode == 0, run.stderr
    assert run.stdout == f"{arguments[0] * (ranks - 1)} messages, 0 wrong\n"


@pytest.mark.parametrize("machine", ["ape16", "apenetplus-v5"])
def test_mpi_and_rdma_share_a_process(apenet, compile_native, machine):
    program = compile_native("rdma/with_mpi.c", "rdma", mpi=True)
    run = apenet("run", "-n", "4", "--machine", machine, "--", program)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ["sum of ranks by the ring: 6, by MPI: 6"] * 4


@pytest.mark.parametrize("machine", ["quong", "apenetplus-v4"])
def test_gpu_memory_takes_the_time_of_the_cards_own_test(apenet, compile_native, machine):
    program = compile_native("rdma/gpu.c", "rdma")
    for size in (32, 65536):
        run = apenet("run", "-n", "2", "--machine", machine, "--set", FREE_CLOCK, "--", program, str(size))
        assert run.returncode == 0, run.stderr
        time_us, _, wrong = times_of(run.stdout)
        scripted = package.bench.measure("pingpong", machine, sizes=[size], memory="gpu", path="put")
        assert wrong == 0
        assert time_us * 1e6 == pytest.approx(scripted.times_us[0] * 1e6, abs=1)


def times_of(output: str) -> tuple[float, float, int]:
    """What gpu.c prints: the time of a put, that of a get, and the wrong bytes."""
    put, get, wrong = output.split(",")
    return float(put.split()[0]), float(get.split()[1]), int(wrong.split()[0])


@pytest.mark.parametrize("machine", ["quong", "apenetplus-v4"])
def test_memory_of_a_gpu_that_the_card_does_not_reach_is_staged(apenet, compile_native, machine):
    program = compile_native("rdma/gpu.c", "rdma")
    host = package.machine(machine).file.host
    latency_us, rate_mib_s = host.gpu_copy_latency_us.value, host.gpu_copy_bandwidth_mib_s.value
    out_of_reach = [f"--set=card.gpu_{way}_bandwidth_mib_s=0" for way in ("read", "write")]
    for size in (32, 65536):
        times = []
        for memory in ("staged", "host"):
            run = apenet("run", "-n", "2", "--machine", machine, *out_of_reach, "--", program, str(size), memory)
            assert run.returncode == 0, run.stderr
            times.append(times_of(run.stdout))
        copy_us = latency_us + size / (rate_mib_s * 2**20) * 1e6
        (staged_put, staged_get, wrong), (host_put, host_get, _) = times
        assert wrong == 0
        # Out of one GPU and into the other; a copy rounds up to a picosecond.
        assert staged_put - host_put == pytest.approx(2 * copy_us, abs=3e-6)
        assert staged_get - host_get == pytest.approx(copy_us, abs=3e-6)


@pytest.mark.parametrize("engine", ["packet", "flit"])
def test_a_virtual_channel_does_not_wait_for_packets_of_another(apenet, compile_native, engine):
    program = compile_native("rdma/channels.c", "rdma")

    def time_of(queue: str, channels: int) -> float:
        settings = ("--engine", engine, "--set", f"router.virtual_channels={channels}")
        run = apenet("run", "-n", "3", "--machine", "ape128", *settings, "--", program, queue)
        assert run.returncode == 0, run.stderr
        return float(run.stdout)

    # Two lanes of a dateline pair each. The flood is on queue 0: channel 0, as queue 2.
    assert time_of("1", 4) == time_of("c1", 4) == time_of("3", 4)
    assert time_of("c1", 4) < 0.5 * time_of("2", 4)
    # Behind a put of 4 MiB in the card.
    assert time_of("c0", 4) > 10 * time_of("2", 4)
    # One pair is one channel: another queue alone does not help as much.
    assert time_of("1", 2) > 2 * time_of("c1", 4)


def test_a_machine_of_one_virtual_channel_has_no_second(apenet, compile_native):
    program = compile_native("rdma/channels.c", "rdma")
    run = apenet("run", "-n", "3", "--machine", "ape128", "--", program, "c1")
    assert run.returncode != 0
    assert "no such virtual channel" in run.stderr


def test_a_machine_without_a_gpu_has_no_memory_of_one(apenet, compile_native):
    run = apenet("run", "-n", "2", "--machine", "ape16", "--", compile_native("rdma/gpu.c", "rdma"))
    assert run.returncode != 0
    assert "gpu: no GPU" in run.stderr
