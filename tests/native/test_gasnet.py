"""GASNet-1 in real processes: every call, what it costs beside VELO and MPI, floods, and what is refused."""

import json
import subprocess
from itertools import cycle
from pathlib import Path

import pytest

import apenet as package
from apenet.host.compiling import command

MACHINE = "extoll-64"
CONDUITS = {"extoll": MACHINE, "ibv": "pax", "apelink": "ape16", "udp": "pax", "mpi": "ideal"}


def run(program, *arguments, n=2, machine=MACHINE, **options):
    return package.run([program, *map(str, arguments)], n=n, machine=machine, capture=True, **options)


def run_twice(program, *arguments, **options):
    once, again = (run(program, *arguments, **options) for _ in range(2))
    assert (once.stdout, once.trace_hash) == (again.stdout, again.trace_hash)
    return once


@pytest.fixture(scope="session")
def native(compile_native):
    return lambda source, mode="par": compile_native(f"gasnet/{source}", f"gasnet-{mode}")


@pytest.mark.parametrize(
    ("mode", "processes", "on_a_node", "variant"),
    [
        ("seq", 1, 1, "improved"),
        ("par", 2, 1, "improved"),
        ("parsync", 3, 1, "first"),
        ("seq", 4, 3, "improved"),
        ("seq", 5, 1, "first"),
        ("parsync", 6, 6, "improved"),
        ("parsync", 7, 2, "improved"),
        ("par", 8, 1, "improved"),
    ],
)
def test_every_call_twice_with_the_same_trace(native, mode, processes, on_a_node, variant):
    options = {"n": processes, "ranks_per_node": on_a_node}
    environment = {"GASNET_TEST_VALUE": "12", "GASNET_EXTOLL_AM": variant}
    assert run_twice(native("conformance.c", mode), environment=environment, **options).stdout == b"passed\n"


@pytest.mark.parametrize(
    ("machine", "conduit", "mode", "processes", "on_a_node"),
    [
        ("pax", "ibv", "par", 4, 2),
        ("pax", "udp", "seq", 2, 1),
        ("ape16", "apelink", "parsync", 2, 1),
        ("ideal", "mpi", "par", 2, 1),
    ],
)
def test_every_call_over_the_other_conduits(native, machine, conduit, mode, processes, on_a_node):
    options = {"n": processes, "ranks_per_node": on_a_node, "machine": machine}
    environment = {"GASNET_TEST_VALUE": "12", "GASNET_CONDUIT": conduit}
    assert run_twice(native("conformance.c", mode), environment=environment, **options).stdout == b"passed\n"


@pytest.mark.parametrize(
    ("machine", "conduit", "mode", "processes", "on_a_node"),
    [
        ("extoll-64", "extoll", "seq", 1, 1),
        ("extoll-64", "extoll", "par", 8, 1),
        ("extoll-64", "extoll", "parsync", 5, 2),
        ("pax", "ibv", "par", 4, 2),
        ("pax", "udp", "seq", 3, 1),
        ("ape16", "apelink", "parsync", 4, 1),
        ("ideal", "mpi", "par", 3, 1),
    ],
)
def test_drawn_calls_leave_what_a_model_says(native, machine, conduit, mode, processes, on_a_node, whole):
    sequences = 200 if whole else 20
    options = {"n": processes, "ranks_per_node": on_a_node, "machine": machine}
    done = run_twice(native("fuzz.c", mode), processes, sequences, environment={"GASNET_CONDUIT": conduit}, **options)
    assert done.stdout == b"passed\n"


@pytest.mark.parametrize(
    ("machine", "conduit", "mode", "processes", "on_a_node"),
    [
        ("extoll-64", "extoll", "seq", 1, 1),
        ("extoll-64", "extoll", "par", 4, 2),
        ("pax", "ibv", "seq", 3, 1),
        ("pax", "udp", "seq", 2, 1),
        ("ape16", "apelink", "par", 2, 1),
        ("ideal", "mpi", "par", 2, 1),
    ],
)
def test_every_call_with_all_memory_open(native, machine, conduit, mode, processes, on_a_node):
    environment = {"GASNET_TEST_VALUE": "12", "GASNET_CONDUIT": conduit}
    options = {"n": processes, "ranks_per_node": on_a_node, "machine": machine}
    assert run_twice(native("everything.c", mode), environment=environment, **options).stdout == b"passed\n"


