"""UDP through the simulated kernels: every call, what it costs, GASNet's conduit above it, and hosts without caches."""

import subprocess

import pytest

import apenet as package
from apenet.base.errors import InputError, MachineError

MACHINE = "l5530-pair"


def half_round_trip_us(*settings, layer="udp", size=16, machine=MACHINE, **options):
    changed = package.machine(machine).with_settings("software.mpi.clock_read_us=0", *settings)
    return package.bench.pingpong(changed, sizes=[size], layer=layer, **options).times_us[0]


@pytest.mark.parametrize(("ranks", "machine", "on_a_node"), [(1, MACHINE, 1), (4, "pax", 2)])
def test_every_call_and_its_misuse_twice(compile_native, ranks, machine, on_a_node):
    program = compile_native("udp/conformance.c", "udp")
    first, second = (
        package.run([program], n=ranks, machine=machine, ranks_per_node=on_a_node, capture=True) for _ in range(2)
    )
    lines = sorted(first.stdout.decode().splitlines())
    assert lines == [f"rank {rank} of {ranks}: done" for rank in range(ranks)]
    assert (first.stdout, first.trace_hash) == (second.stdout, second.trace_hash)


def test_without_simulation_and_without_the_kernels_costs(compile_native):
    program = compile_native("udp/conformance.c", "udp")
    said = "ape_udp_open: this process does not run under `apenet run`, or the machine has no [software.udp]"
    alone = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (alone.returncode, alone.stderr.strip()) == (3, said)
    with pytest.raises(package.RunError) as failed:
        package.run([program], n=2, machine="ape16", capture=True)
    assert said in failed.value.stderr


def test_a_datagram_costs_what_the_machine_says():
    """On its way: two system calls, a send, an interrupt, the kernel's work and a receive."""
    base = half_round_trip_us("software.udp.interrupt_us=20")
    for changes, added_us in (
        ({"interrupt_us": 30}, 10),
        ({"system_call_us": 1.25}, 2),
        ({"send_us": 2.25}, 1),
        ({"receive_packet_us": 2.25}, 1),
        ({"receive_us": 1.5}, 1),
    ):
        changed = {"interrupt_us": 20, **changes}
        slower = half_round_trip_us(*(f"software.udp.{key}={value}" for key, value in changed.items()))
        assert slower - base == pytest.approx(added_us, abs=1e-5)


def test_software_without_caches_takes_a_multiple():
    """The software's part of a ping-pong's time grows with the factor, the hardware's does not."""
    one, ten, nineteen = (half_round_trip_us(f"host.uncached_factor={n}", caches="off") for n in (1, 10, 19))
    assert one == half_round_trip_us()
    assert nineteen - ten == pytest.approx(ten - one, rel=1e-4)
    # Two system calls, send, kernel and receive.
    assert (ten - one) / 9 == pytest.approx(3.5, rel=0.01)


def test_the_costs_of_software_and_nothing_else_change_without_caches():
    machine = package.machine(MACHINE)
    factor = machine.file.host.uncached_factor.value
    on, off = (one.description().base_units() for one in (machine, machine.with_settings("host.caches=off")))
    changed = {key: off[key] / on[key] for key in on if on[key] != off[key] and key != "host.caches"}
    assert changed.pop("host.copy_bandwidth_mib_s") == pytest.approx(1 / factor)
    assert set(changed.values()) == {factor}
    times = {key for key in on if key.startswith("software.") and key.endswith("_us") and on[key] > 0}
    assert set(changed) == times - {"software.udp.interrupt_us", "software.ip.interrupt_us"} | {"host.local_latency_ns"}


def test_the_conduit_costs_more_than_udp_and_most_without_caches():
    """Up to 100 % (Kujat et al., Fig. 8): each request is acknowledged, and copied at both ends."""
    overheads = [
        half_round_trip_us(layer="gasnet", conduit="udp", caches=caches) / half_round_trip_us(caches=caches) - 1
        for caches in ("on", "off")
    ]
    assert 0 < overheads[0] < overheads[1] < 1


def test_what_does_not_exist_is_refused():
    with pytest.raises(InputError, match=r'layer = "udp": expected another one on extoll-64, which has no \[soft'):
        package.bench.pingpong("extoll-64", sizes=[16], layer="udp")
    with pytest.raises(InputError, match="channels = 2: expected 1 at layer udp"):
        package.bench.pingpong(MACHINE, sizes=[16], layer="udp", channels=2)
    with pytest.raises(InputError, match='caches = "no": expected on or off'):
        package.bench.pingpong(MACHINE, sizes=[16], caches="no")
    with pytest.raises(MachineError, match=r"host\.uncached_factor is missing: expected a number, such as 50"):
        package.bench.pingpong("extoll-64", sizes=[16], caches="off")