def test_processes_of_two_configurations_of_segments_do_not_attach(native):
    programs = f"exec {native('pingpong.c', 'seq')} 5", f"exec {native('everything.c', 'seq')}"
    command = ["sh", "-c", f'if [ "$PMI_RANK" = 0 ]; then {programs[0]}; else {programs[1]}; fi']
    with pytest.raises(package.RunError) as failed:
        package.run(command, n=2, machine=MACHINE, capture=True, environment={"GASNET_TEST_VALUE": "12"})
    assert "gasnet_attach: node 0 is compiled with another configuration of segments" in failed.value.stderr


@pytest.mark.parametrize(
    ("who", "said"),
    [
        ("first", "gasnet_init: the program itself has opened the process's port (ape_rdma_open)"),
        ("second", ""),
    ],
)
def test_a_process_has_one_port_of_an_apenet_card(compile_native, who, said):
    program = compile_native("gasnet/two_ports.c", "gasnet-seq", "rdma")
    done = package.run([program, who], n=1, machine="ape16", capture=True, check=False)
    assert done.ok == (said == ""), (done.message, done.stderr)
    assert said.encode() in done.stderr


@pytest.mark.parametrize(
    ("machine", "conduit"), [("pax", "ibv"), ("ape16", "apelink"), ("my-cluster", "ibv"), ("ideal", "mpi")]
)
def test_the_machine_chooses_the_conduit(native, machine, conduit):
    chosen, named = (
        run(native("pingpong.c"), 5, machine=machine, environment=environment)
        for environment in ({}, {"GASNET_CONDUIT": conduit})
    )
    assert chosen.trace_hash == named.trace_hash


def test_the_kernels_costs_are_those_of_the_machine(native):
    """On the way of a request: two system calls, and an interrupt. On that of its reply: the same."""
    machine = package.machine("l5530-pair").with_settings("software.udp.interrupt_us=20")
    environment = {"GASNET_CONDUIT": "udp"}
    base = round_trip_us(native("pingpong.c", "seq"), rounds=10, machine=machine, environment=environment)
    for key, added_us, times in (("interrupt_us=30", 10, 2), ("system_call_us=1.25", 1, 4), ("send_us=2.25", 1, 2)):
        changed = machine.with_settings(f"software.udp.{key}")
        slower = round_trip_us(native("pingpong.c", "seq"), rounds=10, machine=changed, environment=environment)
        assert slower - base == pytest.approx(times * added_us, rel=1e-6)


def round_trip_us(program, rounds=40, **options):
    """From two runs of different length, so that beginning and end do not count."""
    short, long = (run(program, count, **options).virtual_time_us for count in (rounds, 2 * rounds))
    return (long - short) / rounds


def test_a_short_message_costs_more_than_velo_and_far_less_than_mpi(native):
    machine = package.machine(MACHINE).with_settings("software.mpi.clock_read_us=0")
    velo = package.bench.pingpong(machine, sizes=[8], layer="velo").times_us[0]
    mpi = package.bench.pingpong(machine, sizes=[8], layer="mpi").times_us[0]
    gasnet = round_trip_us(native("pingpong.c")) / 2
    assert velo < gasnet < mpi
    assert gasnet - velo < 0.25 * (mpi - velo)


def test_the_first_implementation_is_not_faster(native):
    first, improved = (
        round_trip_us(native("pingpong.c"), environment={"GASNET_EXTOLL_AM": name}) for name in ("first", "improved")
    )
    assert first >= improved


@pytest.mark.parametrize(("conduit", "sleep_us"), [("extoll", 0), *((conduit, 1_000_000) for conduit in CONDUITS)])
def test_a_flood_arrives_once_and_in_order(native, conduit, sleep_us):
    options = {"machine": CONDUITS[conduit], "environment": {"GASNET_CONDUIT": conduit}}
    done = run(native("flood.c", "seq"), 400, sleep_us, n=16, **options)
    assert done.stdout == b"6000 messages in order\n"
    assert done.virtual_time_us > sleep_us


@pytest.mark.parametrize("conduit", ["extoll", "mpi"])
def test_the_modes_wait_alike(native, conduit):
    """Each process has one thread, so only a handler ends its waits: also where a receiver sleeps for a second."""
    options = {"machine": CONDUITS[conduit], "environment": {"GASNET_CONDUIT": conduit}}
    runs = [run(native("flood.c", mode), 20, 1_000_000, n=3, **options) for mode in ("seq", "par", "parsync")]
    assert len({(done.stdout, done.trace_hash, done.virtual_time_us) for done in runs}) == 1


MISUSES = {
    "node-before-init": "gasnet_mynode: called before gasnet_init",
    "put-before-attach": "gasnet_put_val: called before gasnet_attach",
    "bad-argument": "GASNET_ERR_BAD_ARG (an argument is not valid), at ",
    "put-out-of-segment": "gasnet_put: the memory is not in the segment of node 1",
    "get-across-the-end": "gasnet_get: the memory is not in the segment of node 1",
    "no-such-node": "gasnet_memset: there is no node 2",
    "value-of-9-bytes": "gasnet_put_val: a value has 1 to 8 bytes",
    "wait-without-notify": "gasnet_barrier_wait: called without gasnet_barrier_notify",
    "notify-twice": "gasnet_barrier_notify: called twice without a wait",
    "nested-regions": "gasnet_begin_nbi_accessregion: access regions do not nest",
    "region-not-begun": "gasnet_end_nbi_accessregion: called outside an access region",
    "request-with-lock": "gasnet_AMRequestShort: called with a handler-safe lock held",
    "lock-twice": "gasnet_hsl_lock: this thread holds the lock already",
    "unlock-not-held": "gasnet_hsl_unlock: this thread does not hold the lock",
    "destroy-held": "gasnet_hsl_destroy: the lock is held",
    "poll-in-section": "gasnet_AMPoll: called in a no-interrupt section",
    "section-twice": "gasnet_hold_interrupts: called in a no-interrupt section",
    "resume-outside": "gasnet_resume_interrupts: called outside a no-interrupt section",
    "old-token": "gasnet_AMReplyShort: the token is not that of the handler that runs in this thread",
    "request-in-handler": "gasnet_AMRequestShort: called in a handler",
    "poll-in-handler": "gasnet_AMPoll: called in a handler",
    "put-in-handler": "gasnet_put_val: called in a handler",
    "barrier-in-handler": "gasnet_barrier_notify: called in a handler",
    "lock-kept": "gasnet_AMReplyShort: called with a handler-safe lock held",
    "reply-twice": "gasnet_AMReplyShort: a handler may reply only once",
    "reply-to-reply": "gasnet_AMReplyShort: a handler of a reply may not reply",
    "unknown-handler": "gasnet_AMPoll: a message from node 1 for handler 222, which is not registered",
}


BY_TURNS = zip(MISUSES, cycle([name for name in CONDUITS if name != "mpi"]), strict=False)
"""Each misuse over one conduit: what the library forbids is above them. Over each: what a message has to bring."""
BY_MESSAGE = [("unknown-handler", conduit) for conduit in CONDUITS]


@pytest.mark.parametrize(("misuse", "conduit"), sorted({*BY_TURNS, *BY_MESSAGE}))
def test_a_misuse_ends_the_run_by_name(native, misuse, conduit):
    environment = {"GASNET_CONDUIT": conduit}
    command = [native("misuse.c"), misuse]
    with pytest.raises(package.RunError) as failed:
        package.run(command, n=2, machine=CONDUITS[conduit], capture=True, environment=environment)
    assert "GASNet: node " in failed.value.stderr
    assert MISUSES[misuse] in failed.value.stderr


@pytest.mark.parametrize(
    ("machine", "environment", "text"),
    [
        (
            MACHINE,
            {"GASNET_CONDUIT": "smp"},
            "GASNET_CONDUIT=smp: expected one that is possible on extoll-64: extoll, mpi",
        ),
        ("ape16", {"GASNET_CONDUIT": "extoll"}, "expected one that is possible on ape16: apelink, mpi"),
        ("my-cluster", {"GASNET_CONDUIT": "udp"}, "expected one that is possible on my-cluster: ibv, mpi"),
        (MACHINE, {"GASNET_EXTOLL_AM": "2"}, "GASNET_EXTOLL_AM=2: expected first or improved"),
        (MACHINE, {"GASNET_EXITTIMEOUT": "soon"}, "GASNET_EXITTIMEOUT: expected seconds, from 0 to 1000"),
    ],
)
def test_what_the_environment_asks_for_without_effect(native, machine, environment, text):
    with pytest.raises(package.RunError) as failed:
        package.run([native("pingpong.c"), "1"], n=2, machine=machine, capture=True, environment=environment)
    assert text in failed.value.stderr


def test_without_a_simulation(native):
    done = subprocess.run([native("pingpong.c"), "1"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "start the program by `apenet run`" in done.stderr


def test_a_program_of_another_mode_does_not_link(tmp_path):
    source = Path(__file__).parent / "gasnet" / "pingpong.c"
    wrong = ["-DGASNET_SEQ", "-UGASNET_PAR"]
    words = [
        word for word in command([str(source), "-o", str(tmp_path / "x")], ["gasnet-par"]) if "DGASNET" not in word
    ]
    done = subprocess.run([*words, *wrong], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "gasnet_init_seq" in done.stderr


def test_exit_of_one_node_ends_all(apenet, tmp_path):
    source = tmp_path / "one.c"
    source.write_text(
        "#include <gasnet.h>\nint main(int argc, char** argv) {\n  GASNET_SAFE(gasnet_init(&argc, &argv));\n"
        "  GASNET_SAFE(gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0));\n  gasnet_seginfo_t segments[5];\n"
        "  GASNET_SAFE(gasnet_getSegmentInfo(segments, 5));\n"
        "  for (int i = 0; i < 50 && gasnet_mynode() == 1; ++i) gasnet_AMPoll();\n"
        "  if (gasnet_mynode() == 1) gasnet_exit(atoi(argv[1]));\n"
        "  for (;;) {\n    if (atoi(argv[1])) gasnet_put(1, segments[1].addr, segments, 64);\n"
        "    if (!atoi(argv[1])) gasneti_await_progress();\n  }\n}\n"
    )
    program = tmp_path / "one"
    assert apenet("cc", "--gasnet-seq", source, "-o", program).returncode == 0
    assert apenet("run", "-n", "5", "--machine", MACHINE, "--", program, "0").returncode == 0
    assert apenet("run", "-n", "5", "--machine", MACHINE, "--", program, "7").returncode == 7


@pytest.mark.parametrize(("status", "mode"), [(7, "seq"), (7, "par"), (0, "seq")])
def test_the_exit_of_one_node_is_a_signal_to_the_others(native, status, mode):
    """SIGQUIT, whose handler may shut down before it calls gasnet_exit(). Nodes 3 and 4 have no handler."""
    done = package.run([native("quit.c", mode), str(status)], n=5, machine=MACHINE, capture=True, check=False)
    assert sorted(done.stdout.decode().splitlines()) == ["node 0 shuts down", "node 2 shuts down"]
    assert done.exit_status == status, done.message


@pytest.mark.parametrize(("size", "packets"), [(0, 1), (8, 1), (64, 2), (512, 10), (8192, 147)])
def test_medium_requests_are_so_many_packets(apenet, compile_native, tmp_path, size, packets):
    """8 bytes of header and the payload in packets of 56 bytes (Kujat et al.)."""
    program = compile_native("gasnet/medium.c", "gasnet-seq")
    sent = []
    for count in (1, 2):
        out = tmp_path / str(count)
        run = apenet("run", "-n", "2", "--machine", "extoll-64", "--out", out, "--", program, str(count), str(size))
        assert run.returncode == 0, run.stderr
        links = json.loads((out / "run.json").read_text())["links"]
        sent += [link["packets"] for link in links if link["name"] == "(0,0,0)+x"]
    assert sent[1] - sent[0] == packets


@pytest.mark.parametrize(("processes", "threaded", "variant"), [(1, [], "improved"), (3, ["threaded"], "first")])
def test_the_library_for_the_conduit_of_a_tree(compile_native, processes, threaded, variant):
    environment = {"GASNET_EXTOLL_AM": variant}
    done = run_twice(compile_native("gasnet/am.c", "am"), *threaded, n=processes, environment=environment)
    assert done.stdout == b"passed\n"
